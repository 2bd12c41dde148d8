/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/turn.h"

#include "core/desk.h"
#include "core/node.h"

void wf_turn_run(struct wf_desk *desk, struct wf_task *task, uint64_t now_ns)
{
	if (!desk->node->manual || desk->polling ||
	    !pthread_equal(desk->thread, pthread_self())) {
		wf_loop_submit(&desk->worker.loop, task);
		return;
	}
	/* A callback inside the task may begin another operation, which waits as inside a poll. */
	desk->polling = true;
	wf_loop_tick_at(&desk->worker.loop, now_ns);
	task->run(task);
	wf_worker_flush(&desk->worker);
	desk->polling = false;
	/* A loop that has armed the node before is about to sleep on an old state. */
	if (atomic_load_explicit(&desk->worker.loop.poller.asleep, memory_order_relaxed))
		wf_loop_wake(&desk->worker.loop);
}

void wf_turn_until(struct wf_desk *desk, uint64_t until_ns)
{
	desk->polling = true;
	wf_loop_wait(&desk->worker.loop, until_ns);
	desk->polling = false;
}
