/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peer change: a listener to what becomes of a peer.
 *
 * The link tells the worker that its peer is up, drains or is dead; the listeners of all peers that
 * the link stands for are told by a notice, outside the library's own work.
 *
 * Threads: owner of the peer's worker, unless a function says otherwise.
 */
#ifndef WF_CORE_PEER_CHANGE_H
#define WF_CORE_PEER_CHANGE_H

#include <weft/weft.h>
#include "link/link.h"

struct wf_peer_change;
struct wf_worker;

/* A program's callback. */
struct wf_peer_change_listener {
	void (*changed)(struct weft_peer *peer, enum weft_peer_state state, const char *why,
			void *arg); /* NULL: none */
	void *arg;
};

/* Let @listener hear of @peer, in the place of any before.  -ENOMEM: recorded.  Threads: any. */
int wf_peer_change_listen(struct weft_peer *peer, struct wf_peer_change_listener listener);

/* Note that the peer of @link is up or drains; or with @e that it is gone. */
void wf_peer_change_note(struct wf_worker *worker, const struct wf_link *link,
			 const struct wf_error *e);

/* Let worker @to tell what @peer, which moves there, is yet to tell.  Under the node's lock. */
void wf_peer_change_move(struct weft_peer *peer, struct wf_worker *to);

/* Free @change, whose node has no worker any more.  Accepts NULL. */
void wf_peer_change_free(struct wf_peer_change *change);

#endif
