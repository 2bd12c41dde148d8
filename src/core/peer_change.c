/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/peer_change.h"

#include <errno.h>
#include <stdlib.h>

#include "core/check.h"
#include "core/last.h"
#include "core/node.h"
#include "core/peer.h"
#include "core/turn.h"
#include "util/clock.h"
#include "util/reason.h"

struct wf_peer_change {
	struct weft_peer *peer;

	struct wf_peer_change_listener listener; /* under the node's lock */

	atomic_bool looking; /* look_task is under way */
	struct wf_loop_task look_task;
	struct wf_worker *worker; /* the worker that look_task runs at */

	/* owner of peer->at only */
	enum weft_peer_state told; /* the last; 0: none */
	bool due;                  /* the notice is under way */
	struct wf_reason gone;     /* why the peer has gone since the last notice; or none */
	struct wf_loop_notice notice;
};

static void tell(struct wf_peer_change *c, enum weft_peer_state state, const char *why)
{
	struct weft_node *node = c->peer->owner;
	struct wf_peer_change_listener l;

	c->told = state;
	pthread_mutex_lock(&node->lock);
	l = c->listener;
	pthread_mutex_unlock(&node->lock);
	if (l.changed)
		l.changed(c->peer, state, why, l.arg);
}

/* Returns what @peer is now; 0: it was not met, or is gone. */
static enum weft_peer_state state_of(const struct weft_peer *peer)
{
	const struct wf_link *link = peer->link ? wf_link_real(peer->link) : NULL;

	if (!link || link->stage < WF_LINK_STAGE_PROVED)
		return 0;
	return link->above.drains ? WEFT_PEER_DRAINING : WEFT_PEER_UP;
}

static void run_notice(struct wf_loop_notice *notice)
{
	struct wf_peer_change *c = WF_CONTAINER(notice, struct wf_peer_change, notice);
	struct wf_reason gone = c->gone;
	enum weft_peer_state state;

	c->due = false;
	c->gone = (struct wf_reason){ 0 };
	if (gone.code)
		tell(c, WEFT_PEER_GONE, wf_reason_text(&gone));
	wf_reason_drop(&gone);
	/* The callback may have forked: the child has no node. */
	if (atomic_load(&c->peer->owner->forked))
		return;
	state = state_of(c->peer);
	if (state && state != c->told)
		tell(c, state, "");
}

static void defer(struct wf_peer_change *c, struct wf_worker *worker)
{
	if (c->due)
		return;
	c->due = true;
	c->notice.run = run_notice;
	wf_loop_defer(&worker->engine.loop, &c->notice);
}

void wf_peer_change_note(struct wf_worker *worker, const struct wf_link *link,
			 const struct wf_error *e)
{
	struct weft_node *node = worker->node;

	if (!atomic_load(&node->heard) || node->closing)
		return;
	pthread_mutex_lock(&node->lock);
	WF_LIST_EACH(at, &node->peers) {
		struct weft_peer *peer = WF_CONTAINER(at, struct weft_peer, node);

		if (!peer->change || !wf_peer_is_reached_by(peer, worker, link))
			continue;
		if (e)
			wf_reason_keep(&peer->change->gone, e);
		defer(peer->change, worker);
	}
	pthread_mutex_unlock(&node->lock);
}

/* Tell a new listener what is so already. */
static void look(struct wf_loop_task *task)
{
	struct wf_peer_change *c = WF_CONTAINER(task, struct wf_peer_change, look_task);
	struct wf_worker *at = c->peer->at;

	if (at != c->worker) {
		c->worker = at;
		wf_loop_submit(&at->engine.loop, task);
		return;
	}
	atomic_store(&c->looking, false);
	c->told = 0;
	defer(c, at);
}

void wf_peer_change_move(struct weft_peer *peer, struct wf_worker *to)
{
	struct wf_peer_change *c = peer->change;

	if (!c || !c->due)
		return;
	wf_list_remove(&c->notice.node);
	c->due = false;
	if (atomic_exchange(&c->looking, true))
		return; /* the task that looks finds its way */
	c->worker = to;
	c->look_task.run = look;
	wf_loop_submit(&to->engine.loop, &c->look_task);
}

int wf_peer_change_listen(struct weft_peer *peer, struct wf_peer_change_listener listener)
{
	struct weft_node *node = peer->owner;
	struct wf_peer_change *c;
	int err = wf_check_node(node);

	if (err)
		return err;
	pthread_mutex_lock(&node->lock);
	if (!peer->change) {
		peer->change = calloc(1, sizeof(*peer->change));
		atomic_store(&node->heard, true);
	}
	c = peer->change;
	if (c) {
		c->peer = peer;
		c->listener = listener;
	}
	pthread_mutex_unlock(&node->lock);
	if (!c)
		return wf_last_set(-ENOMEM, "no memory to listen to a peer");
	if (!atomic_exchange(&c->looking, true)) {
		c->worker = peer->at;
		c->look_task.run = look;
		wf_turn_run(c->worker, &c->look_task, wf_clock_now());
	}
	return 0;
}

void wf_peer_change_free(struct wf_peer_change *change)
{
	if (!change)
		return;
	wf_reason_drop(&change->gone);
	free(change);
}
