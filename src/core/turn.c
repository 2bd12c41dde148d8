/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/turn.h"

#include <sched.h>

#include "core/node.h"
#include "core/worker.h"
#include "util/clock.h"

/* Leave the loop of @worker to its thread, which may wait for this one to come back if it @may. */
static void give(struct wf_worker *worker, bool may)
{
	const struct wf_loop *loop = &worker->engine.loop;
	bool alone = may && !atomic_load(&worker->node->waiting) &&
		     !atomic_load(&worker->node->queues.sleepers) && wf_inbox_empty(&loop->inbox) &&
		     !loop->pressing;

	atomic_store_explicit(&worker->guest, 0, memory_order_relaxed);
	if (wf_baton_give(&worker->baton, wf_clock_now(), alone))
		wf_loop_kick(&worker->engine.loop);
}

static void begin_visit(struct wf_worker *worker)
{
	atomic_store_explicit(&worker->guest, (uintptr_t)pthread_self(), memory_order_relaxed);
}

/* Run @task on the loop of @worker, outside a turn and behind all before it, and send its posts. */
static void run_here(struct wf_worker *worker, struct wf_loop_task *task, uint64_t now_ns)
{
	wf_loop_tick_at(&worker->engine.loop, now_ns);
	wf_loop_catch_up(&worker->engine.loop);
	task->run(task);
	wf_engine_flush(&worker->engine);
}

/*
 * Run @task in the place of the worker's thread, if that expects this one.  False: it does not, or
 * the task would overtake others, or the loop must turn: a guest that only submits keeps the
 * worker's thread away.
 */
static bool run_as_guest(struct wf_worker *worker, struct wf_loop_task *task, uint64_t now_ns)
{
	bool runs;

	if (worker->node->manual || !wf_baton_resume(&worker->baton, now_ns))
		return false;
	begin_visit(worker);
	runs = wf_inbox_empty(&worker->engine.loop.inbox) &&
	       now_ns - worker->turned_ns < WF_BATON_ALONE_NS;
	if (runs)
		run_here(worker, task, now_ns);
	give(worker, runs);
	return runs;
}

/* The wait of a guest. */
struct visit {
	bool (*over)(void *ctx);
	void *ctx;
	uint64_t until_ns;
	bool ended; /* @over says so */
};

/* Returns how long guests ask for the loop of @worker before they sleep. */
static uint64_t ask_ns(const struct wf_worker *worker)
{
	return WF_MAX(worker->engine.loop.spin.least_ns,
		      atomic_load_explicit(&worker->ask_ns, memory_order_relaxed));
}

void wf_turn_slept(struct wf_worker *worker, uint64_t slept_ns)
{
	struct wf_spin spin = wf_spin(worker->engine.loop.spin.least_ns);

	spin.limit_ns = ask_ns(worker);
	wf_spin_slept(&spin, slept_ns);
	atomic_store_explicit(&worker->ask_ns, spin.limit_ns, memory_order_relaxed);
}

/*
 * Take the baton of @worker, for which its thread is asked for a while, or until @v is over, which
 * another guest may bring about.
 */
static bool take(struct wf_worker *worker, struct visit *v)
{
	uint64_t came_ns = wf_clock_now();
	uint64_t most_ns = WF_MIN(came_ns + ask_ns(worker), v->until_ns);

	if (wf_baton_take(&worker->baton, came_ns))
		return true;
	do {
		/* Another guest that gives up takes back what this one has asked for. */
		wf_baton_ask(&worker->baton, true);
		/* The worker's thread may be waiting for this very core. */
		sched_yield();
		if (wf_baton_take(&worker->baton, came_ns))
			return true;
		v->ended = v->over(v->ctx);
	} while (!v->ended && wf_clock_now() < most_ns);
	wf_baton_ask(&worker->baton, false);
	/* The worker's thread may just have let go, and would wait for a guest in vain. */
	return wf_baton_take(&worker->baton, came_ns);
}

bool wf_turn_visit(struct wf_worker *worker, bool (*over)(void *ctx), void *ctx,
		   uint64_t until_ns)
{
	struct visit v = { .over = over, .ctx = ctx, .until_ns = until_ns };
	struct wf_loop *loop = &worker->engine.loop;
	bool sleeps;

	if (worker->node->manual || worker->node->worker_count > 1 || !loop->spin.least_ns ||
	    !take(worker, &v))
		return v.ended;
	begin_visit(worker);
	wf_loop_wake(loop);
	loop->busy_ns = wf_clock_now();
	while (!(v.ended = over(ctx)) && loop->now_ns < until_ns && wf_loop_spin(loop))
		worker->turned_ns = loop->now_ns;
	/* A guest that has spun in vain sleeps now, and the worker's thread must bring the end. */
	sleeps = !v.ended && loop->now_ns < until_ns;
	/* In a child that a callback forked the lock may be held for ever. */
	if (!loop->forked)
		give(worker, !sleeps);
	return v.ended;
}

/* Make the caller the driver of a manual worker, unless another thread is. */
static bool try_enter(struct wf_worker *worker)
{
	uintptr_t none = 0;

	return atomic_compare_exchange_strong_explicit(&worker->driver, &none,
						       (uintptr_t)pthread_self(),
						       memory_order_acquire, memory_order_relaxed);
}

void wf_turn_enter(struct wf_worker *worker)
{
	/* The thread that drove the node before may be about to begin an operation. */
	while (!try_enter(worker))
		sched_yield();
}

void wf_turn_leave(struct wf_worker *worker)
{
	atomic_store_explicit(&worker->driver, 0, memory_order_release);
}

void wf_turn_run(struct wf_worker *worker, struct wf_loop_task *task, uint64_t now_ns)
{
	if (run_as_guest(worker, task, now_ns))
		return;
	if (wf_worker_in_own_turn(worker)) {
		wf_loop_submit_inside(&worker->engine.loop, task);
		return;
	}
	/* A callback inside the task may begin another operation, which waits as inside a poll. */
	if (!worker->node->manual || !pthread_equal(worker->thread, pthread_self()) ||
	    !try_enter(worker)) {
		wf_loop_submit(&worker->engine.loop, task);
		return;
	}
	run_here(worker, task, now_ns);
	wf_turn_leave(worker);
	/* A loop that has armed the node before is about to sleep on an old state. */
	if (atomic_load_explicit(&worker->engine.loop.poller.asleep, memory_order_relaxed))
		wf_loop_wake(&worker->engine.loop);
}

void wf_turn_until(struct wf_worker *worker, uint64_t until_ns)
{
	wf_turn_enter(worker);
	wf_loop_wait(&worker->engine.loop, until_ns);
	wf_turn_leave(worker);
}
