/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Timers, the next to fire first: a pairing heap threaded through its timers, so
 * that arming one can't fail.  Time is passed in; nothing here reads a clock.
 *
 * Threads: owner.
 */
#ifndef WF_TIMER_H
#define WF_TIMER_H

#include "util/base.h"

struct wf_timer {
	uint64_t at_ns;
	void (*fire)(struct wf_timer *timer);
	struct wf_timer *child, *sibling, *back; /* back: parent or left sibling */
	bool armed;
};

struct wf_timers {
	struct wf_timer *root;
	struct wf_timer *due; /* timers of a run that is under way; NULL outside */
};

/* Arm @t for @at_ns, moving it if it was armed.  Borrows @t until it fires or is stopped. */
void wf_timer_arm(struct wf_timers *timers, struct wf_timer *t, uint64_t at_ns,
		  void (*fire)(struct wf_timer *));

/* Stop @t; harmless if @t is not armed. */
void wf_timer_stop(struct wf_timers *timers, struct wf_timer *t);

/*
 * Fire the first @max timers that are due and return how many there were.  A timer that fires may
 * arm and stop any timer, itself too, and be freed; timers that it arms fire in a later call at the
 * soonest.  A timer must not call wf_timer_run() itself.
 */
size_t wf_timer_run(struct wf_timers *timers, uint64_t now_ns, size_t max);

/* Return when the next timer is due; UINT64_MAX: there is none. */
uint64_t wf_timer_next_ns(const struct wf_timers *timers);

#endif
