/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Room: how many bytes of eager tensors may wait at either end of a link.
 *
 * Threads: owner.
 */
#ifndef WF_ROOM_H
#define WF_ROOM_H

#include "util/base.h"

struct wf_link;

/* In bytes counted up.  Until the peer dies, but for @held: tensors of earlier lives wait on. */
struct wf_room {
	uint64_t granted, spent;    /* at the peer, for ours */
	uint64_t total, told, used; /* here, for the peer's: granted, as last told, and used */
	uint64_t held;              /* of its tensors that wait here, also from earlier lives */
};

/* The peer has been greeted: what its earlier lives have left here takes its part. */
void wf_room_begin(struct wf_link *link);

/* May the peer take @bytes more of eager tensors?  Takes them if so. */
bool wf_room_take(struct wf_link *link, uint64_t bytes);

/* The peer has sent an eager tensor of @bytes.  false: it had no room for that. */
bool wf_room_use(struct wf_link *link, uint64_t bytes);

/* The tensor could not be taken after all, and comes again. */
void wf_room_unuse(struct wf_link *link, uint64_t bytes);

/* @bytes of eager tensors of this peer have found their receiver. */
void wf_room_give(struct wf_link *link, uint64_t bytes);

#endif
