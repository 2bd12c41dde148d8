/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/engine.h"
#include "link/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "link/lease.h"
#include "link/sidedoor.h"
#include "secure/acl.h"
#include "secure/credentials.h"

#define EVENTS_MAX 32                    /* events of one poll of a rail: bounds a turn */
#define SLEEP_MAX_NS WF_NS_PER_S         /* bound of every sleep */
#define BLIND_NS WF_NS_PER_MS            /* sleep of a rail that nobody wakes */
#define CLOSE_NS WF_NS_PER_S             /* time that closing lingers, see must_linger() */
#define CLOSE_TURN_NS (5 * WF_NS_PER_MS)
#define REOPEN_PAUSE_NS (20 * WF_NS_PER_MS) /* pause before reopening is tried again; doubles */
#define REOPEN_PAUSE_MAX_NS WF_NS_PER_S
#define ABANDONED_NS WF_NS_PER_S /* time for frames that nobody needs to leave; not tuned */
#define LINKS_MAX 65536

/* Rails. */

static void wake(void *ctx)
{
	struct wf_engine *engine = ctx;

	wf_loop_wake(&engine->loop);
}

/* Let memory of the program's that is only kept registered give way. */
static bool make_room(void *ctx)
{
	struct wf_engine *engine = ctx;

	return wf_cache_clear(&engine->pool.cache);
}

/* Log names of WEFT_PROVIDER that match nothing: one may be misspelt, and others serve. */
static void name_absent(struct wf_engine *engine)
{
	char names[WF_OPTION_TEXT_BYTES];

	if (!engine->first && wf_select_absent(&engine->select, &engine->options, names))
		wf_log(&engine->log, WF_LOG_WARN, "WEFT_PROVIDER%s names what libfabric does not "
		       "offer here: %s", wf_options_origin(&engine->options, "WEFT_PROVIDER"), names);
}

static int open_rails(struct wf_engine *engine, struct wf_error *e)
{
	struct wf_rail_config config = {
		.host = engine->host_address,
		.slots_count = (uint32_t)engine->options.slots,
		.counters = &engine->counters,
		.recorder = &engine->loop.recorder,
		.wake = wake,
		.wake_ctx = engine,
		.make_room = make_room,
		.make_room_ctx = engine,
	};
	struct wf_error first = { 0 };

	if (engine->options.ports[0]) {
		unsigned a, b;
		char rest;

		if (sscanf(engine->options.ports, "%u-%u%c", &a, &b, &rest) != 2 || !a ||
		    b > 65535 || a > b)
			return wf_error_set(e, -EINVAL, "WEFT_PORTS=%s: expected first-last, the "
					    "lower port first, from 1 to 65535", engine->options.ports);
		config.port_first = (uint16_t)a;
		config.port_last = (uint16_t)b;
	}
	for (size_t i = 0; i < engine->select.count && engine->rail_count < WF_ENGINE_RAILS_MAX;
	     i++) {
		struct wf_engine_rail *on = &engine->rails[engine->rail_count];
		struct wf_error why = { 0 };

		if (engine->select.all[i].short_of_room)
			wf_log(&engine->log, WF_LOG_WARN, "%s is not used: %s",
			       engine->select.all[i].caps.provider, engine->select.all[i].reason);
		if (!engine->select.all[i].used)
			continue;
		if (wf_rail_open(&engine->select.all[i], &config, &on->rail, &why)) {
			wf_log(&engine->log, WF_LOG_WARN, "%s: %s",
			       engine->select.all[i].caps.provider, why.text);
			if (!first.code)
				first = why;
			continue;
		}
		wf_list_init(&on->abandoned);
		on->share = (uint32_t)engine->options.window;
		engine->frame_bytes =
			WF_MAX(engine->frame_bytes, wf_rail_caps(on->rail)->frame_bytes);
		engine->rail_count++;
	}
	if (!engine->rail_count) {
		*e = first;
		return first.code ? first.code
				  : wf_error_set(e, -ENODATA, "no provider could be opened");
	}
	return 0;
}

/*
 * Take the pool's first memory, so that what the settings want and the system has not is known at
 * once.
 */
static int try_pool(struct wf_engine *engine, struct wf_error *e)
{
	struct wf_pool *pool = &engine->pool;
	void *chunk;

	if (!pool->placement.placed && !pool->placement.huge)
		return 0;
	if (!wf_pool_take(pool, 1, &chunk))
		wf_pool_give(pool, chunk);
	if (pool->placement.huge && !pool->huge_bytes)
		return wf_error_set(e, -ENOMEM, "WEFT_POOL_HUGE=yes: the system has no free huge page of "
				    "2 MiB (/proc/sys/vm/nr_hugepages sets some aside), or a worker's "
				    "part of WEFT_POOL_BYTES is smaller");
	if (pool->placement.refused)
		wf_log(&engine->log, WF_LOG_WARN, "WEFT_POOL_NUMA=%s: the system places memory as it "
		       "likes: %s", engine->options.pool_numa, wf_error_name(pool->placement.refused));
	return 0;
}

/* Keep registrations of the program's memory, if a rail is open where they are dear. */
static void open_cache(struct wf_engine *engine)
{
	struct wf_error e;
	bool dear = false;

	for (uint32_t i = 0; i < engine->rail_count; i++)
		dear |= !wf_rail_caps(engine->rails[i].rail)->memory.reg_cheap;
	if (dear && engine->options.cached_bytes &&
	    wf_cache_open(&engine->pool.cache, engine->options.cached_bytes,
			  engine->options.cached_keys, &e))
		wf_log(&engine->log, WF_LOG_INFO,
		       "memory of the program's is registered for each operation: %s", e.text);
}

/*
 * Close all rails.  Their operations end by the stop, and the upcalls of that still have the rail.
 */
static void close_rails(struct wf_engine *engine)
{
	for (uint32_t i = 0; i < engine->rail_count; i++) {
		struct wf_engine_rail *on = &engine->rails[i];

		wf_timer_stop(&engine->loop.timers, &on->reopen_timer);
		wf_timer_stop(&engine->loop.timers, &on->tidy_timer);
		wf_rail_stop(on->rail);
		wf_outframe_give_all(&on->abandoned);
		engine->sink->quiet(engine->sink_ctx, on);
	}
	wf_pool_forget(&engine->pool, NULL);
	wf_pool_forget(&engine->frames.pool, NULL);
	wf_pool_forget(&engine->fetched, NULL);
	wf_pool_forget(&engine->parcels, NULL);
	while (engine->rail_count)
		wf_rail_close(engine->rails[--engine->rail_count].rail);
}

static void tell_files(struct wf_engine *engine)
{
	char names[1024] = "";

	if (!engine->host)
		return;
	for (uint32_t i = 0; i < engine->rail_count; i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s\n",
			 wf_rail_files(engine->rails[i].rail));
	if (wf_host_files(engine->host, names))
		wf_log(&engine->log, WF_LOG_WARN,
		       "the files of this node can't be noted: a kill will leave them");
}

static void handle(struct wf_engine *engine, struct wf_engine_rail *on,
		   const struct wf_rail_event *ev)
{
	struct wf_engine_read *read = ev->cookie;

	switch (ev->kind) {
	case WF_EVENT_SENT:
		wf_tx_sent(ev->cookie, ev->status);
		break;
	case WF_EVENT_RECEIVED:
		wf_rx_received(engine, on, ev->bytes, ev->count);
		wf_rail_give(on->rail, ev->slot);
		break;
	case WF_EVENT_READ:
		read->done(read, ev->status);
		break;
	case WF_EVENT_REQUEST:
		wf_probe_request(engine, on, ev);
		break;
	case WF_EVENT_CONNECTED:
		wf_probe_connected(ev->ep);
		break;
	case WF_EVENT_CLOSED:
		wf_probe_closed(ev->ep, ev->status);
		break;
	}
}

static void tidy(struct wf_timer *timer)
{
	wf_rail_tidy(WF_CONTAINER(timer, struct wf_engine_rail, tidy_timer)->rail);
}

/*
 * Take the events of a rail one by one: an event may lead to the close of an endpoint that a later
 * one of the same batch names.  The provider is asked once: events that come meanwhile wait for
 * the next turn, and frames that go out need not.
 */
static int poll_rail(struct wf_engine *engine, struct wf_engine_rail *on)
{
	struct wf_rail_event ev;
	int count = 0;

	if (!on->tidy_timer.armed && wf_rail_untidy(on->rail))
		wf_loop_timer(&engine->loop, &on->tidy_timer, engine->loop.now_ns + WF_RAIL_TIDY_NS,
			      tidy);
	if (!wf_rail_poll(on->rail, &ev, 1))
		return 0;
	do
		handle(engine, on, &ev);
	while (++count < EVENTS_MAX && wf_rail_next(on->rail, &ev));
	return count;
}

static void reopen_again(struct wf_timer *timer)
{
	WF_CONTAINER(timer, struct wf_engine_rail, reopen_timer)->reopen = true;
}

/* Reopen the rail later; until that goes well it can't be used. */
static void reopen_later(struct wf_engine *engine, struct wf_engine_rail *on)
{
	on->reopen_pause_ns = on->reopen_pause_ns ? WF_MIN(2 * on->reopen_pause_ns,
							    REOPEN_PAUSE_MAX_NS)
						  : REOPEN_PAUSE_NS;
	wf_loop_timer(&engine->loop, &on->reopen_timer, engine->loop.now_ns + on->reopen_pause_ns,
		      reopen_again);
}

static void reopen_if_stuck(struct wf_timer *timer)
{
	struct wf_engine_rail *on = WF_CONTAINER(timer, struct wf_engine_rail, reopen_timer);

	on->reopen |= !wf_list_empty(&on->abandoned);
}

void wf_engine_watch_abandoned(struct wf_engine *engine, struct wf_engine_rail *on)
{
	if (!on->reopen_timer.armed)
		wf_loop_timer(&engine->loop, &on->reopen_timer,
			      engine->loop.now_ns + ABANDONED_NS, reopen_if_stuck);
}

/* Tell every peer where our rails are now, and let links look for a rail again. */
static void tell_rails(struct wf_engine *engine)
{
	tell_files(engine);
	WF_LIST_EACH(node, &engine->link_list) {
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
static void reopen(struct wf_engine *engine, struct wf_engine_rail *on)
{
	struct wf_error e;
	int err;

	wf_timer_stop(&engine->loop.timers, &on->reopen_timer);
	wf_recorder_add(&engine->loop.recorder, WF_RECORDER_REOPEN, 0,
			(uint64_t)(on - engine->rails), 0);
	WF_LIST_EACH(node, &engine->link_list)
		wf_probe_leave(WF_CONTAINER(node, struct wf_link, node), on);
	on->reopen = false; /* links that left with operations under way have asked for it */
	err = wf_rail_reopen(on->rail, &e);
	if (err)
		wf_log(&engine->log, WF_LOG_WARN, "%s: %s", wf_rail_caps(on->rail)->provider,
		       e.text);
	if (err == -ENOSYS) {
		tell_rails(engine); /* nothing was closed, and stuck operations stay stuck */
		return;
	}
	if (err)
		reopen_later(engine, on);
	else
		on->reopen_pause_ns = 0;
	on->edition++;
	wf_outframe_give_all(&on->abandoned);
	engine->sink->quiet(engine->sink_ctx, on);
	tell_rails(engine);
}

static int poll_rails(struct wf_engine *engine)
{
	int count = 0;

	for (uint32_t i = 0; i < engine->rail_count; i++) {
		if (engine->rails[i].reopen)
			reopen(engine, &engine->rails[i]);
		count += poll_rail(engine, &engine->rails[i]);
		/* The rail is asked when it has just looked: its last look may be long ago. */
		if (wf_rail_is_stuck(engine->rails[i].rail))
			reopen(engine, &engine->rails[i]);
	}
	return count;
}

/* Descriptors. */

static void peer_ended(struct wf_engine *engine, uint64_t id)
{
	WF_LIST_EACH(node, &engine->link_list) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		if (wf_poller_value(link->id) == id && link->side.host &&
		    wf_host_peer_dead(link->side.host)) {
			wf_keepalive_host_dead(link);
			return;
		}
	}
}

static void readable(void *ctx, unsigned tag, uint64_t value)
{
	struct wf_engine *engine = ctx;

	switch ((enum wf_engine_tag)tag) {
	case WF_ENGINE_TAG_RAIL:
		wf_rail_woken(engine->rails[value].rail);
		break;
	case WF_ENGINE_TAG_PEER:
		/* Frames that the process has sent before its end come first. */
		poll_rails(engine);
		peer_ended(engine, value);
		break;
	case WF_ENGINE_TAG_DOOR:
		wf_door_poll(engine->door, engine->loop.now_ns);
		break;
	case WF_ENGINE_TAG_SIDEDOOR:
		wf_sidedoor_poll(engine->sidedoor);
		break;
	case WF_ENGINE_TAG_BELL:
		break;
	}
}

static void look(void *ctx)
{
	struct wf_engine *engine = ctx;

	wf_door_poll(engine->door, engine->loop.now_ns);
	if (engine->sidedoor)
		wf_sidedoor_poll(engine->sidedoor);
}

static int watch_fds(struct wf_engine *engine, struct wf_error *e)
{
	struct wf_poller *p = &engine->loop.poller;
	int err = wf_poller_add(p, wf_door_fd(engine->door), WF_ENGINE_TAG_DOOR, 0);

	if (!err && engine->sidedoor)
		err = wf_poller_add(p, wf_sidedoor_fd(engine->sidedoor), WF_ENGINE_TAG_SIDEDOOR, 0);
	if (!err && engine->bell)
		err = wf_poller_add(p, wf_doorbell_fd(engine->bell), WF_ENGINE_TAG_BELL, 0);
	for (uint32_t i = 0; i < engine->rail_count && !err; i++)
		err = wf_poller_add(p, wf_rail_fd(engine->rails[i].rail), WF_ENGINE_TAG_RAIL, i);
	if (err)
		return wf_error_set(e, err, "the worker's descriptors can't be watched: %s",
				    wf_error_name(err));
	return 0;
}

/* Turns. */

static void begin(void *ctx)
{
	struct wf_engine *engine = ctx;

	if (!wf_list_empty(&engine->unused_links))
		wf_link_free_unused(engine);
}

/* Send what links marked dirty have; @idle: only on links whose peer has confirmed all frames. */
static void run_dirty(struct wf_engine *engine, bool idle)
{
	struct wf_list now, *node;

	if (wf_list_empty(&engine->dirty))
		return;
	wf_list_init(&now);
	wf_list_splice(&now, &engine->dirty);
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

void wf_engine_flush(struct wf_engine *engine)
{
	run_dirty(engine, true);
}

/*
 * Fail rails if this node was stopped, or kept from the loop, for so long that peers may have
 * given it up.  Memory that they offered before is theirs again then; where reads ask nobody, an
 * offer holds only after a new word of the peer.
 */
static void stood_still(void *ctx, uint64_t still_ns)
{
	struct wf_engine *engine = ctx;

	if (still_ns >= engine->options.lost_ns / 2)
		wf_recorder_add(&engine->loop.recorder, WF_RECORDER_STOOD_STILL, 0,
				still_ns / WF_NS_PER_MS, 0);
	WF_LIST_EACH(node, &engine->link_list) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		if (wf_keepalive_may_be_given_up(link, still_ns))
			wf_probe_failed(link, "this process stood still for too long");
	}
}

static int poll_all(void *ctx)
{
	struct wf_engine *engine = ctx;
	int count = poll_rails(engine);

	wf_pool_run(&engine->pool);
	wf_pool_run(&engine->fetched);
	wf_pool_run(&engine->parcels);
	return count;
}

static int arm(void *ctx, uint64_t *until_ns)
{
	struct wf_engine *engine = ctx;
	uint64_t until = WF_MIN(*until_ns, wf_door_next_ns(engine->door));

	if (!wf_list_empty(&engine->dirty))
		until = WF_MIN(until, engine->loop.now_ns + BLIND_NS);
	if (engine->bell)
		wf_doorbell_sleep(engine->bell);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&engine->pool.freed) || atomic_load(&engine->fetched.freed) ||
	    atomic_load(&engine->parcels.freed))
		return -EAGAIN;
	for (uint32_t i = 0; i < engine->rail_count; i++) {
		const struct wf_rail_caps *caps = wf_rail_caps(engine->rails[i].rail);

		/*
		 * wf_rail_arm() looks at the provider, now that remote doorbells see this worker
		 * asleep.
		 */
		if (engine->rails[i].reopen || wf_rail_arm(engine->rails[i].rail))
			return -EAGAIN;
		if (caps->wait == WF_WAIT_NONE && engine->rails[i].link_count)
			until = WF_MIN(until, engine->loop.now_ns + BLIND_NS);
	}
	*until_ns = until;
	return 0;
}

static void awake(void *ctx)
{
	struct wf_engine *engine = ctx;

	if (engine->bell)
		wf_doorbell_wake(engine->bell);
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
static int find_host_address(struct wf_engine *engine, struct wf_error *e)
{
	const char *from = engine->options.advertise[0] ? engine->options.advertise
							: wf_door_address(engine->door);
	uint16_t port, door_port;
	char host[WF_SOCKET_ADDRESS_BYTES];
	int err;

	if (engine->first) {
		strcpy(engine->host_address, engine->first->host_address);
		strcpy(engine->address, engine->first->address);
		return 0;
	}
	err = wf_socket_split(from, engine->host_address, sizeof(engine->host_address), &port, e);
	if (!err)
		err = wf_socket_split(wf_door_address(engine->door), host, sizeof(host), &door_port,
				      e);
	if (err)
		return err;
	if (!strcmp(engine->host_address, "0.0.0.0") || !strcmp(engine->host_address, "::"))
		return wf_error_set(e, -EINVAL,
				    "listening on %s needs WEFT_ADVERTISE: the address that others use",
				    wf_door_address(engine->door));
	/* An advertised host without its own port has the door's. */
	wf_socket_address(engine->host_address, port ? port : door_port, engine->address,
			  sizeof(engine->address));
	return 0;
}

static bool any_same_host(const struct wf_engine *engine)
{
	for (size_t i = 0; i < engine->select.count; i++)
		if (engine->select.all[i].used && engine->select.all[i].caps.same_host)
			return true;
	return false;
}

/*
 * Open the door.  Loopback, where the options name no place, is ::1 on a host that has no
 * 127.0.0.1.
 */
static int open_door(struct wf_engine *engine, struct wf_error *e)
{
	struct wf_door_config config = {
		.beyond_loopback = engine->beyond_loopback,
		.credentials = engine->credentials,
		.events = &wf_dial_events,
		.ctx = engine,
	};
	struct wf_error first;
	int err;

	if (!engine->first)
		config.listen = engine->options.listen[0] ? engine->options.listen : "127.0.0.1:0";
	err = wf_door_open(&config, &engine->door, e);
	if ((err != -EADDRNOTAVAIL && err != -EAFNOSUPPORT) || engine->options.listen[0])
		return err;
	first = *e;
	config.listen = "[::1]:0";
	if (!wf_door_open(&config, &engine->door, e)) {
		wf_log(&engine->log, WF_LOG_INFO, "%s: this node listens on ::1", first.text);
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
static int open_host(struct wf_engine *engine, struct wf_error *lack)
{
	int err;

	*lack = (struct wf_error){ 0 };
	err = wf_host_open(&engine->host, lack);
	if (!err)
		err = wf_sidedoor_open(engine, wf_host_number(engine->host), &wf_dial_beside,
				       &engine->sidedoor, lack);
	if (!err && any_same_host(engine))
		err = wf_doorbell_open(&engine->bell, lack);
	if (engine->bell)
		err = wf_shm_export_open(engine, &engine->shm_export, lack);
	if (engine->shm_export)
		wf_sidedoor_show_leases(engine->sidedoor, wf_shm_export_fd(engine->shm_export));
	if (!err || is_shortage(err))
		return err;
	wf_log(&engine->log, WF_LOG_WARN, "this node has no same-host rail: %s", lack->text);
	wf_select_without_host(&engine->select, lack->text);
	return 0;
}

static int open_loop(struct wf_engine *engine, struct wf_error *e)
{
	const struct wf_loop_config config = {
		.client = &client,
		.ctx = engine,
		.alarm = engine->manual,
		.spin_ns = engine->options.spin_ns,
		/* A sleep, and being late after it, must not look like standing still. */
		.sleep_max_ns = WF_MIN(SLEEP_MAX_NS, engine->options.lost_ns / 4),
	};

	return wf_loop_open(&engine->loop, &config, e);
}

static int open_pools(struct wf_engine *engine)
{
	int err = wf_pool_init(&engine->pool, engine->options.pool_bytes);

	if (err)
		return err;
	err = wf_pool_init(&engine->fetched, WF_FETCHED_BYTES);
	if (err)
		goto close_pool;
	err = wf_pool_init(&engine->parcels, WF_PARCELS_BYTES);
	if (err)
		goto close_fetched;
	err = wf_outframes_init(&engine->frames);
	if (err)
		goto close_parcels;
	return 0;

close_parcels:
	wf_pool_fini(&engine->parcels);
close_fetched:
	wf_pool_fini(&engine->fetched);
close_pool:
	wf_pool_fini(&engine->pool);
	return err;
}

int wf_engine_open(struct wf_engine *engine, const struct wf_engine_config *config,
		   struct wf_error *e)
{
	struct wf_error lack;
	int err;

	memset(engine, 0, sizeof(*engine));
	engine->options = *config->options;
	engine->log = config->log;
	engine->manual = config->manual;
	engine->beyond_loopback = config->credentials || !strcmp(engine->options.security, "open");
	engine->routes = config->routes;
	engine->sink = config->sink;
	engine->sink_ctx = config->sink_ctx;
	snprintf(engine->name, sizeof(engine->name), "%s", config->name);
	engine->directory = config->directory;
	engine->first = config->first;
	wf_list_init(&engine->link_list);
	wf_list_init(&engine->dirty);
	wf_list_init(&engine->unused_links);
	wf_list_init(&engine->shm_imports);
	wf_table_init(&engine->links, LINKS_MAX);
	err = open_loop(engine, e);
	if (err)
		return err;
	err = open_pools(engine);
	if (err) {
		wf_loop_close(&engine->loop);
		return wf_error_set(e, err, "the pool can't be set up");
	}
	if (config->credentials)
		engine->credentials = wf_credentials_get(config->credentials);
	if (config->acl)
		engine->acl = wf_acl_get(config->acl);
	err = wf_placement_open(&engine->pool.placement, engine->options.pool_numa,
				engine->options.pool_huge, engine->options.sysfs, e);
	if (err)
		goto close;
	/* Files that the dead have left in /dev/shm take room that a rail needs. */
	wf_host_sweep();
	err = wf_select_open(&engine->options, &engine->select, e);
	if (!err) {
		err = open_door(engine, e);
		if (err == -EINVAL)
			wf_error_within(e, "listen");
	}
	if (!err)
		err = find_host_address(engine, e);
	if (!err) {
		err = open_host(engine, &lack);
		if (err)
			*e = lack;
	}
	if (!err) {
		name_absent(engine);
		err = open_rails(engine, e);
		if (err == -ENODATA && lack.code)
			*e = lack;
	}
	if (!err)
		err = try_pool(engine, e);
	if (!err)
		err = watch_fds(engine, e);
	if (err)
		goto close;
	open_cache(engine);
	tell_files(engine);
	wf_directory_join(engine->directory, engine);
	return 0;

close:
	close_rails(engine);
	wf_engine_close(engine);
	return err;
}

/*
 * Is any frame not confirmed yet?  A link that was up and is looking for another rail counts, too.
 */
static bool must_linger(const struct wf_engine *engine)
{
	WF_LIST_EACH(node, &engine->link_list) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		if (wf_link_was_up(link) && link->conn &&
		    !(wf_list_empty(&link->out.frames) && !link->out.waiting))
			return true;
	}
	return false;
}

/*
 * Wait for the peers' confirmations, then say goodbye: a prompt close loses messages that were
 * reported as sent.
 */
static void say_goodbye(struct wf_engine *engine)
{
	struct wf_greet greet = { .kind = WF_GREET_GOODBYE };
	uint64_t until = engine->loop.now_ns + CLOSE_NS;
	struct wf_error e;

	/* Turns are short: a goodbye of the peer's ends the need to wait, but not a wait. */
	while (must_linger(engine) && engine->loop.now_ns < until)
		wf_loop_wait(&engine->loop, WF_MIN(until, engine->loop.now_ns + CLOSE_TURN_NS));
	wf_error_set(&e, -ECANCELED, "this node has closed");
	WF_LIST_EACH(node, &engine->link_list) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		if (!link->conn)
			continue;
		wf_log(&engine->log, WF_LOG_DEBUG, "%s: this node says goodbye",
		       wf_link_label(link));
		wf_conn_send(link->conn, &greet);
	}
	for (;;) {
		struct wf_link *busy = NULL;

		WF_LIST_EACH(node, &engine->link_list) {
			struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

			if (link->state != WF_LINK_IDLE && link->state != WF_LINK_GONE)
				busy = link;
		}
		if (!busy)
			break;
		wf_link_die(busy, &e);
	}
	(void)wf_loop_tell(&engine->loop);
}

void wf_engine_leave(struct wf_engine *engine)
{
	if (wf_poller_is_open(&engine->loop.poller))
		say_goodbye(engine);
	close_rails(engine);
	(void)wf_loop_drain(&engine->loop);
}

void wf_engine_close(struct wf_engine *engine)
{
	struct wf_list *node;
	struct wf_error e;

	/* Links may still hold messages: answers to offers given up since the links ended. */
	wf_error_set(&e, -ECANCELED, "this node has closed");
	WF_LIST_EACH(at, &engine->link_list)
		wf_tx_fail(WF_CONTAINER(at, struct wf_link, node), &e);
	wf_link_free_unused(engine);
	while ((node = wf_list_first(&engine->link_list))) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		link->refs = 1; /* no user of the link is left */
		link->same = NULL;
		wf_link_put(link);
		wf_link_free_unused(engine);
	}
	wf_door_close(engine->door);
	wf_credentials_put(engine->credentials);
	wf_acl_put(engine->acl);
	wf_sidedoor_close(engine->sidedoor);
	wf_doorbell_close(engine->bell);
	wf_shm_export_close(engine->shm_export);
	wf_host_close(engine->host);
	wf_select_close(&engine->select);
	wf_table_fini(&engine->links);
	wf_outframes_fini(&engine->frames);
	wf_pool_fini(&engine->parcels);
	wf_pool_fini(&engine->fetched);
	wf_pool_fini(&engine->pool);
	wf_loop_close(&engine->loop);
}

void wf_engine_forked(struct wf_engine *engine)
{
	wf_loop_forked(&engine->loop);
	wf_door_forked(engine->door);
	if (engine->sidedoor)
		wf_sidedoor_forked(engine->sidedoor);
	if (engine->host)
		wf_host_forked(engine->host);
	if (engine->bell)
		wf_doorbell_forked(engine->bell);
	if (engine->shm_export)
		wf_shm_export_forked(engine->shm_export);
	wf_shm_imports_forked(&engine->shm_imports);
	wf_pool_forked(&engine->pool);
	wf_pool_forked(&engine->fetched);
	wf_pool_forked(&engine->parcels);
}
