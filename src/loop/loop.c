/* SPDX-License-Identifier: BSD-2-Clause */
#include "loop/loop.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <string.h>

#include "util/clock.h"

/*
 * The most that a turn runs of each kind before it looks at the wire again, so that no peer waits
 * for another one's long list: some 50 us of tasks that begin operations.
 */
#define NOTICES_MAX 32                   /* 16 make too many frames */
#define TIMERS_MAX 64                    /* not tuned */
#define TASKS_MAX 128                    /* not tuned */
#define LOOK_NS WF_NS_PER_MS             /* how often a busy loop looks at its descriptors */
#define STILL_NS (10 * WF_NS_PER_MS)     /* the least without a look; below any WEFT_LOST */
#define YIELD_NS (10 * WF_NS_PER_US)     /* spin before a yield, if the last one let nobody run */
#define YIELD_LONG_NS (2 * WF_NS_PER_US) /* a yield this long has let another thread run */

static void note_look(struct wf_loop *l)
{
	l->looked_ns = l->now_ns;
	l->look_ns = l->now_ns + LOOK_NS;
	l->still_ns = l->now_ns + STILL_NS;
}

int wf_loop_open(struct wf_loop *l, const struct wf_loop_config *config, struct wf_error *e)
{
	memset(l, 0, sizeof(*l));
	l->client = config->client;
	l->ctx = config->ctx;
	l->sleep_max_ns = config->sleep_max_ns;
	l->spin = wf_spin(config->spin_ns);
	wf_list_init(&l->notices);
	l->now_ns = wf_clock_now();
	l->busy_ns = l->now_ns;
	note_look(l);
	wf_recorder_turn(&l->recorder, l->now_ns);
	return wf_poller_open(&l->poller, config->alarm, e);
}

void wf_loop_close(struct wf_loop *l)
{
	wf_poller_close(&l->poller);
}

void wf_loop_forked(struct wf_loop *l)
{
	l->forked = true;
	wf_poller_close(&l->poller);
}

void wf_loop_kick(struct wf_loop *l)
{
	wf_poller_kick(&l->poller);
}

void wf_loop_wake(struct wf_loop *l)
{
	wf_poller_wake(&l->poller);
}

void wf_loop_submit(struct wf_loop *l, struct wf_loop_task *task)
{
	if (wf_inbox_put(&l->inbox, &task->node))
		wf_loop_wake(l);
}

/* The thread is awake, and looks into the inbox before it sleeps. */
void wf_loop_submit_inside(struct wf_loop *l, struct wf_loop_task *task)
{
	(void)wf_inbox_put(&l->inbox, &task->node);
}

/* Run at most @max tasks, and none that they submit.  Returns how many ran. */
static int run_tasks(struct wf_loop *l, int max)
{
	struct wf_inbox_node *node;
	int count = 0;

	wf_inbox_take(&l->inbox);
	while (count < max && (node = wf_inbox_next(&l->inbox))) {
		struct wf_loop_task *task = WF_CONTAINER(node, struct wf_loop_task, node);

		task->run(task); /* the task may be gone now */
		count++;
	}
	return count;
}

/* Run at most @max notices.  Returns how many ran. */
static int run_notices(struct wf_loop *l, int max)
{
	struct wf_list *node;
	int count = 0;

	/* A child forked in a callback has copies of the notices, which run in its parent. */
	while (count < max && !l->forked && (node = wf_list_pop(&l->notices))) {
		struct wf_loop_notice *notice = WF_CONTAINER(node, struct wf_loop_notice, node);

		wf_recorder_enter(&l->recorder, "a callback of the program", NULL);
		notice->run(notice);
		wf_recorder_leave(&l->recorder);
		count++;
	}
	l->pressing = l->pressing && !wf_list_empty(&l->notices);
	return count;
}

int wf_loop_tell(struct wf_loop *l)
{
	return run_notices(l, INT_MAX);
}

void wf_loop_catch_up(struct wf_loop *l)
{
	/* First what the last turn has left, and then what has come since. */
	for (unsigned i = 0; i < 2 && !wf_inbox_empty(&l->inbox); i++)
		(void)run_tasks(l, INT_MAX);
}

bool wf_loop_drain(struct wf_loop *l)
{
	bool any = false;
	int count;

	/* Notices may begin operations that end in further notices. */
	do {
		count = run_tasks(l, TASKS_MAX);
		count += run_notices(l, NOTICES_MAX);
		any |= count > 0;
	} while (count);
	return any;
}

void wf_loop_tick(struct wf_loop *l)
{
	wf_loop_tick_at(l, wf_clock_now());
}

/*
 * Tell the client that it has not looked for so long.  A tick without a turn, as of a program that
 * calls functions of its node and never polls, answers no peer, so it is no end of the time.
 */
static void tell_still(struct wf_loop *l)
{
	uint64_t still_ns = l->now_ns - l->looked_ns;

	l->still_ns = l->now_ns + still_ns / 8;
	l->client->stood_still(l->ctx, still_ns);
}

void wf_loop_tick_at(struct wf_loop *l, uint64_t now_ns)
{
	/* The time of a thread that has begun an operation may be before a turn of another's. */
	now_ns = WF_MAX(now_ns, l->now_ns);
	l->now_ns = now_ns;
	wf_recorder_turn(&l->recorder, now_ns);
	/* Tell the client before anything else is done: what held earlier may hold no more. */
	if (now_ns >= l->still_ns)
		tell_still(l);
}

static void awake(struct wf_loop *l)
{
	wf_poller_awake(&l->poller);
	l->client->awake(l->ctx);
}

/* Hand @n of @events to the client; a negative @n counts as none. */
static void take_events(struct wf_loop *l, const struct wf_poller_event *events, int n)
{
	awake(l);
	for (int i = 0; i < n; i++)
		if (events[i].tag >= WF_POLLER_TAG_FIRST)
			l->client->readable(l->ctx, events[i].tag, events[i].value);
}

void wf_loop_woken(struct wf_loop *l)
{
	struct wf_poller_event events[WF_POLLER_EVENTS_MAX];

	take_events(l, events, wf_poller_wait(&l->poller, events, 0));
	l->client->look(l->ctx);
	note_look(l);
}

/* Run notices, and send in the same turn what their callbacks begin. */
static int tell_and_send(struct wf_loop *l)
{
	int count = run_notices(l, NOTICES_MAX);

	if (l->forked)
		return count;
	if (!wf_inbox_empty(&l->inbox)) {
		wf_loop_tick(l); /* the callbacks may have taken long */
		count += run_tasks(l, TASKS_MAX);
	}
	l->client->send(l->ctx);
	return count;
}

int wf_loop_poll(struct wf_loop *l)
{
	int count;

	l->client->begin(l->ctx);
	wf_loop_tick(l);
	/* The descriptor that a program sleeps on stays readable until it is looked at. */
	if (wf_poller_asleep(&l->poller))
		wf_loop_woken(l);
	/* Send first, because records that waited for this turn have the longest way. */
	l->client->send(l->ctx);
	count = l->client->poll(l->ctx);
	if (l->now_ns >= l->look_ns)
		wf_loop_woken(l);
	count += (int)wf_timer_run(&l->timers, l->now_ns, TIMERS_MAX);
	count += run_tasks(l, TASKS_MAX);
	/* Run notices before the last send: what a callback sends leaves with what led to it. */
	count += tell_and_send(l);
	if (count)
		l->busy_ns = l->now_ns;
	return count;
}

int wf_loop_arm(struct wf_loop *l, uint64_t *until_ns)
{
	uint64_t until;

	l->client->send(l->ctx);
	until = WF_MIN(wf_timer_next_ns(&l->timers), l->now_ns + l->sleep_max_ns);
	wf_poller_sleep(&l->poller);
	/*
	 * A thread that submits or wakes from now on sees this loop asleep; earlier work is
	 * seen here.
	 */
	if (l->client->arm(l->ctx, &until) || !wf_inbox_empty(&l->inbox) ||
	    !wf_list_empty(&l->notices)) {
		l->busy_ns = l->now_ns;
		awake(l);
		return -EAGAIN;
	}
	*until_ns = until;
	return 0;
}

int wf_loop_arm_fd(struct wf_loop *l, uint64_t *until_ns)
{
	struct wf_poller_event events[WF_POLLER_EVENTS_MAX];
	uint64_t until;
	int n, err = wf_loop_arm(l, &until);

	if (!err)
		err = wf_poller_set_alarm(&l->poller, l->now_ns, until);
	if (err)
		return err;
	/*
	 * Events from before may be stale, and give a loop with EPOLLET no new edge: take them
	 * now.
	 */
	n = wf_poller_wait(&l->poller, events, 0);
	if (n > 0) {
		take_events(l, events, n);
		return -EAGAIN;
	}
	*until_ns = until;
	return 0;
}

void wf_loop_sleep(struct wf_loop *l, uint64_t until_ns, struct wf_loop_sleep *sleep)
{
	int ms;

	sleep->began_ns = wf_clock_now();
	ms = until_ns > sleep->began_ns ?
		     (int)((until_ns - sleep->began_ns + WF_NS_PER_MS - 1) / WF_NS_PER_MS) :
		     0;
	sleep->count = wf_poller_wait(&l->poller, sleep->events, ms);
}

void wf_loop_slept(struct wf_loop *l, const struct wf_loop_sleep *sleep)
{
	wf_loop_tick(l);
	if (sleep->count <= 0) {
		wf_loop_woken(l);
		return;
	}
	take_events(l, sleep->events, sleep->count);
	wf_spin_slept(&l->spin, l->now_ns - sleep->began_ns);
	/* Count any event as work, even a few bytes of a long read: the next ones are near. */
	l->busy_ns = l->now_ns;
}

/*
 * Yield, because the peer may be waiting for this very core.  A yield is a system call, and
 * delays the next look at the wire: where no other thread wants to run yields are rare.
 */
static void let_others_run(struct wf_loop *l)
{
	uint64_t began_ns;

	if (l->now_ns - WF_MAX(l->busy_ns, l->yielded_ns) < l->yield_pause_ns)
		return;
	began_ns = wf_clock_now();
	sched_yield();
	l->yielded_ns = wf_clock_now();
	l->yield_pause_ns = l->yielded_ns - began_ns > YIELD_LONG_NS ? 0 : YIELD_NS;
}

bool wf_loop_spin(struct wf_loop *l)
{
	int count = wf_loop_poll(l);

	if (l->forked)
		return false;
	if (count)
		return true;
	if (l->now_ns - l->busy_ns >= l->spin.limit_ns)
		return false;
	let_others_run(l);
	return true;
}

int wf_loop_round(struct wf_loop *l, uint64_t until_ns, uint64_t *sleep_ns)
{
	int count = wf_loop_poll(l);

	if (count || l->forked || l->now_ns >= until_ns)
		return count;
	if (l->now_ns - l->busy_ns < l->spin.limit_ns) {
		let_others_run(l);
		return 0;
	}
	return wf_loop_arm(l, sleep_ns) ? 0 : WF_LOOP_SLEEP;
}

int wf_loop_wait(struct wf_loop *l, uint64_t until_ns)
{
	struct wf_loop_sleep sleep;
	uint64_t sleep_ns;
	int count;

	for (;;) {
		count = wf_loop_round(l, until_ns, &sleep_ns);
		if (count > 0 || l->forked || (!count && l->now_ns >= until_ns))
			return count;
		if (!count)
			continue;
		wf_loop_sleep(l, WF_MIN(sleep_ns, until_ns), &sleep);
		wf_loop_slept(l, &sleep);
	}
}
