/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/view.h"

#include <errno.h>
#include <stdlib.h>

int wf_view_init(struct wf_views *views, struct wf_engine *engine)
{
	views->engine = engine;
	wf_map_init(&views->map);
	return -pthread_mutex_init(&views->lock, NULL);
}

static uint64_t hash_of(const struct wf_views *views, const void *at)
{
	return wf_map_hash(&views->map, (uintptr_t)at, "", 0);
}

int wf_view_open(struct wf_views *views, struct wf_link *link, const struct wf_body *body,
		 struct wf_view **view)
{
	struct wf_view *v = calloc(1, sizeof(*v));
	int err;

	if (!v)
		return -ENOMEM;
	err = wf_shm_import_hold(link, body, &v->hold);
	if (err) {
		free(v);
		return err;
	}
	v->views = views;
	v->offer = body->offer;
	v->priority = body->priority;
	v->link = link;
	wf_link_get(link);
	pthread_mutex_lock(&views->lock);
	wf_map_add(&views->map, &v->node, hash_of(views, v->hold.at));
	pthread_mutex_unlock(&views->lock);
	*view = v;
	return 0;
}

/* End a view that is no longer in the map. */
static void end(struct wf_view *v)
{
	struct wf_link *link = wf_link_real(v->link);
	uint32_t place = v->hold.place;
	bool alive = wf_shm_import_is_of(&v->hold, link);

	wf_shm_import_let(&v->hold);
	/*
	 * RELEASED is a hint: without memory or a link for it, the owner finds the end by
	 * itself.
	 */
	if (alive)
		(void)wf_message_post_small(link, v->priority, WF_RECORD_RELEASED, v->offer,
					    place, 0);
	wf_link_put(v->link);
	free(v);
}

void wf_view_close(struct wf_view *view)
{
	struct wf_views *views = view->views;

	pthread_mutex_lock(&views->lock);
	wf_map_remove(&views->map, &view->node);
	pthread_mutex_unlock(&views->lock);
	end(view);
}

static void end_given(struct wf_loop_task *task)
{
	end(WF_CONTAINER(task, struct wf_view, task));
}

/* Take any view that begins at @at from the map; the same bytes may be viewed twice. */
static struct wf_view *take(struct wf_views *views, const void *at)
{
	struct wf_map_node *node = NULL;

	while ((node = wf_map_find(&views->map, hash_of(views, at), node))) {
		struct wf_view *v = WF_CONTAINER(node, struct wf_view, node);

		if (v->hold.at != at)
			continue;
		wf_map_remove(&views->map, node);
		return v;
	}
	return NULL;
}

int wf_view_give(struct wf_views *views, const void *at)
{
	struct wf_view *v;

	pthread_mutex_lock(&views->lock);
	v = take(views, at);
	pthread_mutex_unlock(&views->lock);
	if (!v)
		return -EINVAL;
	v->task.run = end_given;
	wf_loop_submit(&views->engine->loop, &v->task);
	return 0;
}

void wf_view_fini(struct wf_views *views)
{
	struct wf_map_node *node;

	while ((node = wf_map_first(&views->map)))
		wf_view_close(WF_CONTAINER(node, struct wf_view, node));
	wf_map_fini(&views->map);
	pthread_mutex_destroy(&views->lock);
}
