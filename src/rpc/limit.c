/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/limit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* A peer with calls of a service. */
struct wf_limit_peer {
	struct wf_map_node node; /* in limit->peers */
	const void *key;         /* address that stands for the peer */
	uint32_t let;            /* tickets past the peer's queue, running or not */
	struct wf_list queue;
};

int wf_limits_init(struct wf_limits *limits)
{
	return -pthread_mutex_init(&limits->lock, NULL);
}

void wf_limits_fini(struct wf_limits *limits)
{
	pthread_mutex_destroy(&limits->lock);
}

void wf_limit_init(struct wf_limit *limit, uint32_t calls_max, uint32_t calls_per_peer,
		   uint32_t queue_max)
{
	*limit = (struct wf_limit){
		.calls_max = calls_max, .calls_per_peer = calls_per_peer, .queue_max = queue_max,
	};
	wf_list_init(&limit->queue);
	if (calls_per_peer)
		wf_map_init(&limit->peers);
}

void wf_limit_fini(struct wf_limit *limit)
{
	wf_map_fini(&limit->peers);
}

/* Functions that run under the lock. */

static struct wf_limit_ticket *first(const struct wf_list *queue)
{
	struct wf_list *node = wf_list_first(queue);

	return node ? WF_CONTAINER(node, struct wf_limit_ticket, node) : NULL;
}

static uint64_t hash_of(const struct wf_limit *limit, const void *key)
{
	return wf_map_hash(&limit->peers, 0, &key, sizeof(key));
}

/* Returns the peer that @key stands for, made if there is none.  NULL: no memory. */
static struct wf_limit_peer *peer_of(struct wf_limit *limit, const void *key)
{
	uint64_t hash = hash_of(limit, key);
	struct wf_map_node *node = NULL;
	struct wf_limit_peer *peer;

	while ((node = wf_map_find(&limit->peers, hash, node))) {
		peer = WF_CONTAINER(node, struct wf_limit_peer, node);
		if (peer->key == key)
			return peer;
	}
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->key = key;
	wf_list_init(&peer->queue);
	wf_map_add(&limit->peers, &peer->node, hash);
	return peer;
}

static void drop_idle_peer(struct wf_limit *limit, struct wf_limit_peer *peer)
{
	if (!peer || peer->let || !wf_list_empty(&peer->queue))
		return;
	wf_map_remove(&limit->peers, &peer->node);
	free(peer);
}

static bool is_full(const struct wf_limit *limit)
{
	return limit->calls_max && limit->running >= limit->calls_max;
}

static bool is_full_for(const struct wf_limit *limit, const struct wf_limit_peer *peer)
{
	return peer && peer->let >= limit->calls_per_peer;
}

static void let(struct wf_limit_ticket *t)
{
	t->let = true;
	if (t->peer)
		t->peer->let++;
}

static void tell(struct wf_limit_turns *turns)
{
	if (turns->told)
		return;
	turns->told = true;
	wf_loop_submit(turns->loop, &turns->task);
}

/* Let tickets go on after one has left: the next of its peer, and of the service. */
static void move_up(struct wf_limit *limit, struct wf_limit_peer *peer)
{
	struct wf_limit_ticket *t;

	while (peer && !is_full_for(limit, peer) && (t = first(&peer->queue))) {
		wf_list_remove(&t->node);
		let(t);
		wf_list_append(&limit->queue, &t->node);
	}
	while (!is_full(limit) && (t = first(&limit->queue))) {
		wf_list_remove(&t->node);
		limit->waiting--;
		limit->running++;
		t->state = WF_TICKET_COME;
		wf_list_append(&t->turns->all, &t->node);
		tell(t->turns);
	}
}

static void queue_up(struct wf_limit *limit, struct wf_limit_ticket *t)
{
	t->state = WF_TICKET_WAITING;
	limit->waiting++;
	if (is_full_for(limit, t->peer)) {
		wf_list_append(&t->peer->queue, &t->node);
		return;
	}
	let(t);
	wf_list_append(&limit->queue, &t->node);
}

static int refuse(const struct wf_limit *limit, const struct wf_limit_peer *peer,
		  struct wf_error *e)
{
	if (is_full_for(limit, peer))
		return wf_error_set(e, -ENOBUFS,
				    "too many calls of one peer: %u run (calls_per_peer), and %u wait (queue_max)",
				    limit->calls_per_peer, limit->waiting);
	return wf_error_set(e, -ENOBUFS,
			    "too many calls: %u run (calls_max), and %u wait (queue_max)",
			    limit->calls_max, limit->waiting);
}

static int enter(struct wf_limit *limit, const void *key, struct wf_limit_ticket *t,
		 struct wf_error *e)
{
	int err = 0;

	if (limit->calls_per_peer) {
		t->peer = peer_of(limit, key);
		if (!t->peer)
			return wf_error_set(e, -ENOMEM, "no memory to count the calls of a peer");
	}
	if (!is_full_for(limit, t->peer) && !is_full(limit)) {
		t->state = WF_TICKET_RUNNING;
		limit->running++;
		let(t);
	} else if (limit->waiting < limit->queue_max) {
		queue_up(limit, t);
		err = -EINPROGRESS;
	} else {
		err = refuse(limit, t->peer, e);
		drop_idle_peer(limit, t->peer);
	}
	return err;
}

static void leave(struct wf_limit_ticket *t)
{
	struct wf_limit *limit = t->limit;
	struct wf_limit_peer *peer = t->peer;

	wf_list_remove(&t->node);
	if (t->state == WF_TICKET_WAITING)
		limit->waiting--;
	else
		limit->running--;
	if (peer)
		peer->let -= t->let;
	move_up(limit, peer);
	drop_idle_peer(limit, peer);
}

/* Functions that take the lock. */

int wf_limit_enter(struct wf_limit *limit, struct wf_limit_turns *turns, const void *peer,
		   struct wf_limit_ticket *t, struct wf_error *e)
{
	int err;

	if (!limit->calls_max && !limit->calls_per_peer)
		return 0;
	t->limit = limit;
	t->turns = turns;
	wf_list_init(&t->node);
	pthread_mutex_lock(&turns->limits->lock);
	err = enter(limit, peer, t, e);
	pthread_mutex_unlock(&turns->limits->lock);
	if (err && err != -EINPROGRESS)
		*t = (struct wf_limit_ticket){ 0 };
	return err;
}

void wf_limit_leave(struct wf_limit_ticket *t)
{
	if (!t->limit)
		return;
	pthread_mutex_lock(&t->turns->limits->lock);
	leave(t);
	pthread_mutex_unlock(&t->turns->limits->lock);
	*t = (struct wf_limit_ticket){ 0 };
}

/* Take the next ticket whose turn has come; NULL: the loop has heard of all. */
static struct wf_limit_ticket *take(struct wf_limit_turns *turns)
{
	struct wf_limit_ticket *t;

	pthread_mutex_lock(&turns->limits->lock);
	t = first(&turns->all);
	if (t) {
		wf_list_remove(&t->node);
		t->state = WF_TICKET_RUNNING;
	} else {
		turns->told = false;
	}
	pthread_mutex_unlock(&turns->limits->lock);
	return t;
}

static void run(struct wf_loop_task *task)
{
	struct wf_limit_turns *turns = WF_CONTAINER(task, struct wf_limit_turns, task);
	struct wf_limit_ticket *t;

	while ((t = take(turns)))
		turns->come(t);
}

void wf_limit_turns_init(struct wf_limit_turns *turns, struct wf_limits *limits,
			 struct wf_loop *loop, void (*come)(struct wf_limit_ticket *ticket))
{
	*turns = (struct wf_limit_turns){
		.limits = limits, .loop = loop, .come = come, .task.run = run,
	};
	wf_list_init(&turns->all);
}

void wf_limit_describe(const struct wf_limit_ticket *t, char *text, size_t bytes)
{
	const struct wf_limit *limit = t->limit;

	pthread_mutex_lock(&t->turns->limits->lock);
	if (t->let)
		(void)snprintf(text, bytes, "it waits, with %u of its service (calls_max %u)",
			       limit->waiting, limit->calls_max);
	else
		(void)snprintf(text, bytes, "it waits for others of its peer (calls_per_peer %u)",
			       limit->calls_per_peer);
	pthread_mutex_unlock(&t->turns->limits->lock);
}
