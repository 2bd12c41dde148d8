/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Poller: the descriptors that one thread sleeps on.
 *
 * A poller is an epoll descriptor, with an eventfd by which other threads end the sleep.  A
 * program that sleeps on the epoll descriptor in a loop of its own gets a timerfd too, so that
 * the descriptor becomes readable when the next timer is due.
 *
 * Threads: owner, except where a function says otherwise.
 */
#ifndef WF_POLLER_H
#define WF_POLLER_H

#include <stdatomic.h>
#include "util/error.h"

#define WF_POLLER_EVENTS_MAX 16 /* events taken by one look */

/* A descriptor's tag takes this many bits of its event's 64, the value the others. */
#define WF_POLLER_TAG_BITS 8

/* Tags below this one are the poller's own. */
#define WF_POLLER_TAG_FIRST 2

struct wf_poller {
	int epoll_fd; /* -1: closed, as all three are in a forked child */
	int wake_fd;
	int timer_fd; /* -1: the poller has no alarm */
	uint64_t alarm_ns; /* when timer_fd fires; 0: the alarm is not set */
	_Atomic bool asleep;
};

/* A readable descriptor, as wf_poller_add() named it. */
struct wf_poller_event {
	unsigned tag;
	uint64_t value;
};

/* Returns @value as the poller reports it. */
static inline uint64_t wf_poller_value(uint64_t value)
{
	return value << WF_POLLER_TAG_BITS >> WF_POLLER_TAG_BITS;
}

/* Set up a closed poller, which wf_poller_close() accepts. */
void wf_poller_init(struct wf_poller *p);

/* Open a poller, with an alarm or without; on an error nothing stays open.  Threads: setup. */
int wf_poller_open(struct wf_poller *p, bool alarm, struct wf_error *e);

/* Close the descriptors; in a forked child that leaves the parent's alone. */
void wf_poller_close(struct wf_poller *p);

static inline bool wf_poller_is_open(const struct wf_poller *p)
{
	return p->epoll_fd >= 0;
}

/*
 * Report when @fd is readable, as @tag and the lower 56 bits of @value, until it is removed or
 * closed by every process that has it.  A negative @fd is ignored, without an error.
 */
int wf_poller_add(struct wf_poller *p, int fd, unsigned tag, uint64_t value);

/* Report @fd no more. */
void wf_poller_remove(struct wf_poller *p, int fd);

/* Let wf_poller_wake() make the descriptor readable from now on. */
void wf_poller_sleep(struct wf_poller *p);

/* Let wf_poller_wake() do nothing from now on. */
void wf_poller_awake(struct wf_poller *p);

static inline bool wf_poller_asleep(const struct wf_poller *p)
{
	return atomic_load_explicit(&p->asleep, memory_order_relaxed);
}

/*
 * End the owner's sleep.  The owner sees what the caller has stored before, either then or
 * before it sleeps.  Threads: any, callback.
 */
void wf_poller_wake(struct wf_poller *p);

/* End a sleep, also one that was not prepared by wf_poller_sleep().  Threads: any, callback. */
void wf_poller_kick(struct wf_poller *p);

/*
 * Sleep until a descriptor is readable, @ms milliseconds at most.  Returns how many of @events
 * are set; a negative number counts as none.  Tags below WF_POLLER_TAG_FIRST mean a wake-up or
 * the alarm, and need nothing more.
 */
int wf_poller_wait(struct wf_poller *p, struct wf_poller_event events[WF_POLLER_EVENTS_MAX],
		   int ms);

/* Make the descriptor readable at @until_ns at the latest; @now_ns is the present time. */
int wf_poller_set_alarm(struct wf_poller *p, uint64_t now_ns, uint64_t until_ns);

#endif
