/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers: opened by users, or made for a node that dials us and sends a record.
 *
 * A peer stays until the node closes, as operations and the program may name it; but for one that
 * dialled us, is dead, and was never told to the program.
 */
#include "core/peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/last.h"
#include "core/node.h"
#include "core/op.h"
#include "core/peer_change.h"
#include "core/worker.h"

/*
 * Make a peer for @address, @worker NULL, or for a link of @worker.  Threads: any, under the lock.
 */
static struct weft_peer *new_peer(struct weft_node *node, struct wf_worker *worker,
				  const char *address)
{
	struct weft_peer *peer = calloc(1, sizeof(*peer));

	if (!peer)
		return NULL;
	snprintf(peer->address, sizeof(peer->address), "%s", address);
	if (!worker) {
		wf_directory_place(&node->directory, &peer->home, peer->address, NULL);
		worker = WF_CONTAINER(peer->home.engine, struct wf_worker, engine);
	}
	peer->owner = node;
	peer->worker = worker;
	atomic_init(&peer->at, worker);
	wf_list_append(&node->peers, &peer->node);
	return peer;
}

void wf_peer_free(struct weft_peer *peer)
{
	if (peer->link && !peer->lost)
		wf_link_put(peer->link);
	if (peer->home.engine)
		wf_directory_leave(&peer->owner->directory, &peer->home);
	wf_peer_change_free(peer->change);
	free(peer->moved_address);
	free(peer);
}

static struct weft_peer *find_peer(const struct weft_node *node, const char *address)
{
	WF_LIST_EACH(at, &node->peers) {
		struct weft_peer *peer = WF_CONTAINER(at, struct weft_peer, node);

		if (!strcmp(peer->address, address))
			return peer;
	}
	return NULL;
}

int wf_peer_open(struct weft_node *node, const char *address, struct weft_peer **peer)
{
	struct weft_peer *found;

	pthread_mutex_lock(&node->lock);
	found = find_peer(node, address);
	if (!found)
		found = new_peer(node, NULL, address);
	if (found)
		found->refs++;
	pthread_mutex_unlock(&node->lock);
	if (!found)
		return wf_last_set(-ENOMEM, "no memory for a peer");
	*peer = found;
	return 0;
}

void wf_peer_close(struct weft_peer *peer)
{
	pthread_mutex_lock(&peer->owner->lock);
	peer->refs--;
	pthread_mutex_unlock(&peer->owner->lock);
}

const char *wf_peer_name(const struct weft_peer *peer)
{
	const char *name;

	pthread_mutex_lock(&peer->owner->lock);
	name = peer->name[0] ? peer->name : peer->address;
	pthread_mutex_unlock(&peer->owner->lock);
	return name;
}

/* Peers and links. */

void wf_peer_stand_for(struct weft_peer *peer, struct wf_link *link)
{
	const struct weft_peer *now = link->user;

	if (peer && (!now || (!now->address[0] && peer->address[0])))
		link->user = peer;
}

int wf_peer_identity(struct weft_peer *peer, char *identity, size_t bytes)
{
	size_t need = 0;
	bool met;

	pthread_mutex_lock(&peer->owner->lock);
	met = peer->met;
	if (met)
		need = (size_t)snprintf(identity, bytes, "%s", peer->identity) + 1;
	pthread_mutex_unlock(&peer->owner->lock);
	if (!met)
		return wf_last_set(-ENOTCONN, "the peer was not met yet");
	if (need > bytes)
		return wf_last_set(-ENOSPC, "the identity has %zu bytes, and the room %zu", need,
				   bytes);
	return 0;
}

/* Note who the peer of @link is.  Under the lock. */
static void note_met(struct weft_peer *peer, const struct wf_link *link)
{
	peer->met = true;
	memcpy(peer->identity, link->seals.identity, sizeof(peer->identity));
}

void wf_peer_met(const struct wf_worker *worker, const struct wf_link *link)
{
	struct weft_peer *peer = link->user;

	if (!peer)
		return;
	pthread_mutex_lock(&worker->node->lock);
	note_met(peer, link);
	if (!peer->name[0])
		memcpy(peer->name, link->name, sizeof(peer->name));
	pthread_mutex_unlock(&worker->node->lock);
	atomic_store(&peer->compressions, link->peer->compressions);
}

/*
 * Set the link of @peer.  Other threads look at the link, and for it at the worker, under the lock
 * of what waits there.
 */
static void point_to(struct weft_peer *peer, struct wf_link *link, struct wf_worker *at)
{
	struct wf_unexpected_queue *waiting = &peer->at->unexpected_queue;

	pthread_mutex_lock(&waiting->lock);
	peer->link = link;
	peer->at = at;
	pthread_mutex_unlock(&waiting->lock);
}

/* Set the link of @peer, and give up the one before. */
static void set_link(struct weft_peer *peer, struct wf_link *link, struct wf_worker *at)
{
	struct wf_link *before = peer->link;

	point_to(peer, link, at);
	if (before)
		wf_link_put(before);
}

int wf_peer_link(struct weft_peer *peer, struct wf_worker *worker, struct wf_link **link,
		 struct wf_error *e)
{
	struct wf_link *real;
	int err;

	/* Without a reference the link's memory is about to be freed. */
	if (peer->lost && (!peer->link || !peer->link->refs))
		return wf_error_set(e, -ENOTCONN, "%s is gone, and its address is not known",
				    peer->name[0] ? peer->name : "a peer without a name");
	/* The link was another name of a link whose life is over. */
	if (peer->link && peer->link->same && !peer->link->address[0] &&
	    (peer->address[0] || peer->moved_address))
		set_link(peer, NULL, worker);
	if (!peer->link) {
		err = wf_link_open(&worker->engine,
				   peer->moved_address ? peer->moved_address : peer->address,
				   &real, e);
		if (err)
			return err;
		set_link(peer, real, worker);
	}
	real = wf_link_real(peer->link);
	wf_peer_stand_for(peer, real);
	*link = real;
	return 0;
}

struct weft_peer *wf_peer_meet(struct wf_worker *worker, struct wf_link *link)
{
	struct weft_node *node = worker->node;
	struct weft_peer *peer;

	link = wf_link_real(link);
	if (link->user)
		return link->user;
	pthread_mutex_lock(&node->lock);
	/* No address is set: a user who opens the link's address gets another peer. */
	peer = new_peer(node, worker, "");
	if (peer) {
		memcpy(peer->name, link->name, sizeof(peer->name));
		note_met(peer, link);
	}
	pthread_mutex_unlock(&node->lock);
	if (!peer)
		return NULL;
	peer->link = link;
	wf_link_get(link);
	link->user = peer;
	return peer;
}

struct weft_peer *wf_peer_of(struct wf_worker *worker, struct wf_link *link)
{
	struct weft_peer *peer = wf_peer_meet(worker, link);

	if (peer)
		wf_peer_tell(peer);
	return peer;
}

void wf_peer_down(struct wf_link *link)
{
	struct weft_peer *peer = link->user;

	if (link->state != WF_LINK_GONE || link->address[0] || !peer || peer->link != link ||
	    peer->lost || peer->address[0] || peer->moved_address)
		return;
	/* Tensors that came whole are received by the name of their peer until they are gone, too. */
	peer->lost = true;
	wf_link_put(link);
}

void wf_peer_unlinked(const struct wf_link *link)
{
	struct weft_peer *peer = link->user;
	struct weft_node *node;

	if (!peer || !peer->lost || peer->link != link)
		return;
	point_to(peer, NULL, peer->at);
	if (atomic_load(&peer->told))
		return;
	node = peer->owner;
	pthread_mutex_lock(&node->lock);
	wf_list_remove(&peer->node);
	pthread_mutex_unlock(&node->lock);
	wf_peer_free(peer);
}

struct wf_link *wf_peer_link_known(const struct weft_peer *peer, const struct wf_worker *worker)
{
	/* The worker is compared first, as the link is its own. */
	return peer && peer->at == worker && peer->link ? wf_link_real(peer->link) : NULL;
}

bool wf_peer_is_reached_by(const struct weft_peer *peer, const struct wf_worker *worker,
			   const struct wf_link *link)
{
	return wf_peer_link_known(peer, worker) == link;
}

/* Give up the peer's link here; another is made at worker @to. */
static void move(struct weft_peer *peer, struct wf_worker *to)
{
	struct wf_directory *d = &to->node->directory;

	if (!peer->address[0] && !peer->moved_address)
		peer->moved_address = strdup(wf_link_real(peer->link)->address);
	wf_peer_change_move(peer, to);
	set_link(peer, NULL, to);
	if (peer->home.engine) {
		wf_directory_leave(d, &peer->home);
		wf_directory_enter(d, &peer->home, &to->engine, peer->address);
	}
}

/*
 * Operations move in the order in which they were made, ahead of later ones, which still come
 * in at the peer's first worker and are passed on from there.
 */
void wf_peer_move(struct wf_worker *from, const struct wf_link *link, struct wf_worker *to)
{
	struct weft_node *node = from->node;

	pthread_mutex_lock(&node->lock);
	WF_LIST_EACH(at, &node->ops) {
		struct weft_op *op = WF_CONTAINER(at, struct weft_op, node);

		if (op->worker == from && wf_peer_is_reached_by(op->peer, from, link))
			wf_op_take_back(op);
	}
	WF_LIST_EACH(at, &node->peers) {
		struct weft_peer *peer = WF_CONTAINER(at, struct weft_peer, node);

		if (wf_peer_is_reached_by(peer, from, link))
			move(peer, to);
	}
	WF_LIST_EACH(at, &node->ops) {
		struct weft_op *op = WF_CONTAINER(at, struct weft_op, node);

		if (op->worker == from)
			wf_op_move(op, to);
	}
	pthread_mutex_unlock(&node->lock);
}
