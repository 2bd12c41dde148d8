/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slots: the receive slots of a rail.
 *
 * Threads: owner.
 */
#ifndef WF_SLOTS_H
#define WF_SLOTS_H

#include "fabric/post.h"

/* Slots that are made at once: 1 MiB of frames of 16 KiB. */
#define WF_SLOTS_STEP 64

/* A block of receive slots: one piece of memory, cut in equal frames. */
struct wf_slot_block {
	uint8_t *memory;
	size_t bytes;
	struct wf_mr *mr;        /* NULL where local memory needs no registration */
	struct wf_post posts[WF_SLOTS_STEP];
};

/* The receive slots of a rail; more blocks are made as slots are needed. */
struct wf_slots {
	uint32_t frame_bytes, count, most;
	struct wf_slot_block **blocks;
	struct wf_list refused;  /* slots to be posted again: the provider was full */
};

/* Make ready for @most slots, without any yet. */
int wf_slots_open(struct wf_rail *rail, uint32_t most, struct wf_error *e);
void wf_slots_close(struct wf_rail *rail);
/* Have @count slots, or the most there may be. */
int wf_slots_grow(struct wf_rail *rail, uint32_t count, struct wf_error *e);
void wf_slots_again(struct wf_rail *rail); /* post on a new endpoint every slot that is not held */
struct wf_post *wf_slots_at(struct wf_rail *rail, uint32_t slot);
void wf_slots_post(struct wf_rail *rail, struct wf_post *slot);
void wf_slots_retry(struct wf_rail *rail);

#endif
