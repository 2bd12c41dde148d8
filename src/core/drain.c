/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Draining: a node that takes no more calls, and waits for running ones.
 *
 * Each worker drains by itself: it refuses calls from then on and tells its peers, so
 * that they need not try.
 */
#include "core/drain.h"

#include <errno.h>

#include "core/check.h"
#include "core/last.h"
#include "core/node.h"
#include "core/peer_change.h"
#include "core/turn.h"
#include "core/worker.h"
#include "util/clock.h"

void wf_drain_up(struct wf_worker *worker, struct wf_link *link)
{
	if (!worker->serving.draining || link->above.drain_told)
		return;
	/* Without memory the peer learns it from the answer to each of its calls. */
	link->above.drain_told = !wf_message_post_small(link, 0, WF_RECORD_DRAIN, 0, 0, 0);
}

static int take_drain(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_record_small small;

	if (wf_record_small_get(record->bytes, record->count, &small))
		return -EBADMSG;
	link->above.drains = true;
	wf_peer_change_note(ctx, link, NULL);
	return 0;
}

void wf_drain_route(struct wf_worker *worker, struct wf_routes *routes)
{
	wf_route_set(routes, WF_RECORD_DRAIN, take_drain, worker);
}

int wf_drain_check(const struct wf_link *link, struct wf_error *e)
{
	return link->above.drains ? wf_error_set(e, -ESHUTDOWN, "%s is draining",
						 wf_link_label(link))
				  : 0;
}

static bool serves_none(const struct wf_worker *worker)
{
	return !atomic_load(&worker->engine.counters.served);
}

static void wake(struct weft_node *node)
{
	/* Under the lock no thread is between its look at the workers and its sleep. */
	pthread_mutex_lock(&node->lock);
	pthread_cond_broadcast(&node->ended);
	pthread_mutex_unlock(&node->lock);
}

void wf_drain_gone(struct wf_worker *worker)
{
	if (worker->serving.draining && serves_none(worker))
		wake(worker->node);
}

static void begin(struct wf_loop_task *task)
{
	struct wf_worker *worker = WF_CONTAINER(task, struct wf_worker, drain_task);

	worker->serving.draining = true;
	WF_LIST_EACH(at, &worker->engine.link_list) {
		struct wf_link *link = WF_CONTAINER(at, struct wf_link, node);

		if (link->state == WF_LINK_UP)
			wf_drain_up(worker, link);
	}
	atomic_store(&worker->drains, true);
	wake(worker->node);
}

static void begin_all(struct weft_node *node, uint64_t now_ns)
{
	for (unsigned i = 0; i < node->worker_count; i++) {
		struct wf_worker *worker = &node->workers[i];

		worker->drain_task.run = begin;
		wf_turn_run(worker, &worker->drain_task, now_ns);
	}
}

/* A worker that drains takes no more calls, so a drain that is over stays so. */
static bool is_over(const struct weft_node *node)
{
	for (unsigned i = 0; i < node->worker_count; i++)
		if (!atomic_load(&node->workers[i].drains) || !serves_none(&node->workers[i]))
			return false;
	return true;
}

static void wait_threaded(struct weft_node *node, uint64_t until_ns)
{
	struct timespec at = wf_clock_timespec(until_ns);
	int err = 0;

	pthread_mutex_lock(&node->lock);
	while (!is_over(node) && err != ETIMEDOUT)
		err = pthread_cond_timedwait(&node->ended, &node->lock, &at);
	pthread_mutex_unlock(&node->lock);
}

static void wait_manual(struct weft_node *node, uint64_t until_ns)
{
	struct wf_worker *worker = &node->workers[0];

	do
		wf_turn_until(worker, until_ns);
	while (!atomic_load(&node->forked) && !is_over(node) && worker->engine.loop.now_ns < until_ns);
}

int wf_drain(struct weft_node *node, uint64_t timeout_ns)
{
	uint64_t now_ns = wf_clock_now();
	uint64_t until_ns = wf_clock_after(now_ns, timeout_ns);
	int err;

	if (!atomic_exchange(&node->draining, true)) {
		begin_all(node, now_ns);
		wf_node_health_changed(node);
		wf_landing_drain(node);
	}
	if (node->manual && pthread_equal(node->workers[0].thread, pthread_self()))
		wait_manual(node, until_ns);
	else
		wait_threaded(node, until_ns);
	err = wf_check_node(node);
	if (err || is_over(node))
		return err;
	return wf_last_set(-ETIMEDOUT, "the node drains, and calls of its peers run still");
}
