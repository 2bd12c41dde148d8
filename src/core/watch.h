/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watch: the watchdog of a worker, which logs what each stuck operation waits for.
 */
#ifndef WF_CORE_WATCH_H
#define WF_CORE_WATCH_H

#include <weft/weft.h>
#include "link/link.h"

struct wf_worker;

/* Watchdog state of an operation. */
struct wf_watch_op {
	uint64_t progress; /* progress at the last look */
	uint64_t moved_ns; /* when progress last changed */
	uint64_t told_ns;  /* when a standstill was last logged */
};

struct wf_watch {
	struct wf_timer timer;
	uint64_t second_ns;       /* when the count of lines and unsaid began */
	unsigned lines, unsaid;
	_Atomic uint64_t stuck_told_ns; /* when a stuck worker was last logged */
};

void wf_watch_begin(struct weft_op *op);
void wf_watch_late(struct weft_op *op);
void wf_watch_dying(struct wf_worker *worker, const struct wf_link *link, const struct wf_error *e);
void wf_watch_worker(struct wf_worker *worker);
#define WF_WATCH_WHERE_BYTES 200
void wf_watch_where(const struct wf_worker *worker, char text[WF_WATCH_WHERE_BYTES]);

#endif
