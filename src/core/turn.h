/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turn: tasks on the loop of a worker, which its own thread turns, or in a manual node the
 * caller's.
 */
#ifndef WF_CORE_TURN_H
#define WF_CORE_TURN_H

#include "core/worker.h"

/*
 * Run @task on the worker: at once if this is the thread of a manual node outside a turn, else by
 * the inbox.  @now_ns: the clock, just read.  Threads: any, callback.
 */
void wf_turn_run(struct wf_worker *worker, struct wf_loop_task *task, uint64_t now_ns);

/*
 * Turn the loop of a threaded worker in the place of its thread, until @over says so, @until_ns has
 * passed, or it is time to sleep.  Returns whether @over has said so, as it may for what another
 * thread has done where this one can't have the loop; several workers are left to their threads.
 * Threads: any, in no callback.
 */
bool wf_turn_visit(struct wf_worker *worker, bool (*over)(void *ctx), void *ctx,
		   uint64_t until_ns);

/* Note that what a thread waited for has come after a sleep of @slept_ns.  Threads: any. */
void wf_turn_slept(struct wf_worker *worker, uint64_t slept_ns);

/*
 * Have the loop of a manual worker to oneself, once another thread that begins an operation there
 * is through.  Threads: any, in no callback.
 */
void wf_turn_enter(struct wf_worker *worker);
void wf_turn_leave(struct wf_worker *worker);

/* Turn a manual worker's loop once, waiting until @until_ns at most. */
void wf_turn_until(struct wf_worker *worker, uint64_t until_ns);

#endif
