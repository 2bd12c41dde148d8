/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/worker.h"
#include "link/internal.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "link/lease.h"
#include "link/sidedoor.h"
#include "util/clock.h"

#define EPOLL_EVENTS_MAX 16
#define EVENTS_MAX 32                    /* of one poll of a rail: bounds a turn */
#define NOTICES_MAX 32                   /* until what they begin is sent; 16 make too many frames */
#define LOOK_NS WF_NS_PER_MS             /* how often a busy worker looks at door and descriptors */
#define SLEEP_MAX_NS WF_NS_PER_S         /* every sleep has a bound */
#define STILL_NS (10 * WF_NS_PER_MS)     /* shorter than any WEFT_LOST: not worth a look at the links */
#define BLIND_NS WF_NS_PER_MS            /* sleep of a rail that nobody wakes */
#define YIELD_NS (10 * WF_NS_PER_US)     /* of a spin until a yield, if the last one found nobody */
#define YIELD_LONG_NS (2 * WF_NS_PER_US) /* of one that let somebody run */
#define CLOSE_NS WF_NS_PER_S             /* how long closing lingers, see must_linger */
#define CLOSE_TURN_NS (5 * WF_NS_PER_MS)
#define REOPEN_PAUSE_NS (20 * WF_NS_PER_MS) /* until a rail that can't be opened anew is tried again; it doubles */
#define REOPEN_PAUSE_MAX_NS WF_NS_PER_S
#define LINKS_MAX 65536

/* Rails. */

static void wake(void *ctx)
{
	wf_worker_wake(ctx);
}

static int open_rails(struct wf_worker *w, struct wf_error *e)
{
	struct wf_rail_config config = {
		.host = w->host_address,
		.slots_count = (uint32_t)w->options.slots,
		.counters = &w->counters,
		.recorder = &w->recorder,
		.wake = wake,
		.wake_ctx = w,
	};
	struct wf_error first = { 0 };

	if (w->options.ports[0]) {
		unsigned a, b;
		char rest;

		if (sscanf(w->options.ports, "%u-%u%c", &a, &b, &rest) != 2 || !a || b > 65535 ||
		    a > b)
			return wf_error_set(e, -EINVAL, "WEFT_PORTS=%s: first-last is expected",
					    w->options.ports);
		config.port_first = (uint16_t)a;
		config.port_last = (uint16_t)b;
	}
	for (size_t i = 0; i < w->select.count && w->rail_count < WF_WORKER_RAILS_MAX; i++) {
		struct wf_worker_rail *on = &w->rails[w->rail_count];
		struct wf_error why = { 0 };

		if (w->select.all[i].short_of_room)
			wf_log(&w->log, WF_LOG_WARN, "%s is not used: %s",
			       w->select.all[i].caps.provider, w->select.all[i].reason);
		if (!w->select.all[i].used)
			continue;
		if (wf_rail_open(&w->select.all[i], &config, &on->rail, &why)) {
			wf_log(&w->log, WF_LOG_WARN, "%s: %s", w->select.all[i].caps.provider,
			       why.text);
			if (!first.code)
				first = why;
			continue;
		}
		wf_list_init(&on->abandoned);
		on->share = (uint32_t)w->options.window;
		w->frame_bytes = WF_MAX(w->frame_bytes, wf_rail_caps(on->rail)->frame_bytes);
		w->rail_count++;
	}
	if (!w->rail_count) {
		*e = first;
		return first.code ? first.code
				  : wf_error_set(e, -ENODATA, "no provider could be opened");
	}
	return 0;
}

/* Operations end by the stop, and what is told then still has its rail. */
static void close_rails(struct wf_worker *w)
{
	for (uint32_t i = 0; i < w->rail_count; i++) {
		struct wf_worker_rail *on = &w->rails[i];

		wf_timer_stop(&w->timers, &on->reopen_timer);
		wf_timer_stop(&w->timers, &on->tidy_timer);
		wf_rail_stop(on->rail);
		wf_outframe_give_all(&on->abandoned);
		w->sink->quiet(w->sink_ctx, on);
	}
	wf_pool_forget(&w->pool, NULL);
	wf_pool_forget(&w->frames.pool, NULL);
	while (w->rail_count)
		wf_rail_close(w->rails[--w->rail_count].rail);
}

static void tell_files(struct wf_worker *w)
{
	char names[1024] = "";

	if (!w->host)
		return;
	for (uint32_t i = 0; i < w->rail_count; i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s\n",
			 wf_rail_files(w->rails[i].rail));
	if (wf_host_files(w->host, names))
		wf_log(&w->log, WF_LOG_WARN, "the files of this node can't be noted: a kill will leave them");
}

static int handle(struct wf_worker *w, struct wf_worker_rail *on, const struct wf_event *ev)
{
	struct wf_read *read = ev->cookie;

	switch (ev->kind) {
	case WF_EVENT_SENT:
		wf_flow_sent(ev->cookie, ev->status);
		break;
	case WF_EVENT_RECEIVED:
		wf_intake_received(w, on, ev->bytes, ev->count);
		wf_rail_give(on->rail, ev->slot);
		break;
	case WF_EVENT_READ:
		read->done(read, ev->status);
		break;
	case WF_EVENT_REQUEST:
		wf_attempt_request(w, on, ev);
		break;
	case WF_EVENT_CONNECTED:
		wf_attempt_connected(ev->ep);
		break;
	case WF_EVENT_CLOSED:
		wf_attempt_closed(ev->ep, ev->status);
		break;
	}
	return 1;
}

static void tidy(struct wf_timer *timer)
{
	struct wf_worker_rail *on = WF_CONTAINER(timer, struct wf_worker_rail, tidy_timer);

	on->tidies = false;
	wf_rail_tidy(on->rail);
}

/*
 * What an event leads to may close an endpoint that a later one of the same
 * batch names, so they are taken one by one.  The provider is asked once: what
 * comes meanwhile waits for the next turn, and what goes out need not.
 */
static int poll_rail(struct wf_worker *w, struct wf_worker_rail *on)
{
	struct wf_event ev;
	int count = 0;

	if (!on->tidies && wf_rail_untidy(on->rail)) {
		on->tidies = true;
		wf_worker_timer(w, &on->tidy_timer, w->now_ns + WF_RAIL_TIDY_NS, tidy);
	}
	if (!wf_rail_poll(on->rail, &ev, 1))
		return 0;
	do
		count += handle(w, on, &ev);
	while (count < EVENTS_MAX && wf_rail_next(on->rail, &ev));
	return count;
}

static void reopen_again(struct wf_timer *timer)
{
	WF_CONTAINER(timer, struct wf_worker_rail, reopen_timer)->reopen = true;
}

/* The rail can't be used until this goes well. */
static void reopen_later(struct wf_worker *w, struct wf_worker_rail *on)
{
	on->reopen_pause_ns = on->reopen_pause_ns ? WF_MIN(2 * on->reopen_pause_ns,
							    REOPEN_PAUSE_MAX_NS)
						  : REOPEN_PAUSE_NS;
	wf_worker_timer(w, &on->reopen_timer, w->now_ns + on->reopen_pause_ns, reopen_again);
}

/* Tell every peer where our rails are now, and let links look for one again. */
static void tell_rails(struct wf_worker *w)
{
	tell_files(w);
	WF_LIST_EACH(node, &w->link_list) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		/* First where a same-host rail is now, then that it is another: a redial says so, too. */
		wf_sidedoor_tell(link);
		/* Also who has heard our hello and has not answered it yet. */
		if (!link->conn)
			continue;
		wf_dial_tell(link);
		if (link->greeted && link->state == WF_LINK_TRYING && !link->on)
			wf_attempt_start(link);
	}
}

/*
 * Operations are stuck on a shared endpoint: open it anew, tell every peer where
 * it is now, and let every link on it replay.
 */
static void reopen(struct wf_worker *w, struct wf_worker_rail *on)
{
	struct wf_error e;
	int err;

	on->reopen = false;
	wf_timer_stop(&w->timers, &on->reopen_timer);
	wf_recorder_add(&w->recorder, WF_RECORDER_REOPEN, 0, (uint64_t)(on - w->rails), 0);
	WF_LIST_EACH(node, &w->link_list)
		wf_attempt_leave(WF_CONTAINER(node, struct wf_link, node), on);
	err = wf_rail_reopen(on->rail, &e);
	if (err)
		wf_log(&w->log, WF_LOG_WARN, "%s: %s", wf_rail_caps(on->rail)->provider, e.text);
	if (err == -ENOSYS) {
		tell_rails(w); /* nothing was closed, and what is stuck stays so */
		return;
	}
	if (err)
		reopen_later(w, on);
	else
		on->reopen_pause_ns = 0;
	on->edition++;
	wf_outframe_give_all(&on->abandoned);
	w->sink->quiet(w->sink_ctx, on);
	tell_rails(w);
}

static int poll_rails(struct wf_worker *w)
{
	int count = 0;

	for (uint32_t i = 0; i < w->rail_count; i++) {
		if (w->rails[i].reopen || wf_rail_is_stuck(w->rails[i].rail))
			reopen(w, &w->rails[i]);
		count += poll_rail(w, &w->rails[i]);
	}
	return count;
}

/* Descriptors. */

enum tag { TAG_WAKE, TAG_TIMER, TAG_DOOR, TAG_SIDEDOOR, TAG_BELL, TAG_RAIL, TAG_LINK };

static int watch_fd(struct wf_worker *w, int fd, enum tag tag, uint64_t value)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = value << 8 | tag };

	if (fd < 0)
		return 0;
	return epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

int wf_worker_watch_peer(struct wf_worker *w, int fd, uint64_t link_id)
{
	/* 56 bits of the id: generations of one place repeat after 16 million peers. */
	return watch_fd(w, fd, TAG_LINK, link_id);
}

/* By name: a forked child may hold a copy of @fd, and that keeps its entry alive. */
void wf_worker_unwatch_peer(struct wf_worker *w, int fd)
{
	(void)epoll_ctl(w->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static void peer_ended(struct wf_worker *w, uint64_t id)
{
	WF_LIST_EACH(node, &w->link_list) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		if (link->id << 8 >> 8 == id && link->peer_host &&
		    wf_host_peer_dead(link->peer_host)) {
			wf_live_host_dead(link);
			return;
		}
	}
}

/* @n of our descriptors are readable: -1 is as good as none. */
static void take_readable(struct wf_worker *w, const struct epoll_event *events, int n)
{
	uint64_t count;

	atomic_store(&w->asleep, false);
	if (w->bell)
		wf_doorbell_wake(w->bell);
	for (int i = 0; i < n; i++) {
		uint64_t value = events[i].data.u64 >> 8;

		switch ((enum tag)(events[i].data.u64 & 0xff)) {
		case TAG_WAKE:
			if (read(w->wake_fd, &count, sizeof(count)) < 0)
				break; /* another wake-up has taken it */
			break;
		case TAG_TIMER:
			w->alarm_ns = 0;
			if (read(w->timer_fd, &count, sizeof(count)) < 0)
				break; /* the timer was set anew since it fired */
			break;
		case TAG_RAIL:
			wf_rail_woken(w->rails[value].rail);
			break;
		case TAG_LINK:
			/* What it has sent before its end comes first. */
			poll_rails(w);
			peer_ended(w, value);
			break;
		case TAG_DOOR:
			wf_door_poll(w->door, w->now_ns);
			break;
		case TAG_SIDEDOOR:
			wf_sidedoor_poll(w->sidedoor);
			break;
		case TAG_BELL:
			break;
		}
	}
}

void wf_worker_woken(struct wf_worker *w)
{
	struct epoll_event events[EPOLL_EVENTS_MAX];

	take_readable(w, events, epoll_wait(w->epoll_fd, events, EPOLL_EVENTS_MAX, 0));
	wf_door_poll(w->door, w->now_ns);
	if (w->sidedoor)
		wf_sidedoor_poll(w->sidedoor);
	w->look_ns = w->now_ns;
}

int wf_worker_fd(const struct wf_worker *w)
{
	return w->epoll_fd;
}

static int open_fds(struct wf_worker *w, struct wf_error *e)
{
	int err = 0;

	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->epoll_fd < 0 || w->wake_fd < 0)
		return wf_error_set(e, -errno, "no descriptor for the worker: %s",
				    wf_error_name(-errno));
	err = watch_fd(w, w->wake_fd, TAG_WAKE, 0);
	if (!err)
		err = watch_fd(w, wf_door_fd(w->door), TAG_DOOR, 0);
	if (!err && w->sidedoor)
		err = watch_fd(w, wf_sidedoor_fd(w->sidedoor), TAG_SIDEDOOR, 0);
	if (!err && w->manual) {
		w->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
		err = w->timer_fd < 0 ? -errno : watch_fd(w, w->timer_fd, TAG_TIMER, 0);
	}
	if (!err && w->bell)
		err = watch_fd(w, wf_doorbell_fd(w->bell), TAG_BELL, 0);
	for (uint32_t i = 0; i < w->rail_count && !err; i++)
		err = watch_fd(w, wf_rail_fd(w->rails[i].rail), TAG_RAIL, i);
	if (err)
		return wf_error_set(e, err, "the worker's descriptors can't be watched: %s",
				    wf_error_name(err));
	return 0;
}

/* Open and close. */

/* The host part of the door's address, for rails: never the wildcard. */
static int find_host_address(struct wf_worker *w, struct wf_error *e)
{
	const char *from = w->options.advertise[0] ? w->options.advertise : wf_door_address(w->door);
	uint16_t port, door_port;
	char host[WF_SOCKET_ADDRESS_BYTES];
	int err;

	if (w->first) {
		strcpy(w->host_address, w->first->host_address);
		strcpy(w->address, w->first->address);
		return 0;
	}
	err = wf_socket_split(from, w->host_address, sizeof(w->host_address), &port, e);
	if (!err)
		err = wf_socket_split(wf_door_address(w->door), host, sizeof(host), &door_port, e);
	if (err)
		return err;
	if (!strcmp(w->host_address, "0.0.0.0") || !strcmp(w->host_address, "::"))
		return wf_error_set(e, -EINVAL,
				    "listening on %s needs WEFT_ADVERTISE: the address that others use",
				    wf_door_address(w->door));
	/* An advertised host without its own port has the door's. */
	snprintf(w->address, sizeof(w->address), strchr(w->host_address, ':') ? "[%s]:%u" : "%s:%u",
		 w->host_address, port ? port : door_port);
	return 0;
}

static bool any_same_host(const struct wf_worker *w)
{
	for (size_t i = 0; i < w->select.count; i++)
		if (w->select.all[i].used && w->select.all[i].caps.same_host)
			return true;
	return false;
}

/* Loopback, where the options name no place, is ::1 on a host that has no 127.0.0.1. */
static int open_door(struct wf_worker *w, struct wf_error *e)
{
	struct wf_door_config config = {
		.beyond_loopback = !strcmp(w->options.security, "open"),
		.events = &wf_dial_events,
		.ctx = w,
	};
	struct wf_error first;
	int err;

	if (!w->first)
		config.listen = w->options.listen[0] ? w->options.listen : "127.0.0.1:0";
	err = wf_door_open(&config, &w->door, e);
	if ((err != -EADDRNOTAVAIL && err != -EAFNOSUPPORT) || w->options.listen[0])
		return err;
	first = *e;
	config.listen = "[::1]:0";
	if (!wf_door_open(&config, &w->door, e)) {
		wf_log(&w->log, WF_LOG_INFO, "%s: this node listens on ::1", first.text);
		return 0;
	}
	*e = first;
	return err;
}

/* A process that is short of these has no use for a node without some of its rails. */
static bool is_shortage(int err)
{
	return err == -ENOMEM || err == -EMFILE || err == -ENFILE;
}

/*
 * What same-host rails need.  A host that lacks some of it has no such rail: @lack says
 * why, and the other rails serve.  Any other error is this function's.
 */
static int open_host(struct wf_worker *w, struct wf_error *lack)
{
	int err;

	*lack = (struct wf_error){ 0 };
	err = wf_host_open(&w->host, lack);
	if (!err)
		err = wf_sidedoor_open(w, wf_host_number(w->host), &w->sidedoor, lack);
	if (!err && any_same_host(w))
		err = wf_doorbell_open(&w->bell, lack);
	if (w->bell)
		err = wf_lender_open(w, &w->lender, lack);
	if (!err || is_shortage(err))
		return err;
	wf_log(&w->log, WF_LOG_WARN, "this node has no same-host rail: %s", lack->text);
	wf_select_without_host(&w->select, lack->text);
	return 0;
}

int wf_worker_open(struct wf_worker *w, const struct wf_worker_config *config, struct wf_error *e)
{
	struct wf_error lack;
	int err;

	memset(w, 0, sizeof(*w));
	w->options = *config->options;
	w->spin = wf_spin(w->options.spin_ns);
	w->log = config->log;
	w->manual = config->manual;
	w->sink = config->sink;
	w->sink_ctx = config->sink_ctx;
	w->epoll_fd = w->wake_fd = w->timer_fd = -1;
	snprintf(w->name, sizeof(w->name), "%s", config->name);
	w->directory = config->directory;
	w->first = config->first;
	wf_list_init(&w->link_list);
	wf_list_init(&w->dirty);
	wf_list_init(&w->unused_links);
	wf_list_init(&w->notices);
	wf_list_init(&w->borrowers);
	wf_table_init(&w->links, LINKS_MAX);
	w->turn_ns = wf_clock_now();
	wf_worker_tick(w);
	w->busy_ns = w->look_ns = w->now_ns;
	err = wf_pool_init(&w->pool, w->options.pool_bytes);
	if (err)
		return wf_error_set(e, err, "the pool can't be set up");
	err = wf_outframes_init(&w->frames);
	if (err) {
		wf_pool_fini(&w->pool);
		return wf_error_set(e, err, "the pool can't be set up");
	}
	/* What the dead have left in /dev/shm is room for a rail. */
	wf_host_sweep();
	err = wf_select_open(&w->options, &w->select, e);
	if (!err) {
		err = open_door(w, e);
		if (err == -EINVAL)
			wf_error_within(e, "listen");
	}
	if (!err)
		err = find_host_address(w, e);
	if (!err) {
		err = open_host(w, &lack);
		if (err)
			*e = lack;
	}
	if (!err) {
		err = open_rails(w, e);
		if (err == -ENODATA && lack.code)
			*e = lack;
	}
	if (!err)
		err = open_fds(w, e);
	if (err) {
		close_rails(w);
		wf_worker_close(w);
		return err;
	}
	tell_files(w);
	wf_directory_join(w->directory, w);
	return 0;
}

/* Is anything not confirmed yet?  Also where a link that was up is looking for another rail. */
static bool must_linger(const struct wf_worker *w)
{
	WF_LIST_EACH(node, &w->link_list) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		if (link->was_up && link->conn &&
		    !(wf_list_empty(&link->frames) && wf_list_empty(&link->queue)))
			return true;
	}
	return false;
}

static int run_inbox(struct wf_worker *w)
{
	struct wf_inbox_node *node = wf_inbox_take(&w->inbox);
	int count = 0;

	while (node) {
		struct wf_task *task = WF_CONTAINER(node, struct wf_task, node);

		node = node->next; /* the task may be gone after its run */
		task->run(task);
		count++;
	}
	return count;
}

/* At most @max of @notices. */
static int run_notices(struct wf_worker *w, struct wf_list *notices, int max)
{
	struct wf_list *node;
	int count = 0;

	/* What a child that was forked in a callback has copies of is told in its parent. */
	while (count < max && !w->forked && (node = wf_list_pop(notices))) {
		struct wf_notice *notice = WF_CONTAINER(node, struct wf_notice, node);

		wf_recorder_enter(&w->recorder, "a callback of the program", NULL);
		notice->run(notice);
		wf_recorder_leave(&w->recorder);
		count++;
	}
	return count;
}

/* A prompt close loses messages that were reported as sent: wait for the peers' word, then say goodbye. */
static void say_goodbye(struct wf_worker *w)
{
	struct wf_greet greet = { .kind = WF_GREET_GOODBYE };
	uint64_t until = w->now_ns + CLOSE_NS;
	struct wf_error e;

	/* In short turns: a goodbye of the peer's ends the need to wait, but not a wait. */
	while (must_linger(w) && w->now_ns < until)
		wf_worker_wait(w, WF_MIN(until, w->now_ns + CLOSE_TURN_NS));
	wf_error_set(&e, -ECANCELED, "this node has closed");
	WF_LIST_EACH(node, &w->link_list) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		if (link->conn)
			wf_conn_send(link->conn, &greet);
	}
	for (;;) {
		struct wf_link *busy = NULL;

		WF_LIST_EACH(node, &w->link_list) {
			struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

			if (link->state != WF_LINK_IDLE && link->state != WF_LINK_GONE)
				busy = link;
		}
		if (!busy)
			break;
		wf_link_die(busy, &e);
	}
	run_notices(w, &w->notices, INT_MAX);
}

bool wf_worker_drain(struct wf_worker *w)
{
	bool any = false;

	/* What users are told may make them begin anew, to be told again. */
	while (run_inbox(w) + run_notices(w, &w->notices, NOTICES_MAX))
		any = true;
	return any;
}

void wf_worker_leave(struct wf_worker *w)
{
	if (w->epoll_fd >= 0)
		say_goodbye(w);
	close_rails(w);
	(void)wf_worker_drain(w);
}

void wf_worker_close(struct wf_worker *w)
{
	struct wf_list *node;
	struct wf_error e;

	/* Answers to the offers of what was given up since the links ended. */
	wf_error_set(&e, -ECANCELED, "this node has closed");
	WF_LIST_EACH(at, &w->link_list)
		wf_flow_fail(WF_CONTAINER(at, struct wf_link, node), &e);
	wf_link_free_unused(w);
	while ((node = wf_list_first(&w->link_list))) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		link->refs = 1; /* nobody is left to use it */
		link->same = NULL;
		wf_link_put(link);
		wf_link_free_unused(w);
	}
	wf_door_close(w->door);
	wf_sidedoor_close(w->sidedoor);
	wf_doorbell_close(w->bell);
	wf_lender_close(w->lender);
	wf_host_close(w->host);
	wf_select_close(&w->select);
	wf_table_fini(&w->links);
	wf_outframes_fini(&w->frames);
	wf_pool_fini(&w->pool);
	if (w->epoll_fd >= 0)
		close(w->epoll_fd);
	if (w->wake_fd >= 0)
		close(w->wake_fd);
	if (w->timer_fd >= 0)
		close(w->timer_fd);
}

/* The loop. */

void wf_worker_timer(struct wf_worker *w, struct wf_timer *timer, uint64_t at_ns,
		     void (*fire)(struct wf_timer *))
{
	wf_timer_arm(&w->timers, timer, at_ns, fire);
}

void wf_worker_defer(struct wf_worker *w, struct wf_notice *notice)
{
	wf_list_append(&w->notices, &notice->node);
}

void wf_worker_submit(struct wf_worker *w, struct wf_task *task)
{
	if (wf_inbox_put(&w->inbox, &task->node))
		wf_worker_wake(w);
}

void wf_worker_wake(struct wf_worker *w)
{
	uint64_t one = 1;

	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load(&w->asleep))
		return;
	/* Full means that a wake-up is pending already. */
	if (write(w->wake_fd, &one, sizeof(one)) < 0)
		return;
}

/* @idle: only where the peer has confirmed all frames. */
static void run_dirty(struct wf_worker *w, bool idle)
{
	struct wf_list now, *node;

	wf_list_init(&now);
	wf_list_splice(&now, &w->dirty);
	/* One that can't send marks itself again, for the next turn. */
	while ((node = wf_list_pop(&now))) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, dirty_node);

		if (idle && !wf_list_empty(&link->frames))
			wf_flow_mark(link);
		else
			wf_flow_run(link);
	}
}

void wf_worker_flush(struct wf_worker *w)
{
	run_dirty(w, true);
}

/*
 * Have we been stopped, or kept from the loop, for so long that peers may have
 * given us up?  What they offered before is theirs again then; where reads ask
 * nobody, an offer holds only after a new word of the peer.
 */
static void look_back(struct wf_worker *w)
{
	uint64_t still_ns = w->now_ns - w->turn_ns;

	w->turn_ns = w->now_ns;
	if (still_ns < STILL_NS)
		return;
	if (still_ns >= w->options.lost_ns / 2)
		wf_recorder_add(&w->recorder, WF_RECORDER_STOOD_STILL, 0,
				still_ns / WF_NS_PER_MS, 0);
	WF_LIST_EACH(node, &w->link_list) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		if (wf_link_may_be_given_up(link, still_ns))
			wf_attempt_failed(link, "this process stood still for too long");
	}
}

void wf_worker_tick(struct wf_worker *w)
{
	wf_worker_tick_at(w, wf_clock_now());
}

void wf_worker_tick_at(struct wf_worker *w, uint64_t now_ns)
{
	w->now_ns = now_ns;
	wf_recorder_turn(&w->recorder, w->now_ns);
	/* Before anything is done with what was offered earlier. */
	look_back(w);
}

/*
 * Run the notices that there are.  What callbacks have begun leaves in the same turn, and
 * where there are many before all of them have run, so that the peer is not idle meanwhile.
 */
static int tell(struct wf_worker *w)
{
	struct wf_list now;
	int count = 0;

	wf_list_init(&now);
	wf_list_splice(&now, &w->notices);
	do {
		count += run_notices(w, &now, NOTICES_MAX);
		if (w->forked)
			return count;
		if (!wf_inbox_empty(&w->inbox)) {
			wf_worker_tick(w); /* they may have taken their time */
			count += run_inbox(w);
		}
		run_dirty(w, false);
	} while (!wf_list_empty(&now));
	return count;
}

int wf_worker_poll(struct wf_worker *w)
{
	int count;

	wf_link_free_unused(w);
	wf_worker_tick(w);
	/* The descriptors of a program's own loop stay readable until they are looked at. */
	if (atomic_load_explicit(&w->asleep, memory_order_relaxed))
		wf_worker_woken(w);
	/* What has waited for this turn has the longest way. */
	run_dirty(w, false);
	count = poll_rails(w);
	if (w->now_ns - w->look_ns >= LOOK_NS)
		wf_worker_woken(w);
	count += (int)wf_timer_run(&w->timers, w->now_ns);
	count += run_inbox(w);
	wf_pool_run(&w->pool);
	/* Then all that is to be sent: what a callback says leaves with what led to it. */
	count += tell(w);
	if (count)
		w->busy_ns = w->now_ns;
	return count;
}

int wf_worker_arm(struct wf_worker *w, uint64_t *until_ns)
{
	uint64_t until;

	run_dirty(w, false);
	until = WF_MIN(wf_timer_next_ns(&w->timers), wf_door_next_ns(w->door));
	/* A sleep, and being late after it, must not look like standing still. */
	until = WF_MIN(until, w->now_ns + WF_MIN(SLEEP_MAX_NS, w->options.lost_ns / 4));
	if (!wf_list_empty(&w->dirty))
		until = WF_MIN(until, w->now_ns + BLIND_NS);
	atomic_store(&w->asleep, true);
	if (w->bell)
		wf_doorbell_sleep(w->bell);
	atomic_thread_fence(memory_order_seq_cst);
	if (!wf_inbox_empty(&w->inbox) || !wf_list_empty(&w->notices) ||
	    atomic_load(&w->pool.freed))
		goto awake;
	for (uint32_t i = 0; i < w->rail_count; i++) {
		const struct wf_caps *caps = wf_rail_caps(w->rails[i].rail);

		/* It looks at the provider, now that whoever rings sees us asleep. */
		if (w->rails[i].reopen || wf_rail_arm(w->rails[i].rail))
			goto awake;
		if (caps->wait == WF_WAIT_NONE && w->rails[i].link_count)
			until = WF_MIN(until, w->now_ns + BLIND_NS);
	}
	*until_ns = until;
	return 0;
awake:
	w->busy_ns = w->now_ns;
	atomic_store(&w->asleep, false);
	if (w->bell)
		wf_doorbell_wake(w->bell);
	return -EAGAIN;
}

/*
 * A timer that is set already and fires sooner stays: setting it costs a system call, and
 * each setting leads to one wake-up at most.
 */
static int set_alarm(struct wf_worker *w, uint64_t until_ns)
{
	struct itimerspec at = { .it_value = wf_clock_timespec(until_ns) };

	if (w->alarm_ns > w->now_ns && w->alarm_ns <= until_ns)
		return 0;
	if (timerfd_settime(w->timer_fd, TFD_TIMER_ABSTIME, &at, NULL))
		return -errno;
	w->alarm_ns = until_ns;
	return 0;
}

int wf_worker_arm_fd(struct wf_worker *w, uint64_t *until_ns)
{
	struct epoll_event events[EPOLL_EVENTS_MAX];
	uint64_t until;
	int n, err = wf_worker_arm(w, &until);

	if (!err)
		err = set_alarm(w, until);
	if (err)
		return err;
	/* What was ready before may be stale, and gives a loop with EPOLLET no new edge. */
	n = epoll_wait(w->epoll_fd, events, EPOLL_EVENTS_MAX, 0);
	if (n > 0) {
		take_readable(w, events, n);
		return -EAGAIN;
	}
	*until_ns = until;
	return 0;
}

static void sleep_until(struct wf_worker *w, uint64_t until_ns)
{
	uint64_t began_ns = wf_clock_now();
	int ms = until_ns > began_ns ?
			 (int)((until_ns - began_ns + WF_NS_PER_MS - 1) / WF_NS_PER_MS) :
			 0;
	struct epoll_event events[EPOLL_EVENTS_MAX];
	int n = epoll_wait(w->epoll_fd, events, EPOLL_EVENTS_MAX, ms);

	wf_worker_tick(w);
	if (n <= 0) {
		wf_worker_woken(w);
		return;
	}
	take_readable(w, events, n);
	wf_spin_slept(&w->spin, w->now_ns - began_ns);
	/* Also if it is no more than some bytes of a long read: the next ones are near. */
	w->busy_ns = w->now_ns;
}

/*
 * The peer may be waiting for this very core.  A yield is a system call, and
 * looks less often for the wire: where nobody else wants to run they are rare.
 */
static void let_others_run(struct wf_worker *w)
{
	uint64_t began_ns;

	if (w->now_ns - WF_MAX(w->busy_ns, w->yielded_ns) < w->yield_pause_ns)
		return;
	began_ns = wf_clock_now();
	sched_yield();
	w->yielded_ns = wf_clock_now();
	w->yield_pause_ns = w->yielded_ns - began_ns > YIELD_LONG_NS ? 0 : YIELD_NS;
}

int wf_worker_wait(struct wf_worker *w, uint64_t until_ns)
{
	uint64_t sleep_ns;
	int count;

	for (;;) {
		count = wf_worker_poll(w);
		if (count || w->forked || w->now_ns >= until_ns)
			return count;
		if (w->now_ns - w->busy_ns < w->spin.limit_ns) {
			let_others_run(w);
			continue;
		}
		if (wf_worker_arm(w, &sleep_ns))
			continue;
		sleep_until(w, WF_MIN(sleep_ns, until_ns));
	}
}

void wf_worker_forked(struct wf_worker *w)
{
	w->forked = true;
	(void)close(w->epoll_fd);
	(void)close(w->wake_fd);
	if (w->timer_fd >= 0)
		(void)close(w->timer_fd);
	w->epoll_fd = w->wake_fd = w->timer_fd = -1;
	wf_door_forked(w->door);
	if (w->sidedoor)
		wf_sidedoor_forked(w->sidedoor);
	if (w->host)
		wf_host_forked(w->host);
	if (w->bell)
		wf_doorbell_forked(w->bell);
	if (w->lender)
		wf_lender_forked(w->lender);
	wf_borrowers_forked(&w->borrowers);
	wf_pool_forked(&w->pool);
}
