/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/outframe.h"

#include <stdlib.h>

#include "link/engine.h"

/* 8192 frames of 65 KiB in chunks of 128, of which only pages that had bytes are in memory. */
#define POOL_BYTES (1024 * MIB)
#define SPARE_MAX 64           /* frames in the freelist: the default WEFT_WINDOW; not tuned */
#define SHRINK_NS WF_NS_PER_S  /* time after a frame beyond SPARE_MAX was freed */

int wf_outframes_init(struct wf_outframes *frames)
{
	wf_list_init(&frames->spare);
	return wf_pool_init(&frames->pool, POOL_BYTES);
}

static void drop(struct wf_outframe *f)
{
	wf_pool_give(&f->engine->frames.pool, f->bytes);
	if (f->sealed)
		wf_pool_give(&f->engine->frames.pool, f->sealed);
	free(f);
}

static void drop_spare(struct wf_outframes *frames)
{
	struct wf_list *node;

	while ((node = wf_list_pop(&frames->spare)))
		drop(WF_CONTAINER(node, struct wf_outframe, node));
	frames->spare_count = 0;
}

void wf_outframes_fini(struct wf_outframes *frames)
{
	drop_spare(frames);
	wf_pool_fini(&frames->pool);
}

static void shrink(struct wf_timer *timer)
{
	struct wf_outframes *frames = WF_CONTAINER(timer, struct wf_outframes, shrink_timer);

	drop_spare(frames);
	wf_pool_shrink(&frames->pool);
}

struct wf_outframe *wf_outframe_take(struct wf_engine *engine)
{
	struct wf_list *spare = wf_list_pop(&engine->frames.spare);
	struct wf_outframe *f;
	uint8_t *sealed = NULL;
	void *bytes;

	if (spare) {
		engine->frames.spare_count--;
		f = WF_CONTAINER(spare, struct wf_outframe, node);
		bytes = f->bytes;
		sealed = f->sealed;
	} else {
		f = malloc(sizeof(*f));
		if (!f)
			return NULL;
		if (wf_pool_take(&engine->frames.pool, engine->frame_bytes, &bytes)) {
			free(f);
			return NULL;
		}
	}
	*f = (struct wf_outframe){ .engine = engine, .bytes = bytes, .sealed = sealed };
	wf_list_init(&f->node);
	return f;
}

void wf_outframe_give(struct wf_outframe *f)
{
	struct wf_engine *engine = f->engine;
	struct wf_outframes *frames = &engine->frames;

	if (frames->spare_count < SPARE_MAX) {
		frames->spare_count++;
		wf_list_prepend(&frames->spare, &f->node);
		return;
	}
	drop(f);
	if (!frames->shrink_timer.armed)
		wf_loop_timer(&engine->loop, &frames->shrink_timer, engine->loop.now_ns + SHRINK_NS,
			      shrink);
}

void wf_outframe_give_all(struct wf_list *list)
{
	struct wf_list *node;

	while ((node = wf_list_pop(list)))
		wf_outframe_give(WF_CONTAINER(node, struct wf_outframe, node));
}
