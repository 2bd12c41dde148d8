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

static int sleep_until(struct wf_worker *worker, bool (*over)(void *ctx), void *ctx,
		       uint64_t until_ns)
{
	struct weft_node *node = worker->node;
	uint64_t stall_ns = worker->engine.options.stall_ns;
	uint64_t now = wf_clock_now();
	bool ended;

	pthread_mutex_lock(&node->lock);
	atomic_fetch_add(&node->waiting, 1);
	while (!(ended = over(ctx)) && now < until_ns) {
		uint64_t slice_ns = stall_ns ? WF_MIN(until_ns, now + stall_ns) : until_ns;
		struct timespec at = wf_clock_timespec(slice_ns);

		if (pthread_cond_timedwait(&node->ended, &node->lock, &at) == ETIMEDOUT) {
			pthread_mutex_unlock(&node->lock);
			wf_watch_worker(worker);
			pthread_mutex_lock(&node->lock);
		}
		now = wf_clock_now();
	}
	atomic_fetch_sub(&node->waiting, 1);
	pthread_mutex_unlock(&node->lock);
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
	pthread_cond_broadcast(&node->ended);
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
