/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peer: the object behind struct weft_peer: another node, as users know it.
 */
#ifndef WF_CORE_PEER_H
#define WF_CORE_PEER_H

#include <weft/weft.h>
#include "core/desk.h"

struct weft_peer {
	struct wf_list node;
	struct weft_node *owner;
	struct wf_desk *desk;     /* where its operations come in, in their order */
	struct wf_home home;      /* only if its address is given */
	char *moved_address;      /* of who had come by himself, and has another desk now */
	struct wf_desk *_Atomic at; /* whose links it is reached by: another only after wf_peer_move */
	unsigned refs;            /* of users */
	bool keep;                /* handed out by weft_op_peer: stays */
	uint64_t request_id;      /* of the next call that may be made again; 0: there was none; under the lock */
	atomic_uint compressions; /* that it understands; 0: not met yet */
	char address[WF_SOCKET_ADDRESS_BYTES]; /* "": it dialled us */
	char name[WF_GREET_NAME_BYTES];
	struct wf_link *link;     /* worker only; a reference; NULL: not used yet */
};

/* It is in no list any more.  Threads: setup. */
void wf_peer_free(struct weft_peer *peer);

/* For a user, by its address: -ENOMEM: recorded.  Threads: any, callback. */
int wf_peer_open(struct weft_node *node, const char *address, struct weft_peer **peer);
void wf_peer_close(struct weft_peer *peer);
/* As it has said, or its address before that. */
const char *wf_peer_name(const struct weft_peer *peer);

/* The link by which @peer is reached from @desk, made if there is none.  Threads: owner. */
int wf_peer_link(struct weft_peer *peer, struct wf_desk *desk, struct wf_link **link,
		 struct wf_error *e);

/*
 * Whoever is at the other end of @link, which was never greeted, is reached from desk @to:
 * peers and what was begun with them go there.  Threads: owner of @link.
 */
void wf_peer_move(struct wf_desk *from, const struct wf_link *link, struct wf_desk *to);

/*
 * The peer that stands for @link, made if nobody has opened it.  NULL: no memory;
 * not any more once a tensor or call has come over it.
 */
struct weft_peer *wf_peer_of(struct wf_desk *desk, struct wf_link *link);

/* @peer, if any, stands for @link from now on: one that a user opened by its address rather than one we made. */
void wf_peer_stand_for(struct weft_peer *peer, struct wf_link *link);

/* The peer that stands for @link has said its name. */
void wf_peer_met(const struct wf_desk *desk, const struct wf_link *link);

#endif
