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

/*
 * Eager bytes, counted up.  Valid until the peer dies, but for @held: tensors of earlier lives wait
 * on.
 */
struct wf_room {
	uint64_t granted, spent;    /* room at the peer for our tensors */
	uint64_t total, told, used; /* room here for the peer's: granted, as last told, and used */
	uint64_t held;              /* bytes of its tensors that wait here, of earlier lives, too */
};

/*
 * Start the room of a peer that has been greeted: tensors left by its earlier lives take their
 * part.
 */
void wf_room_begin(struct wf_link *link);

/* May the peer take @bytes more of eager tensors?  Takes the room if so. */
bool wf_room_take(struct wf_link *link, uint64_t bytes);

/*
 * Use room here for an eager tensor of @bytes from the peer.  false: the peer had no room for it.
 */
bool wf_room_use(struct wf_link *link, uint64_t bytes);

/* Undo wf_room_use(): the tensor could not be taken after all, and comes again. */
void wf_room_unuse(struct wf_link *link, uint64_t bytes);

/* Return room: @bytes of eager tensors of this peer have found their receiver. */
void wf_room_give(struct wf_link *link, uint64_t bytes);

#endif
