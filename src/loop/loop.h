/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loop: the turns of one thread.
 *
 * In each turn the loop looks at the clock, has its client take what the wire has brought, and
 * runs the timers that are due, the tasks that threads have submitted and the notices to users,
 * with a send by the client before and after.  A loop that finds nothing to do for a while
 * sleeps on its descriptors.  Its client is the floor above: struct wf_loop_client.
 *
 * Threads: owner, except where a function says otherwise.
 */
#ifndef WF_LOOP_H
#define WF_LOOP_H

#include "loop/inbox.h"
#include "loop/poller.h"
#include "loop/spin.h"
#include "loop/timer.h"
#include "util/list.h"
#include "util/recorder.h"

/* Work from another thread, or from the owner for later. */
struct wf_loop_task {
	struct wf_inbox_node node;
	void (*run)(struct wf_loop_task *task);
};

/* Something to tell a user at the end of this turn. */
struct wf_loop_notice {
	struct wf_list node;
	void (*run)(struct wf_loop_notice *notice);
};

/* Callbacks of the client, the floor above. */
struct wf_loop_client {
	/* A turn begins: no other function of the client's is on the stack. */
	void (*begin)(void *ctx);
	/* look() last ran @still_ns ago: 10 ms or more, and told anew as that grows by an eighth. */
	void (*stood_still)(void *ctx, uint64_t still_ns);
	/* Take what the wire has brought.  Returns how many things happened. */
	int (*poll)(void *ctx);
	/* A descriptor added to the poller is readable. */
	void (*readable)(void *ctx, unsigned tag, uint64_t value);
	/*
	 * Look at sources that are not polled in each turn, readable or not: after a sleep, and
	 * each millisecond.
	 */
	void (*look)(void *ctx);
	/* Send all that waits to be sent. */
	void (*send)(void *ctx);
	/*
	 * The loop is about to sleep: have it woken when something comes, and bring *@until_ns
	 * forward to when the client needs a turn in any case.  -EAGAIN: the client needs a
	 * turn now.
	 */
	int (*arm)(void *ctx, uint64_t *until_ns);
	/* The loop is awake again, or did not go to sleep after arm(). */
	void (*awake)(void *ctx);
};

struct wf_loop {
	struct wf_poller poller;
	struct wf_timers timers;
	struct wf_inbox inbox;
	struct wf_list notices;
	bool pressing;           /* one of the notices is for somebody who does not turn the loop */
	struct wf_spin spin;
	uint64_t now_ns;         /* time of this turn */
	uint64_t busy_ns;        /* when something last happened */
	uint64_t looked_ns;      /* when the client last looked */
	uint64_t look_ns;        /* when it is to look next */
	uint64_t still_ns;       /* when stood_still() is to be called */
	uint64_t yielded_ns;     /* when a spin last let others run */
	uint64_t yield_pause_ns; /* spin until the next yield */
	uint64_t sleep_max_ns;
	bool forked;             /* the process is a child of the one that opened the loop */
	const struct wf_loop_client *client;
	void *ctx;
	struct wf_recorder recorder;
};

struct wf_loop_config {
	const struct wf_loop_client *client;
	void *ctx;
	bool alarm;             /* a program sleeps on wf_loop_fd(): see wf_loop_arm_fd() */
	uint64_t spin_ns;       /* the least that a wait spins before it sleeps */
	uint64_t sleep_max_ns;  /* the longest sleep */
};

/* Open a loop.  On an error there is nothing to close.  Threads: setup. */
int wf_loop_open(struct wf_loop *l, const struct wf_loop_config *config, struct wf_error *e);
void wf_loop_close(struct wf_loop *l);

/* Close the descriptors in a forked child and turn no more, not even the turn under way. */
void wf_loop_forked(struct wf_loop *l);

/*
 * Look at the clock: all that happens until the next look happens at now_ns.  Not to be called
 * in a callback.
 */
void wf_loop_tick(struct wf_loop *l);
void wf_loop_tick_at(struct wf_loop *l, uint64_t now_ns); /* the caller has just looked */

/* Run a turn.  Returns how many things happened. */
int wf_loop_poll(struct wf_loop *l);

/* Turn until @until_ns at the latest or until something happened: spins, then sleeps. */
int wf_loop_wait(struct wf_loop *l, uint64_t until_ns);

/*
 * Turn once, for a wait until @until_ns.  Returns how many things happened; 0: none, and the time
 * has passed, or the loop is to spin on; WF_LOOP_SLEEP: nothing happened for as long as it pays to
 * spin, and every waker is armed for a sleep until *@sleep_ns.
 */
#define WF_LOOP_SLEEP (-1)
int wf_loop_round(struct wf_loop *l, uint64_t until_ns, uint64_t *sleep_ns);

/* Turn once.  Returns whether the loop is to spin on. */
bool wf_loop_spin(struct wf_loop *l);

/*
 * Sleep until @until_ns, at most, and write down what has happened for wf_loop_slept().  Another
 * thread may turn the loop meanwhile, and then nobody takes it.
 */
struct wf_loop_sleep {
	uint64_t began_ns;
	int count;
	struct wf_poller_event events[WF_POLLER_EVENTS_MAX];
};
void wf_loop_sleep(struct wf_loop *l, uint64_t until_ns, struct wf_loop_sleep *sleep);
void wf_loop_slept(struct wf_loop *l, const struct wf_loop_sleep *sleep);

/* Look at all sources in the next turn: another thread has turned the loop. */
static inline void wf_loop_doubt(struct wf_loop *l)
{
	l->look_ns = 0;
}

/*
 * Prepare for a sleep.  Returns 0 and *@until_ns when nothing is left to do and every waker is
 * armed.  -EAGAIN: call wf_loop_poll.
 */
int wf_loop_arm(struct wf_loop *l, uint64_t *until_ns);

/*
 * Prepare for a program's sleep on wf_loop_fd(), on a loop with an alarm only.  Returns 0 when
 * the descriptor is not readable now and will be at *@until_ns at the latest.  -EAGAIN: call
 * wf_loop_poll.  Other codes come from the system.
 */
int wf_loop_arm_fd(struct wf_loop *l, uint64_t *until_ns);

static inline int wf_loop_fd(const struct wf_loop *l)
{
	return l->poller.epoll_fd;
}

/* Take the events after a sleep on wf_loop_fd(), or instead of one. */
void wf_loop_woken(struct wf_loop *l);

/* Run notices until there are none.  Returns how many ran. */
int wf_loop_tell(struct wf_loop *l);

/* Run tasks and notices, outside a turn, until there are none.  Returns whether there was any. */
bool wf_loop_drain(struct wf_loop *l);

/* Run @task in a turn.  Borrows @task until it runs.  Threads: any, callback. */
void wf_loop_submit(struct wf_loop *l, struct wf_loop_task *task);
void wf_loop_submit_inside(struct wf_loop *l, struct wf_loop_task *task); /* Threads: owner */
void wf_loop_catch_up(struct wf_loop *l); /* run what was submitted, outside a turn.  Threads: owner */

/* End a sleep in wf_loop_sleep(), for which the loop need not be armed.  Threads: any, callback. */
void wf_loop_kick(struct wf_loop *l);

/* Wake the owner, if it sleeps.  Threads: any, callback. */
void wf_loop_wake(struct wf_loop *l);

/* Run @notice at the end of this turn.  Borrows @notice until it runs. */
static inline void wf_loop_defer(struct wf_loop *l, struct wf_loop_notice *notice)
{
	wf_list_append(&l->notices, &notice->node);
	l->pressing = true;
}

/* Do as wf_loop_defer() for a notice that nobody hears before turning the loop for it. */
static inline void wf_loop_defer_quietly(struct wf_loop *l, struct wf_loop_notice *notice)
{
	wf_list_append(&l->notices, &notice->node);
}

/*
 * Run @fire at @at_ns, and not at an earlier time of @timer's.  Borrows @timer until it fires
 * or is stopped.
 */
static inline void wf_loop_timer(struct wf_loop *l, struct wf_timer *timer, uint64_t at_ns,
				 void (*fire)(struct wf_timer *))
{
	wf_timer_arm(&l->timers, timer, at_ns, fire);
}

#endif
