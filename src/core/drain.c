/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Draining: a node that takes no more calls, and waits for running ones.
 *
 * Each desk drains by itself: it refuses calls from then on and tells its peers, so
 * that they need not try.
 */
#include "core/drain.h"

#include <errno.h>

#include "core/check.h"
#include "core/desk.h"
#include "core/last.h"
#include "core/node.h"
#include "core/turn.h"
#include "transfer/tell.h"
#include "util/clock.h"

void wf_drain_up(struct wf_desk *desk, struct wf_link *link)
{
	if (!desk->serving.draining || link->above.drain_told)
		return;
	/* Without memory the peer learns it from the answer to each of its calls. */
	link->above.drain_told = !wf_tell(link, WF_RECORD_DRAIN, 0, 0, 0);
}

static int take_drain(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_small_record small;

	(void)ctx;
	if (wf_small_record_get(record->bytes, record->count, &small))
		return -EBADMSG;
	link->above.drains = true;
	return 0;
}

void wf_drain_route(struct wf_routes *routes)
{
	wf_route_set(routes, WF_RECORD_DRAIN, take_drain, NULL);
}

int wf_drain_check(const struct wf_link *link, struct wf_error *e)
{
	return link->above.drains ? wf_error_set(e, -ESHUTDOWN, "%s is draining",
						 wf_link_label(link))
				  : 0;
}

static bool serves_none(const struct wf_desk *desk)
{
	return !atomic_load(&desk->worker.counters.served);
}

static void wake(struct weft_node *node)
{
	/* Under the lock no thread is between its look at the desks and its sleep. */
	pthread_mutex_lock(&node->lock);
	pthread_cond_broadcast(&node->ended);
	pthread_mutex_unlock(&node->lock);
}

void wf_drain_gone(struct wf_desk *desk)
{
	if (desk->serving.draining && serves_none(desk))
		wake(desk->node);
}

static void begin(struct wf_task *task)
{
	struct wf_desk *desk = WF_CONTAINER(task, struct wf_desk, drain_task);

	desk->serving.draining = true;
	WF_LIST_EACH(at, &desk->worker.link_list) {
		struct wf_link *link = WF_CONTAINER(at, struct wf_link, node);

		if (link->state == WF_LINK_UP)
			wf_drain_up(desk, link);
	}
	atomic_store(&desk->drains, true);
	wake(desk->node);
}

static void begin_all(struct weft_node *node, uint64_t now_ns)
{
	for (unsigned i = 0; i < node->desk_count; i++) {
		struct wf_desk *desk = &node->desks[i];

		desk->drain_task.run = begin;
		wf_turn_run(desk, &desk->drain_task, now_ns);
	}
}

/* A desk that drains takes no more calls, so a drain that is over stays so. */
static bool is_over(const struct weft_node *node)
{
	for (unsigned i = 0; i < node->desk_count; i++)
		if (!atomic_load(&node->desks[i].drains) || !serves_none(&node->desks[i]))
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
	struct wf_desk *desk = &node->desks[0];

	do
		wf_turn_until(desk, until_ns);
	while (!atomic_load(&node->forked) && !is_over(node) && desk->worker.loop.now_ns < until_ns);
}

int wf_drain(struct weft_node *node, uint64_t timeout_ns)
{
	uint64_t now_ns = wf_clock_now();
	uint64_t until_ns = wf_clock_after(now_ns, timeout_ns);
	int err;

	if (!atomic_exchange(&node->draining, true)) {
		begin_all(node, now_ns);
		wf_node_health_changed(node);
	}
	if (node->manual && pthread_equal(node->desks[0].thread, pthread_self()))
		wait_manual(node, until_ns);
	else
		wait_threaded(node, until_ns);
	err = wf_check_node(node);
	if (err || is_over(node))
		return err;
	return wf_last_set(-ETIMEDOUT, "the node drains, and calls of its peers run still");
}
