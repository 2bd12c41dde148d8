/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Baton: who turns a loop, of the thread that lives there (the resident) and those that only wait
 * for something that the loop brings (guests).
 *
 * Whoever holds the baton is the loop's owner.  A guest that waits takes the baton from a resident
 * that spins or sleeps, so that what it waits for costs no hand-off between threads, and gives the
 * baton back.  A guest that has come back soon each time is expected again: then the resident is
 * not woken, and looks by itself after a while, so that the loop is left alone for
 * WF_BATON_ALONE_NS at most.
 *
 * Threads: any, but where a function says otherwise.
 */
#ifndef WF_BATON_H
#define WF_BATON_H

#include <pthread.h>
#include <stdatomic.h>
#include "util/base.h"

#define WF_BATON_ALONE_NS 750000 /* the resident's pause, and how long a guest may be away */

enum wf_baton_holder { WF_BATON_FREE, WF_BATON_RESIDENT, WF_BATON_GUEST };

struct wf_baton {
	pthread_mutex_t lock;
	pthread_cond_t passed;  /* the resident may have the baton */
	_Atomic enum wf_baton_holder holder; /* changed under the lock */
	atomic_bool wanted;     /* a guest waits for the baton */

	/* under the lock */
	uint64_t left_ns;       /* when a guest last left; 0: none has */
	unsigned returns;       /* how often in a row a guest has come back soon */
	unsigned returns_min;   /* how often it must have, to be expected: once a guest did not come */
	bool promised;          /* the resident has let go for the guest that wanted the baton */
	bool expected;          /* a guest that has just left comes back soon */
	bool asleep;            /* the resident sleeps without the baton */
	bool visited;           /* a guest has had the baton since the resident went to sleep */
};

/* Set @b up.  A negative code: no lock. */
int wf_baton_init(struct wf_baton *b);
void wf_baton_fini(struct wf_baton *b);

/* Take the baton, and wait for it as long as a guest has it or is expected.  Threads: resident. */
void wf_baton_enter(struct wf_baton *b);

/* Give the baton up for good.  Threads: resident. */
void wf_baton_leave(struct wf_baton *b);

/* Let a guest that wants the baton have it, and take it again later.  Threads: resident. */
void wf_baton_yield(struct wf_baton *b);

static inline bool wf_baton_is_wanted(const struct wf_baton *b)
{
	return atomic_load_explicit(&b->wanted, memory_order_relaxed);
}

/*
 * Give the baton up for a sleep, and take it again after that.  Returns whether guests had it
 * meanwhile.  Threads: resident.
 */
void wf_baton_sleep(struct wf_baton *b);
bool wf_baton_wake(struct wf_baton *b);

/*
 * Take the baton for a guest that came at @came_ns.  False: the resident, or another guest, has it.
 * Threads: guest.
 */
bool wf_baton_take(struct wf_baton *b, uint64_t came_ns);

/* Take the baton, if the resident is not about to: a guest was expected.  Threads: guest. */
bool wf_baton_resume(struct wf_baton *b, uint64_t came_ns);

/* Ask the resident for the baton, until wf_baton_take() or wf_baton_ask(false).  Threads: guest. */
void wf_baton_ask(struct wf_baton *b, bool wanted);

/*
 * Give the baton back, at @now_ns; @alone: nobody else waits for what the loop brings.  Returns
 * whether the resident sleeps, and must be woken.  Threads: guest.
 */
bool wf_baton_give(struct wf_baton *b, uint64_t now_ns, bool alone);

#endif
