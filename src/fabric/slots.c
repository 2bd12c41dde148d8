/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/internal.h"

#include <stdlib.h>
#include <sys/mman.h>

int wf_slots_open(struct wf_rail *rail, uint32_t most, struct wf_error *e)
{
	struct wf_slots *s = &rail->slots;

	*s = (struct wf_slots){ .frame_bytes = rail->caps.frame_bytes, .most = most };
	wf_list_init(&s->refused);
	s->blocks = calloc((most + WF_SLOTS_STEP - 1) / WF_SLOTS_STEP, sizeof(*s->blocks));
	return s->blocks ? 0 : wf_error_set(e, -ENOMEM, "no memory for receive slots");
}

static void close_block(struct wf_slot_block *block)
{
	wf_mr_close(block->mr);
	munmap(block->memory, block->bytes);
	free(block);
}

void wf_slots_close(struct wf_rail *rail)
{
	struct wf_slots *s = &rail->slots;

	for (uint32_t i = 0; i < s->count; i += WF_SLOTS_STEP)
		close_block(s->blocks[i / WF_SLOTS_STEP]);
	free(s->blocks);
	*s = (struct wf_slots){ 0 };
}

static int no_memory(const struct wf_rail *rail, uint32_t count, struct wf_error *e)
{
	return wf_error_set(e, -ENOMEM, "no memory for %u receive slots of %u bytes", count,
			    rail->slots.frame_bytes);
}

/* Make a block of @count slots, the first of which has the number @first. */
static int open_block(struct wf_rail *rail, uint32_t first, uint32_t count,
		      struct wf_slot_block **block, struct wf_error *e)
{
	struct wf_slot_block *b = calloc(1, sizeof(*b));
	size_t frame_bytes = rail->slots.frame_bytes;
	int err;

	if (!b)
		return no_memory(rail, count, e);
	b->bytes = count * frame_bytes;
	b->memory = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b->memory == MAP_FAILED) {
		err = no_memory(rail, count, e);
		goto free_block;
	}
	if (rail->caps.memory.local) {
		err = wf_mr_open(rail, b->memory, b->bytes, WF_ACCESS_LOCAL, &b->mr, e);
		if (err)
			goto unmap;
		wf_mr_set_kind(b->mr, WF_COUNTERS_POOL);
	}
	for (uint32_t i = 0; i < count; i++) {
		b->posts[i].kind = WF_POST_SLOT;
		b->posts[i].notice.event = (struct wf_rail_event){
			.kind = WF_EVENT_RECEIVED,
			.bytes = b->memory + i * frame_bytes,
			.slot = first + i,
		};
		wf_list_init(&b->posts[i].node);
		wf_list_init(&b->posts[i].notice.node);
	}
	*block = b;
	return 0;

unmap:
	munmap(b->memory, b->bytes);
free_block:
	free(b);
	return err;
}

struct wf_post *wf_slots_at(struct wf_rail *rail, uint32_t slot)
{
	return &rail->slots.blocks[slot / WF_SLOTS_STEP]->posts[slot % WF_SLOTS_STEP];
}

static int try_post(struct wf_rail *rail, struct wf_post *slot)
{
	struct wf_slots *s = &rail->slots;
	struct fid_ep *to = rail->caps.connected ? rail->conns.srx : rail->shared.ep;
	const struct wf_slot_block *block = s->blocks[slot->notice.event.slot / WF_SLOTS_STEP];
	int err;

	if (!to)
		return -ENOTCONN; /* reopening has failed, and may be tried again */
	/* A slot gets a new id each time: a completion that comes twice must find nothing. */
	err = wf_table_add(&rail->posts, slot, &slot->id);
	if (err)
		return err;
	err = -FI_EAGAIN;
	if (wf_gate_enter(&rail->shared.gate)) {
		err = (int)WF_RAIL_CALL(rail, fi_recv, to, (void *)slot->notice.event.bytes,
					s->frame_bytes, wf_mr_desc(block->mr), FI_ADDR_UNSPEC,
					(void *)slot->id);
		wf_gate_leave(&rail->shared.gate);
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
	/* A slot is never given up, whatever the reason: each poll tries it again. */
	if (try_post(rail, slot))
		wf_list_append(&rail->slots.refused, &slot->node);
}

void wf_slots_retry(struct wf_rail *rail)
{
	struct wf_list *node;
	bool any = false;

	while ((node = wf_list_first(&rail->slots.refused)) &&
	       !try_post(rail, WF_CONTAINER(node, struct wf_post, node))) {
		wf_list_remove(node);
		any = true;
	}
	if (!any)
		return;
	/* A message that has waited for slots rings no more, so every queue is read. */
	WF_LIST_EACH(at, &rail->queues.all)
		wf_cq_warm(rail, WF_CONTAINER(at, struct wf_cq, node));
}

/* Post the slots from number @first on, for the first time. */
static int fill(struct wf_rail *rail, uint32_t first, struct wf_error *e)
{
	struct wf_slots *s = &rail->slots;

	for (uint32_t i = first; i < s->count; i++) {
		int err = try_post(rail, wf_slots_at(rail, i));

		if (err && err != -FI_EAGAIN && err != -FI_ENOMEM)
			return wf_error_set(e, err, "%s takes no receive: %s", rail->caps.provider,
					    wf_error_name(err));
		if (err) /* the provider is full for now; it promised the room */
			wf_list_append(&s->refused, &wf_slots_at(rail, i)->node);
	}
	return 0;
}

int wf_slots_grow(struct wf_rail *rail, uint32_t count, struct wf_error *e)
{
	struct wf_slots *s = &rail->slots;

	while (s->count < WF_MIN(count, s->most)) {
		uint32_t first = s->count, more = WF_MIN(s->most - first, WF_SLOTS_STEP);
		int err = open_block(rail, first, more, &s->blocks[first / WF_SLOTS_STEP], e);

		if (err)
			return err;
		s->count += more;
		err = fill(rail, first, e);
		if (err)
			return err;
	}
	return 0;
}

void wf_slots_again(struct wf_rail *rail)
{
	struct wf_slots *s = &rail->slots;

	wf_list_init(&s->refused);
	for (uint32_t i = 0; i < s->count; i++) {
		struct wf_post *slot = wf_slots_at(rail, i);

		wf_list_init(&slot->node);
		if (!slot->held)
			wf_slots_post(rail, slot);
	}
}
