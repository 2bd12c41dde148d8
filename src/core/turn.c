/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/turn.h"

#include "core/node.h"
#include "core/worker.h"

void wf_turn_run(struct wf_worker *worker, struct wf_loop_task *task, uint64_t now_ns)
{
	if (!worker->node->manual || worker->polling ||
	    !pthread_equal(worker->thread, pthread_self())) {
		wf_loop_submit(&worker->engine.loop, task);
		return;
	}
	/* A callback inside the task may begin another operation, which waits as inside a poll. */
	worker->polling = true;
	wf_loop_tick_at(&worker->engine.loop, now_ns);
	task->run(task);
	wf_engine_flush(&worker->engine);
	worker->polling = false;
	/* A loop that has armed the node before is about to sleep on an old state. */
	if (atomic_load_explicit(&worker->engine.loop.poller.asleep, memory_order_relaxed))
		wf_loop_wake(&worker->engine.loop);
}

void wf_turn_until(struct wf_worker *worker, uint64_t until_ns)
{
	worker->polling = true;
	wf_loop_wait(&worker->engine.loop, until_ns);
	worker->polling = false;
}
