/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watch: the watchdog of a desk, which says in the log who waits for whom.
 */
#ifndef WF_CORE_WATCH_H
#define WF_CORE_WATCH_H

#include <weft/weft.h>
#include "link/link.h"

struct wf_desk;

/* Of an operation. */
struct wf_watch_op {
	uint64_t progress; /* as the watchdog last saw it: */
	uint64_t moved_ns; /* since when it is that */
	uint64_t told_ns;  /* and when that was last said */
};

struct wf_watch {
	struct wf_timer timer;
	uint64_t second_ns;       /* when the lines below began to be counted */
	unsigned lines, unsaid;
	_Atomic uint64_t stuck_told_ns; /* when it was last said that the worker is stuck */
};

void wf_watch_begin(struct weft_op *op);
void wf_watch_late(struct weft_op *op);
void wf_watch_dying(struct wf_desk *desk, const struct wf_link *link, const struct wf_error *e);
void wf_watch_worker(struct wf_desk *desk);
#define WF_WATCH_WHERE_BYTES 200
void wf_watch_where(const struct wf_desk *desk, char text[WF_WATCH_WHERE_BYTES]);

#endif
