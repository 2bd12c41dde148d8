/* SPDX-License-Identifier: BSD-2-Clause */
#include "loop/poller.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "util/clock.h"

enum { TAG_WAKE, TAG_ALARM };
_Static_assert(TAG_ALARM < WF_POLLER_TAG_FIRST, "the tags of users come after the poller's own");

void wf_poller_init(struct wf_poller *p)
{
	*p = (struct wf_poller){ .epoll_fd = -1, .wake_fd = -1, .timer_fd = -1 };
}

int wf_poller_open(struct wf_poller *p, bool alarm, struct wf_error *e)
{
	int err;

	wf_poller_init(p);
	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->epoll_fd < 0)
		goto fail;
	p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->wake_fd < 0 || wf_poller_add(p, p->wake_fd, TAG_WAKE, 0))
		goto fail;
	if (!alarm)
		return 0;
	p->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (p->timer_fd < 0 || wf_poller_add(p, p->timer_fd, TAG_ALARM, 0))
		goto fail;
	return 0;
fail:
	err = -errno;
	wf_poller_close(p);
	return wf_error_set(e, err, "no descriptor for the worker: %s", wf_error_name(err));
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

void wf_poller_close(struct wf_poller *p)
{
	close_fd(&p->epoll_fd);
	close_fd(&p->wake_fd);
	close_fd(&p->timer_fd);
}

int wf_poller_add(struct wf_poller *p, int fd, unsigned tag, uint64_t value)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = value << WF_POLLER_TAG_BITS | tag };

	if (fd < 0)
		return 0;
	return epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/* Remove @fd by name: a forked child may hold a copy, and that keeps the entry alive. */
void wf_poller_remove(struct wf_poller *p, int fd)
{
	(void)epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

void wf_poller_sleep(struct wf_poller *p)
{
	atomic_store(&p->asleep, true);
	atomic_thread_fence(memory_order_seq_cst);
}

void wf_poller_awake(struct wf_poller *p)
{
	atomic_store(&p->asleep, false);
}

void wf_poller_kick(struct wf_poller *p)
{
	uint64_t one = 1;

	/* A full eventfd means that a wake-up is pending already. */
	if (write(p->wake_fd, &one, sizeof(one)) < 0)
		return;
}

void wf_poller_wake(struct wf_poller *p)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&p->asleep))
		wf_poller_kick(p);
}

/* Read what other threads, or the alarm, have written: the descriptor is readable no more. */
static void empty(struct wf_poller *p, unsigned tag)
{
	uint64_t count;

	if (tag == TAG_ALARM)
		p->alarm_ns = 0;
	/* The descriptor may be empty: another look has read it, or the alarm was set anew. */
	if (read(tag == TAG_ALARM ? p->timer_fd : p->wake_fd, &count, sizeof(count)) < 0)
		return;
}

int wf_poller_wait(struct wf_poller *p, struct wf_poller_event events[WF_POLLER_EVENTS_MAX],
		   int ms)
{
	struct epoll_event ready[WF_POLLER_EVENTS_MAX];
	int n = epoll_wait(p->epoll_fd, ready, WF_POLLER_EVENTS_MAX, ms);

	for (int i = 0; i < n; i++) {
		events[i].tag = (unsigned)(ready[i].data.u64 & ((1u << WF_POLLER_TAG_BITS) - 1));
		events[i].value = ready[i].data.u64 >> WF_POLLER_TAG_BITS;
		if (events[i].tag < WF_POLLER_TAG_FIRST)
			empty(p, events[i].tag);
	}
	return n;
}

/*
 * An alarm that is set already and comes sooner stays: setting one costs a system call, and
 * each setting leads to one wake-up at most.
 */
int wf_poller_set_alarm(struct wf_poller *p, uint64_t now_ns, uint64_t until_ns)
{
	/* A time of 0 is over, and would be none to the kernel. */
	struct itimerspec at = { .it_value = wf_clock_timespec(WF_MAX(until_ns, 1)) };

	if (p->alarm_ns > now_ns && p->alarm_ns <= until_ns)
		return 0;
	if (timerfd_settime(p->timer_fd, TFD_TIMER_ABSTIME, &at, NULL))
		return -errno;
	p->alarm_ns = until_ns;
	return 0;
}
