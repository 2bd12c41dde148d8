/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/internal.h"

#include <stdlib.h>
#include <sys/mman.h>

int wf_slots_open(struct wf_rail *rail, uint32_t count, struct wf_error *e)
{
	struct wf_slots *s = &rail->slots;
	uint32_t i;
	int err;

	*s = (struct wf_slots){
		.frame_bytes = rail->caps.frame_bytes,
		.count = count,
		.bytes = (size_t)count * rail->caps.frame_bytes,
	};
	wf_list_init(&s->refused);
	s->memory = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->memory == MAP_FAILED) {
		s->memory = NULL;
		return wf_error_set(e, -ENOMEM, "no memory for %u receive slots of %u bytes",
				    count, s->frame_bytes);
	}
	s->posts = calloc(count, sizeof(*s->posts));
	if (!s->posts) {
		err = wf_error_set(e, -ENOMEM, "no memory for %u receive slots", count);
		goto unmap;
	}
	for (i = 0; i < count; i++) {
		s->posts[i].kind = WF_POST_SLOT;
		s->posts[i].notice.event = (struct wf_event){
			.kind = WF_EVENT_RECEIVED,
			.bytes = s->memory + (size_t)i * s->frame_bytes,
			.slot = i,
		};
		wf_list_init(&s->posts[i].node);
		wf_list_init(&s->posts[i].notice.node);
	}
	if (rail->caps.mr_local) {
		err = wf_mr_open(rail, s->memory, s->bytes, WF_ACCESS_LOCAL, &s->mr, e);
		if (err)
			goto free_posts;
	}
	return 0;

free_posts:
	free(s->posts);
unmap:
	munmap(s->memory, s->bytes);
	*s = (struct wf_slots){ 0 };
	return err;
}

void wf_slots_close(struct wf_rail *rail)
{
	struct wf_slots *s = &rail->slots;

	if (!s->memory)
		return;
	wf_mr_close(s->mr);
	free(s->posts);
	munmap(s->memory, s->bytes);
	*s = (struct wf_slots){ 0 };
}

static int try_post(struct wf_rail *rail, struct wf_post *slot)
{
	struct wf_slots *s = &rail->slots;
	struct fid_ep *to = rail->caps.connected ? rail->srx : rail->ep;
	uint8_t *bytes = s->memory + (size_t)slot->notice.event.slot * s->frame_bytes;
	int err;

	if (!to)
		return -ENOTCONN; /* reopening has failed; it may be tried again */
	/* A new id each time: a completion that comes twice must find nothing. */
	err = wf_table_add(&rail->posts, slot, &slot->id);
	if (err)
		return err;
	err = -FI_EAGAIN;
	if (wf_gate_enter(&rail->gate)) {
		err = (int)WF_RAIL_CALL(rail, fi_recv, to, bytes, s->frame_bytes,
					wf_mr_desc(s->mr), FI_ADDR_UNSPEC, (void *)slot->id);
		wf_gate_leave(&rail->gate);
	}
	if (err) {
		wf_table_remove(&rail->posts, slot->id);
		slot->id = 0;
	}
	return err;
}

void wf_slots_post(struct wf_rail *rail, struct wf_post *slot)
{
	wf_table_remove(&rail->posts, slot->id);
	slot->id = 0;
	slot->held = false;
	/* Whatever the reason, a slot is never given up: it is tried again at each poll. */
	if (try_post(rail, slot))
		wf_list_append(&rail->slots.refused, &slot->node);
}

void wf_slots_retry(struct wf_rail *rail)
{
	struct wf_list *node;

	while ((node = wf_list_first(&rail->slots.refused))) {
		if (try_post(rail, WF_CONTAINER(node, struct wf_post, node)))
			return;
		wf_list_remove(node);
	}
}

int wf_slots_fill(struct wf_rail *rail, struct wf_error *e)
{
	struct wf_slots *s = &rail->slots;

	for (uint32_t i = 0; i < s->count; i++) {
		int err = try_post(rail, &s->posts[i]);

		if (err && err != -FI_EAGAIN && err != -FI_ENOMEM)
			return wf_error_set(e, err, "%s takes no receive: %s", rail->caps.provider,
					    wf_error_name(err));
		if (err) /* full for now; its queue has the room it promised */
			wf_list_append(&s->refused, &s->posts[i].node);
	}
	return 0;
}

void wf_slots_again(struct wf_rail *rail)
{
	struct wf_slots *s = &rail->slots;
	uint32_t i;

	wf_list_init(&s->refused);
	for (i = 0; i < s->count; i++) {
		wf_list_init(&s->posts[i].node);
		if (!s->posts[i].held)
			wf_slots_post(rail, &s->posts[i]);
	}
}
