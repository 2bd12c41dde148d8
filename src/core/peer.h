/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peer: the object behind struct weft_peer: another node, as users know it.
 */
#ifndef WF_CORE_PEER_H
#define WF_CORE_PEER_H

#include <weft/weft.h>
#include "core/peer_change.h"
#include "core/worker.h"

struct weft_peer {
	struct wf_list node;
	struct weft_node *owner;
	struct wf_worker *worker; /* where operations come in, in their order */
	struct wf_directory_home home; /* set only if the address was given */
	char *moved_address; /* address of a peer that dialled us, and moved to another worker */
	struct wf_worker *_Atomic at; /* the worker whose links reach the peer; see wf_peer_move */
	unsigned refs;            /* references of users */
	uint64_t request_id;      /* for the next call with retries; 0: none yet; under the lock */
	atomic_uint compressions; /* compressions the peer understands; 0: not met yet */
	char address[WF_SOCKET_ADDRESS_BYTES]; /* "": the peer dialled us */
	char name[WF_GREET_NAME_BYTES];
	char identity[WF_IDENTITY_BYTES]; /* under the lock; proven in its present, or last, life */
	bool met;                 /* under the lock: the peer was up, or has sent something */
	struct wf_link *link;     /* worker only; a reference, unless @lost; NULL: none */
	bool lost;                /* worker only; the peer dialled us and is dead: no link leads to it */
	atomic_bool told;         /* the program may hold this peer, which stays until the node closes */
	struct wf_peer_change *change; /* the listener, until the node closes; NULL: none yet */
};

/* Free @peer, which is in no list any more.  Threads: owner, setup. */
void wf_peer_free(struct weft_peer *peer);

/* Open the peer at @address for a user.  -ENOMEM: recorded.  Threads: any, callback. */
int wf_peer_open(struct weft_node *node, const char *address, struct weft_peer **peer);
/* Give up a user's reference.  Threads: any, callback. */
void wf_peer_close(struct weft_peer *peer);
/* Returns the name that the peer has given, or before that its address. */
const char *wf_peer_name(const struct weft_peer *peer);

/*
 * Find the link by which @worker reaches @peer, or make it.  -ENOTCONN: @peer dialled us, and is
 * gone.  Threads: owner.
 */
int wf_peer_link(struct weft_peer *peer, struct wf_worker *worker, struct wf_link **link,
		 struct wf_error *e);

/*
 * Move the peers at the other end of @link, which was never greeted, to worker @to, and with them
 * the operations that have begun.  Threads: owner of @link.
 */
void wf_peer_move(struct wf_worker *from, const struct wf_link *link, struct wf_worker *to);

/*
 * Returns the link that @worker has with @peer, maybe NULL.  NULL: there is none yet, or the peer
 * is another worker's, whose thread alone may look at the link.  Threads: owner.
 */
struct wf_link *wf_peer_link_known(const struct weft_peer *peer, const struct wf_worker *worker);

/* Does @peer, maybe NULL, stand for @link of @worker?  Threads: owner. */
bool wf_peer_is_reached_by(const struct weft_peer *peer, const struct wf_worker *worker,
			   const struct wf_link *link);

/*
 * Find the peer that stands for @link, or make it if no user has opened it.  NULL: no memory,
 * which does not happen once a tensor or call has come over @link.
 */
struct weft_peer *wf_peer_meet(struct wf_worker *worker, struct wf_link *link);

/* Find, or make, the peer that stands for @link, to tell the program of it. */
struct weft_peer *wf_peer_of(struct wf_worker *worker, struct wf_link *link);

/* Note that the program is told of @peer, while something holds its link.  Threads: any. */
static inline void wf_peer_tell(struct weft_peer *peer)
{
	atomic_store(&peer->told, true);
}

/* Let @peer, maybe NULL, stand for @link: a peer that a user opened goes before one we made. */
void wf_peer_stand_for(struct weft_peer *peer, struct wf_link *link);

/*
 * Copy the identity that @peer has proven.  -ENOTCONN: it was not met yet; -ENOSPC: recorded.
 * Threads: any, callback.
 */
int wf_peer_identity(struct weft_peer *peer, char *identity, size_t bytes);

/* Note the name that the peer of @link has given, and its identity. */
void wf_peer_met(const struct wf_worker *worker, const struct wf_link *link);

/*
 * Give up the reference to @link, whose peer is dead, if there is no address to dial it at: nobody
 * needs @link then but what came over it, and is still here.
 */
void wf_peer_down(struct wf_link *link);

/* Forget @link, which is about to be freed; and free its peer, if it is lost and was not told. */
void wf_peer_unlinked(const struct wf_link *link);

#endif
