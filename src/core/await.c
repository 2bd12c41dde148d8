/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/await.h"

#include <errno.h>

#include "core/check.h"
#include "core/last.h"
#include "core/node.h"
#include "core/op.h"
#include "core/turn.h"
#include "core/watch.h"
#include "core/worker.h"
#include "util/clock.h"
#include "util/thread.h"

/* Some operations, and which of them has ended. */
struct await {
	struct weft_op *const *ops;
	size_t count;
	size_t ended; /* index; @count: none has */
};

static bool has_ended(void *ctx)
{
	struct await *a = ctx;

	for (a->ended = 0; a->ended < a->count; a->ended++)
		if (a->ops[a->ended] && atomic_load(&a->ops[a->ended]->state) == WF_OP_ENDED)
			return true;
	return false;
}

/* The wait of a thread that sleeps until @over says so. */
struct wait {
	struct wf_list node; /* in the node's waits, under its lock */
	bool (*over)(void *ctx);
	void *ctx;
	pthread_cond_t woken; /* @over says so */
};

static int sleep_until(struct wf_worker *worker, bool (*over)(void *ctx), void *ctx,
		       uint64_t until_ns)
{
	struct wait wait = { .over = over, .ctx = ctx };
	struct weft_node *node = worker->node;
	uint64_t stall_ns = worker->engine.options.stall_ns;
	uint64_t began = wf_clock_now(), now = began;
	int err = wf_thread_cond_init(&wait.woken);
	bool ended;

	if (err)
		return wf_last_set(err, "no memory for a wait");
	pthread_mutex_lock(&node->lock);
	wf_list_append(&node->waits, &wait.node);
	atomic_fetch_add(&node->waiting, 1);
	while (!(ended = over(ctx)) && now < until_ns) {
		uint64_t slice_ns = stall_ns ? WF_MIN(until_ns, now + stall_ns) : until_ns;
		struct timespec at = wf_clock_timespec(slice_ns);

		if (pthread_cond_timedwait(&wait.woken, &node->lock, &at) == ETIMEDOUT) {
			pthread_mutex_unlock(&node->lock);
			wf_watch_worker(worker);
			pthread_mutex_lock(&node->lock);
		}
		now = wf_clock_now();
	}
	atomic_fetch_sub(&node->waiting, 1);
	wf_list_remove(&wait.node);
	if (ended && now > began)
		wf_turn_slept(worker, now - began);
	pthread_mutex_unlock(&node->lock);
	pthread_cond_destroy(&wait.woken);
	return ended ? 0 : -ETIMEDOUT;
}

static int drive_until(struct wf_worker *worker, bool (*over)(void *ctx), void *ctx,
		       uint64_t until_ns)
{
	bool ended;

	do {
		wf_turn_until(worker, until_ns);
		if (wf_check_node(worker->node))
			return -EOWNERDEAD;
		ended = over(ctx);
	} while (!ended && worker->engine.loop.now_ns < until_ns);
	return ended ? 0 : -ETIMEDOUT;
}

static int wait_until(struct wf_worker *worker, bool (*over)(void *ctx), void *ctx,
		      uint64_t until_ns)
{
	if (worker->node->manual && pthread_equal(worker->thread, pthread_self()))
		return drive_until(worker, over, ctx, until_ns);
	if (wf_turn_visit(worker, over, ctx, until_ns))
		return wf_check_node(worker->node) ? -EOWNERDEAD : 0;
	if (wf_check_node(worker->node))
		return -EOWNERDEAD;
	return sleep_until(worker, over, ctx, until_ns);
}

int wf_await_that(struct wf_worker *worker, bool (*over)(void *ctx), void *ctx, uint64_t until_ns)
{
	/* A turn of a manual node might wait for something that never comes. */
	return over(ctx) ? 0 : wait_until(worker, over, ctx, until_ns);
}

void wf_await_wake(struct weft_node *node)
{
	/* A thread that is not counted yet has yet to look. */
	if (!atomic_load(&node->waiting))
		return;
	/* Under the lock no thread is between its look and its sleep. */
	pthread_mutex_lock(&node->lock);
	WF_LIST_EACH(at, &node->waits) {
		struct wait *wait = WF_CONTAINER(at, struct wait, node);

		if (wait->over(wait->ctx))
			pthread_cond_signal(&wait->woken);
	}
	pthread_mutex_unlock(&node->lock);
}

int wf_await_any(struct weft_op *const *ops, size_t count, uint64_t until_ns, size_t *index)
{
	struct await a = { .ops = ops, .count = count };
	struct wf_worker *worker;
	size_t some = 0;
	int err;

	while (!ops[some])
		some++;
	worker = ops[some]->worker;
	err = wait_until(worker, has_ended, &a, until_ns);
	if (err == -ETIMEDOUT)
		return wf_last_set(-ETIMEDOUT, count == 1 ? "the operation has not ended yet"
							  : "no operation has ended yet");
	if (!err)
		*index = a.ended;
	return err;
}

int wf_await(struct weft_op *op, uint64_t until_ns)
{
	size_t index;

	return wf_await_any(&op, 1, until_ns, &index);
}
