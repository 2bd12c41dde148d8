/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/node_drain.h"

#include <errno.h>

#include "core/check.h"
#include "core/drain.h"
#include "core/landing.h"
#include "core/last.h"
#include "core/node.h"
#include "core/turn.h"
#include "util/clock.h"

#define LOOK_NS (100 * WF_NS_PER_MS) /* looks of a manual node whether it is drained; not tuned */

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
	wf_drain_wake(worker->node);
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
		if (!atomic_load(&node->workers[i].drains) || !wf_drain_serves_none(&node->workers[i]))
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
	const struct wf_loop *loop = &worker->engine.loop;

	/* The last call may end with its peer, which no turn counts: look again now and then. */
	while (!atomic_load(&node->forked) && !is_over(node) && loop->now_ns < until_ns)
		wf_turn_until(worker, WF_MIN(until_ns, wf_clock_now() + LOOK_NS));
}

int wf_node_drain(struct weft_node *node, uint64_t timeout_ns)
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
