/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turn: who turns the loop of a desk: its own thread, or of a manual node the caller's.
 */
#ifndef WF_CORE_TURN_H
#define WF_CORE_TURN_H

#include "core/desk.h"

/*
 * Run @task on the worker: at once if this is its thread and it does nothing else, else by
 * the inbox.  @now_ns: the clock has just been looked at.  Threads: any, callback.
 */
void wf_turn_run(struct wf_desk *desk, struct wf_task *task, uint64_t now_ns);

/* One turn of a manual desk's loop, or a wait for it. */
void wf_turn_until(struct wf_desk *desk, uint64_t until_ns);

#endif
