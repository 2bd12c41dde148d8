/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/engine.h"
#include "link/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "link/lease.h"
#include "link/sidedoor.h"

#define EVENTS_MAX 32                    /* events of one poll of a rail: bounds a turn */
#define SLEEP_MAX_NS WF_NS_PER_S         /* bound of every sleep */
#define BLIND_NS WF_NS_PER_MS            /* sleep of a rail that nobody wakes */
#define CLOSE_NS WF_NS_PER_S             /* time that closing lingers, see must_linger() */
#define CLOSE_TURN_NS (5 * WF_NS_PER_MS)
#define REOPEN_PAUSE_NS (20 * WF_NS_PER_MS) /* pause before reopening is tried again; doubles */
#define REOPEN_PAUSE_MAX_NS WF_NS_PER_S
#define LINKS_MAX 65536

/* Rails. */

static void wake(void *ctx)
{
	struct wf_engine *w = ctx;

	wf_loop_wake(&w->loop);
}

static int open_rails(struct wf_engine *w, struct wf_error *e)
{
	struct wf_rail_config config = {
		.host = w->host_address,
		.slots_count = (uint32_t)w->options.slots,
		.counters = &w->counters,
		.recorder = &w->loop.recorder,
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
	for (size_t i = 0; i < w->select.count && w->rail_count < WF_ENGINE_RAILS_MAX; i++) {
		struct wf_engine_rail *on = &w->rails[w->rail_count];
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

/*
 * Close all rails.  Their operations end by the stop, and the upcalls of that still have the rail.
 */
static void close_rails(struct wf_engine *w)
{
	for (uint32_t i = 0; i < w->rail_count; i++) {
		struct wf_engine_rail *on = &w->rails[i];

		wf_timer_stop(&w->loop.timers, &on->reopen_timer);
		wf_timer_stop(&w->loop.timers, &on->tidy_timer);
		wf_rail_stop(on->rail);
		wf_outframe_give_all(&on->abandoned);
		w->sink->quiet(w->sink_ctx, on);
	}
	wf_pool_forget(&w->pool, NULL);
	wf_pool_forget(&w->frames.pool, NULL);
	while (w->rail_count)
		wf_rail_close(w->rails[--w->rail_count].rail);
}

static void tell_files(struct wf_engine *w)
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

static int handle(struct wf_engine *w, struct wf_engine_rail *on, const struct wf_rail_event *ev)
{
	struct wf_engine_read *read = ev->cookie;

	switch (ev->kind) {
	case WF_EVENT_SENT:
		wf_tx_sent(ev->cookie, ev->status);
		break;
	case WF_EVENT_RECEIVED:
		wf_rx_received(w, on, ev->bytes, ev->count);
		wf_rail_give(on->rail, ev->slot);
		break;
	case WF_EVENT_READ:
		read->done(read, ev->status);
		break;
	case WF_EVENT_REQUEST:
		wf_probe_request(w, on, ev);
		break;
	case WF_EVENT_CONNECTED:
		wf_probe_connected(ev->ep);
		break;
	case WF_EVENT_CLOSED:
		wf_probe_closed(ev->ep, ev->status);
		break;
	}
	return 1;
}

static void tidy(struct wf_timer *timer)
{
	struct wf_engine_rail *on = WF_CONTAINER(timer, struct wf_engine_rail, tidy_timer);

	on->tidies = false;
	wf_rail_tidy(on->rail);
}

/*
 * Take the events of a rail one by one: an event may lead to the close of an endpoint that a later
 * one of the same batch names.  The provider is asked once: events that come meanwhile wait for
 * the next turn, and frames that go out need not.
 */
static int poll_rail(struct wf_engine *w, struct wf_engine_rail *on)
{
	struct wf_rail_event ev;
	int count = 0;

	if (!on->tidies && wf_rail_untidy(on->rail)) {
		on->tidies = true;
		wf_loop_timer(&w->loop, &on->tidy_timer, w->loop.now_ns + WF_RAIL_TIDY_NS, tidy);
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
	WF_CONTAINER(timer, struct wf_engine_rail, reopen_timer)->reopen = true;
}

/* Reopen the rail later; until that goes well it can't be used. */
static void reopen_later(struct wf_engine *w, struct wf_engine_rail *on)
{
	on->reopen_pause_ns = on->reopen_pause_ns ? WF_MIN(2 * on->reopen_pause_ns,
							    REOPEN_PAUSE_MAX_NS)
						  : REOPEN_PAUSE_NS;
	wf_loop_timer(&w->loop, &on->reopen_timer, w->loop.now_ns + on->reopen_pause_ns, reopen_again);
}

/* Tell every peer where our rails are now, and let links look for a rail again. */
static void tell_rails(struct wf_engine *w)
{
	tell_files(w);
	WF_LIST_EACH(node, &w->link_list) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		/*
		 * The side door first says where a same-host rail is now; then the hello, that it
		 * is another: a redial says so, too.
		 */
		wf_sidedoor_tell(link);
		/* A peer that has heard our hello and has not answered it yet is told, too. */
		if (!link->conn)
			continue;
		wf_dial_tell(link);
		if (wf_link_greeted(link) && link->state == WF_LINK_TRYING && !link->on)
			wf_probe_start(link);
	}
}

/*
 * Reopen a shared endpoint on which operations are stuck, tell every peer where it is now, and let
 * every link on it replay.
 */
static void reopen(struct wf_engine *w, struct wf_engine_rail *on)
{
	struct wf_error e;
	int err;

	on->reopen = false;
	wf_timer_stop(&w->loop.timers, &on->reopen_timer);
	wf_recorder_add(&w->loop.recorder, WF_RECORDER_REOPEN, 0, (uint64_t)(on - w->rails), 0);
	WF_LIST_EACH(node, &w->link_list)
		wf_probe_leave(WF_CONTAINER(node, struct wf_link, node), on);
	err = wf_rail_reopen(on->rail, &e);
	if (err)
		wf_log(&w->log, WF_LOG_WARN, "%s: %s", wf_rail_caps(on->rail)->provider, e.text);
	if (err == -ENOSYS) {
		tell_rails(w); /* nothing was closed, and stuck operations stay stuck */
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

static int poll_rails(struct wf_engine *w)
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

static void peer_ended(struct wf_engine *w, uint64_t id)
{
	WF_LIST_EACH(node, &w->link_list) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		if (link->id << 8 >> 8 == id && link->side.host &&
		    wf_host_peer_dead(link->side.host)) {
			wf_keepalive_host_dead(link);
			return;
		}
	}
}

static void readable(void *ctx, unsigned tag, uint64_t value)
{
	struct wf_engine *w = ctx;

	switch ((enum wf_engine_tag)tag) {
	case WF_ENGINE_TAG_RAIL:
		wf_rail_woken(w->rails[value].rail);
		break;
	case WF_ENGINE_TAG_PEER:
		/* Frames that the process has sent before its end come first. */
		poll_rails(w);
		peer_ended(w, value);
		break;
	case WF_ENGINE_TAG_DOOR:
		wf_door_poll(w->door, w->loop.now_ns);
		break;
	case WF_ENGINE_TAG_SIDEDOOR:
		wf_sidedoor_poll(w->sidedoor);
		break;
	case WF_ENGINE_TAG_BELL:
		break;
	}
}

static void look(void *ctx)
{
	struct wf_engine *w = ctx;

	wf_door_poll(w->door, w->loop.now_ns);
	if (w->sidedoor)
		wf_sidedoor_poll(w->sidedoor);
}

static int watch_fds(struct wf_engine *w, struct wf_error *e)
{
	struct wf_poller *p = &w->loop.poller;
	int err = wf_poller_add(p, wf_door_fd(w->door), WF_ENGINE_TAG_DOOR, 0);

	if (!err && w->sidedoor)
		err = wf_poller_add(p, wf_sidedoor_fd(w->sidedoor), WF_ENGINE_TAG_SIDEDOOR, 0);
	if (!err && w->bell)
		err = wf_poller_add(p, wf_doorbell_fd(w->bell), WF_ENGINE_TAG_BELL, 0);
	for (uint32_t i = 0; i < w->rail_count && !err; i++)
		err = wf_poller_add(p, wf_rail_fd(w->rails[i].rail), WF_ENGINE_TAG_RAIL, i);
	if (err)
		return wf_error_set(e, err, "the worker's descriptors can't be watched: %s",
				    wf_error_name(err));
	return 0;
}

/* Turns. */

static void begin(void *ctx)
{
	struct wf_engine *w = ctx;

	if (!wf_list_empty(&w->unused_links))
		wf_link_free_unused(w);
}

/* Send what links marked dirty have; @idle: only on links whose peer has confirmed all frames. */
static void run_dirty(struct wf_engine *w, bool idle)
{
	struct wf_list now, *node;

	if (wf_list_empty(&w->dirty))
		return;
	wf_list_init(&now);
	wf_list_splice(&now, &w->dirty);
	/* A link that can't send marks itself again, for the next turn. */
	while ((node = wf_list_pop(&now))) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, dirty_node);

		if (idle && !wf_list_empty(&link->out.frames))
			wf_link_mark(link);
		else
			wf_tx_run(link);
	}
}

static void send_all(void *ctx)
{
	run_dirty(ctx, false);
}

void wf_engine_flush(struct wf_engine *w)
{
	run_dirty(w, true);
}

/*
 * Fail rails if this node was stopped, or kept from the loop, for so long that peers may have
 * given it up.  Memory that they offered before is theirs again then; where reads ask nobody, an
 * offer holds only after a new word of the peer.
 */
static void stood_still(void *ctx, uint64_t still_ns)
{
	struct wf_engine *w = ctx;

	if (still_ns >= w->options.lost_ns / 2)
		wf_recorder_add(&w->loop.recorder, WF_RECORDER_STOOD_STILL, 0,
				still_ns / WF_NS_PER_MS, 0);
	WF_LIST_EACH(node, &w->link_list) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		if (wf_keepalive_may_be_given_up(link, still_ns))
			wf_probe_failed(link, "this process stood still for too long");
	}
}

static int poll_all(void *ctx)
{
	struct wf_engine *w = ctx;
	int count = poll_rails(w);

	wf_pool_run(&w->pool);
	return count;
}

static int arm(void *ctx, uint64_t *until_ns)
{
	struct wf_engine *w = ctx;
	uint64_t until = WF_MIN(*until_ns, wf_door_next_ns(w->door));

	if (!wf_list_empty(&w->dirty))
		until = WF_MIN(until, w->loop.now_ns + BLIND_NS);
	if (w->bell)
		wf_doorbell_sleep(w->bell);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&w->pool.freed))
		return -EAGAIN;
	for (uint32_t i = 0; i < w->rail_count; i++) {
		const struct wf_rail_caps *caps = wf_rail_caps(w->rails[i].rail);

		/*
		 * wf_rail_arm() looks at the provider, now that remote doorbells see this worker
		 * asleep.
		 */
		if (w->rails[i].reopen || wf_rail_arm(w->rails[i].rail))
			return -EAGAIN;
		if (caps->wait == WF_WAIT_NONE && w->rails[i].link_count)
			until = WF_MIN(until, w->loop.now_ns + BLIND_NS);
	}
	*until_ns = until;
	return 0;
}

static void awake(void *ctx)
{
	struct wf_engine *w = ctx;

	if (w->bell)
		wf_doorbell_wake(w->bell);
}

static const struct wf_loop_client client = {
	.begin = begin,
	.stood_still = stood_still,
	.poll = poll_all,
	.readable = readable,
	.look = look,
	.send = send_all,
	.arm = arm,
	.awake = awake,
};

/* Open and close. */

/* Set the address of rails to the host part of the door's address: never the wildcard. */
static int find_host_address(struct wf_engine *w, struct wf_error *e)
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

static bool any_same_host(const struct wf_engine *w)
{
	for (size_t i = 0; i < w->select.count; i++)
		if (w->select.all[i].used && w->select.all[i].caps.same_host)
			return true;
	return false;
}

/*
 * Open the door.  Loopback, where the options name no place, is ::1 on a host that has no
 * 127.0.0.1.
 */
static int open_door(struct wf_engine *w, struct wf_error *e)
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

/*
 * Is @err a shortage?  A process that is short of these has no use for a node without some of its
 * rails.
 */
static bool is_shortage(int err)
{
	return err == -ENOMEM || err == -EMFILE || err == -ENFILE;
}

/*
 * Open everything that same-host rails need.  A host that lacks some of it has no such rail: @lack
 * says why, and the other rails serve.  Any other error is this function's.
 */
static int open_host(struct wf_engine *w, struct wf_error *lack)
{
	int err;

	*lack = (struct wf_error){ 0 };
	err = wf_host_open(&w->host, lack);
	if (!err)
		err = wf_sidedoor_open(w, wf_host_number(w->host), &wf_dial_beside, &w->sidedoor,
				       lack);
	if (!err && any_same_host(w))
		err = wf_doorbell_open(&w->bell, lack);
	if (w->bell)
		err = wf_shm_export_open(w, &w->shm_export, lack);
	if (w->shm_export)
		wf_sidedoor_show_leases(w->sidedoor, wf_shm_export_fd(w->shm_export));
	if (!err || is_shortage(err))
		return err;
	wf_log(&w->log, WF_LOG_WARN, "this node has no same-host rail: %s", lack->text);
	wf_select_without_host(&w->select, lack->text);
	return 0;
}

static int open_loop(struct wf_engine *w, struct wf_error *e)
{
	const struct wf_loop_config config = {
		.client = &client,
		.ctx = w,
		.alarm = w->manual,
		.spin_ns = w->options.spin_ns,
		/* A sleep, and being late after it, must not look like standing still. */
		.sleep_max_ns = WF_MIN(SLEEP_MAX_NS, w->options.lost_ns / 4),
	};

	return wf_loop_open(&w->loop, &config, e);
}

int wf_engine_open(struct wf_engine *w, const struct wf_engine_config *config, struct wf_error *e)
{
	struct wf_error lack;
	int err;

	memset(w, 0, sizeof(*w));
	w->options = *config->options;
	w->log = config->log;
	w->manual = config->manual;
	w->routes = config->routes;
	w->sink = config->sink;
	w->sink_ctx = config->sink_ctx;
	snprintf(w->name, sizeof(w->name), "%s", config->name);
	w->directory = config->directory;
	w->first = config->first;
	wf_list_init(&w->link_list);
	wf_list_init(&w->dirty);
	wf_list_init(&w->unused_links);
	wf_list_init(&w->shm_imports);
	wf_table_init(&w->links, LINKS_MAX);
	err = open_loop(w, e);
	if (err)
		return err;
	err = wf_pool_init(&w->pool, w->options.pool_bytes);
	if (err) {
		wf_loop_close(&w->loop);
		return wf_error_set(e, err, "the pool can't be set up");
	}
	err = wf_outframes_init(&w->frames);
	if (err) {
		wf_pool_fini(&w->pool);
		wf_loop_close(&w->loop);
		return wf_error_set(e, err, "the pool can't be set up");
	}
	/* Files that the dead have left in /dev/shm take room that a rail needs. */
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
		err = watch_fds(w, e);
	if (err) {
		close_rails(w);
		wf_engine_close(w);
		return err;
	}
	tell_files(w);
	wf_directory_join(w->directory, w);
	return 0;
}

/*
 * Is any frame not confirmed yet?  A link that was up and is looking for another rail counts, too.
 */
static bool must_linger(const struct wf_engine *w)
{
	WF_LIST_EACH(node, &w->link_list) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		if (wf_link_was_up(link) && link->conn &&
		    !(wf_list_empty(&link->out.frames) && wf_list_empty(&link->out.queue)))
			return true;
	}
	return false;
}

/*
 * Wait for the peers' confirmations, then say goodbye: a prompt close loses messages that were
 * reported as sent.
 */
static void say_goodbye(struct wf_engine *w)
{
	struct wf_greet greet = { .kind = WF_GREET_GOODBYE };
	uint64_t until = w->loop.now_ns + CLOSE_NS;
	struct wf_error e;

	/* Turns are short: a goodbye of the peer's ends the need to wait, but not a wait. */
	while (must_linger(w) && w->loop.now_ns < until)
		wf_loop_wait(&w->loop, WF_MIN(until, w->loop.now_ns + CLOSE_TURN_NS));
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
	(void)wf_loop_tell(&w->loop);
}

void wf_engine_leave(struct wf_engine *w)
{
	if (wf_poller_is_open(&w->loop.poller))
		say_goodbye(w);
	close_rails(w);
	(void)wf_loop_drain(&w->loop);
}

void wf_engine_close(struct wf_engine *w)
{
	struct wf_list *node;
	struct wf_error e;

	/* Links may still hold messages: answers to offers given up since the links ended. */
	wf_error_set(&e, -ECANCELED, "this node has closed");
	WF_LIST_EACH(at, &w->link_list)
		wf_tx_fail(WF_CONTAINER(at, struct wf_link, node), &e);
	wf_link_free_unused(w);
	while ((node = wf_list_first(&w->link_list))) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		link->refs = 1; /* no user of the link is left */
		link->same = NULL;
		wf_link_put(link);
		wf_link_free_unused(w);
	}
	wf_door_close(w->door);
	wf_sidedoor_close(w->sidedoor);
	wf_doorbell_close(w->bell);
	wf_shm_export_close(w->shm_export);
	wf_host_close(w->host);
	wf_select_close(&w->select);
	wf_table_fini(&w->links);
	wf_outframes_fini(&w->frames);
	wf_pool_fini(&w->pool);
	wf_loop_close(&w->loop);
}

void wf_engine_forked(struct wf_engine *w)
{
	wf_loop_forked(&w->loop);
	wf_door_forked(w->door);
	if (w->sidedoor)
		wf_sidedoor_forked(w->sidedoor);
	if (w->host)
		wf_host_forked(w->host);
	if (w->bell)
		wf_doorbell_forked(w->bell);
	if (w->shm_export)
		wf_shm_export_forked(w->shm_export);
	wf_shm_imports_forked(&w->shm_imports);
	wf_pool_forked(&w->pool);
}
