/* SPDX-License-Identifier: BSD-2-Clause */
#include "loop/baton.h"

#include <errno.h>

#include "util/clock.h"
#include "util/thread.h"

/* None of these is tuned yet. */
#define SOON_NS (50 * WF_NS_PER_US)  /* a guest that was away for less has come back soon */
#define RETURNS_MIN 2                /* soon returns in a row before a guest is expected again */
#define LOOK_NS (500 * WF_NS_PER_US) /* pause between two looks of the resident */
#define AWAY_NS (WF_BATON_ALONE_NS - LOOK_NS)

int wf_baton_init(struct wf_baton *b)
{
	int err = -pthread_mutex_init(&b->lock, NULL);

	if (err)
		return err;
	err = wf_thread_cond_init(&b->passed);
	if (err)
		pthread_mutex_destroy(&b->lock);
	return err;
}

void wf_baton_fini(struct wf_baton *b)
{
	pthread_cond_destroy(&b->passed);
	pthread_mutex_destroy(&b->lock);
}

/* Must the resident leave the baton where it is?  With the lock. */
static bool is_kept(const struct wf_baton *b)
{
	return b->holder != WF_BATON_FREE || b->promised || b->expected;
}

/* Wait for a change, or a while: nobody tells of a guest that is expected.  With the lock. */
static void wait(struct wf_baton *b)
{
	struct timespec at = wf_clock_timespec(wf_clock_now() + LOOK_NS);

	if (pthread_cond_timedwait(&b->passed, &b->lock, &at) != ETIMEDOUT ||
	    b->holder != WF_BATON_FREE)
		return;
	/* A guest that was promised the baton has not come for it, or has not come back. */
	b->promised = false;
	if (wf_clock_now() - b->left_ns >= AWAY_NS) {
		if (b->expected)
			b->returns_min = RETURNS_MIN;
		b->expected = false;
		b->returns = 0;
	}
}

static void take(struct wf_baton *b)
{
	while (is_kept(b))
		wait(b);
	b->holder = WF_BATON_RESIDENT;
}

void wf_baton_enter(struct wf_baton *b)
{
	pthread_mutex_lock(&b->lock);
	take(b);
	pthread_mutex_unlock(&b->lock);
}

void wf_baton_leave(struct wf_baton *b)
{
	pthread_mutex_lock(&b->lock);
	b->holder = WF_BATON_FREE;
	pthread_mutex_unlock(&b->lock);
}

void wf_baton_yield(struct wf_baton *b)
{
	pthread_mutex_lock(&b->lock);
	/* Freed first: a guest that takes back what it has asked for looks at the holder then. */
	b->holder = WF_BATON_FREE;
	b->promised = atomic_exchange(&b->wanted, false);
	take(b);
	pthread_mutex_unlock(&b->lock);
}

void wf_baton_sleep(struct wf_baton *b)
{
	pthread_mutex_lock(&b->lock);
	b->asleep = true;
	b->visited = false;
	b->holder = WF_BATON_FREE;
	pthread_mutex_unlock(&b->lock);
}

bool wf_baton_wake(struct wf_baton *b)
{
	bool visited;

	pthread_mutex_lock(&b->lock);
	b->asleep = false;
	take(b);
	visited = b->visited;
	pthread_mutex_unlock(&b->lock);
	return visited;
}

/* Give the baton to a guest.  With the lock. */
static void admit(struct wf_baton *b, uint64_t came_ns)
{
	if (!b->left_ns || came_ns - b->left_ns < SOON_NS)
		b->returns++;
	else
		b->returns = 0;
	b->holder = WF_BATON_GUEST;
	b->promised = b->expected = false;
	b->visited = true;
	atomic_store(&b->wanted, false);
}

/* Give the baton to a guest if it is free; with @expected only to one that is. */
static bool take_free(struct wf_baton *b, uint64_t came_ns, bool expected)
{
	bool taken;

	if (atomic_load(&b->holder) != WF_BATON_FREE)
		return false;
	pthread_mutex_lock(&b->lock);
	taken = b->holder == WF_BATON_FREE && (b->expected || !expected);
	if (taken)
		admit(b, came_ns);
	pthread_mutex_unlock(&b->lock);
	return taken;
}

bool wf_baton_take(struct wf_baton *b, uint64_t came_ns)
{
	return take_free(b, came_ns, false);
}

bool wf_baton_resume(struct wf_baton *b, uint64_t came_ns)
{
	return take_free(b, came_ns, true);
}

void wf_baton_ask(struct wf_baton *b, bool wanted)
{
	atomic_store(&b->wanted, wanted);
}

bool wf_baton_give(struct wf_baton *b, uint64_t now_ns, bool alone)
{
	bool asleep;

	pthread_mutex_lock(&b->lock);
	b->holder = WF_BATON_FREE;
	b->left_ns = now_ns;
	asleep = b->asleep;
	b->expected = alone && b->returns >= b->returns_min;
	if (!b->expected && !asleep)
		pthread_cond_signal(&b->passed);
	pthread_mutex_unlock(&b->lock);
	return asleep;
}
