/* SPDX-License-Identifier: BSD-2-Clause */
/* Both shapes of rail on a fabric that misbehaves on command, on virtual time. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include "fabric/ep.h"
#include "fabric/gate.h"
#include "fabric/mr.h"
#include "tests/fake/clock.h"
#include "tests/fake/fabric.h"

#define US WF_NS_PER_US
#define MS WF_NS_PER_MS
#define SLOTS 16
#define BIG (1 * MIB)

/* Ways to set up a rail; every test runs on each. */
struct shape {
	const char *provider;
	bool connected;
	uint32_t version;
};

static const struct shape connected_own_queues = { "tcp", true, FI_VERSION(1, 17) };
static const struct shape connected_one_queue = { "tcp", true, FI_VERSION(1, 20) };
static const struct shape shared = { "efa", false, FI_VERSION(1, 17) };
static const struct shape adapter = { "verbs", true, FI_VERSION(1, 17) };
static const struct shape gated = { "shm", false, FI_VERSION(1, 17) };

/* One end: a rail with one way to the other end, and what it has heard. */
struct end {
	struct wf_rail *rail;
	struct wf_ep *ep;
	struct wf_counters counters;
	unsigned connected, closed, sent, received, reads;
	int sent_status, read_status, closed_status;
	void *cookie;
	size_t count;
	uint8_t first; /* byte of the last message */
};

struct world {
	const struct shape *shape;
	struct wf_fake fake;
	struct wf_select select;
	struct end a, b;
	uint8_t *target, *source; /* BIG bytes each: a reads b's source into a's target */
	struct wf_mr *target_mr, *source_mr;
	uint8_t frame[16 * KIB];
	struct wf_mr *frame_mr; /* of a */
};

static const struct wf_select_candidate *chosen(const struct wf_select *select)
{
	size_t i;

	for (i = 0; !select->all[i].used; i++)
		;
	return &select->all[i];
}

static void open_end(struct world *w, struct end *end, unsigned node)
{
	const struct wf_rail_config config = {
		.host = "127.0.0.1",
		.slots_count = SLOTS,
		.counters = &end->counters,
	};

	wf_fake_enter(node);
	assert_int_equal(wf_rail_open(chosen(&w->select), &config, &end->rail, NULL), 0);
}

/* Poll once; whether there was anything. */
static bool hear_some(struct end *end)
{
	struct wf_rail_event events[4];
	int n = wf_rail_poll(end->rail, events, WF_COUNT(events));
	int i;

	for (i = 0; i < n; i++) {
		struct wf_rail_event *v = &events[i];

		if (v->ep && !wf_ep_owner(v->ep))
			continue; /* closed within this batch */
		switch (v->kind) {
		case WF_EVENT_REQUEST:
			assert_memory_equal(v->bytes, "token", 5);
			assert_int_equal(wf_ep_accept(end->rail, v->request, end, &end->ep, NULL), 0);
			break;
		case WF_EVENT_CONNECTED:
			end->connected++;
			break;
		case WF_EVENT_CLOSED:
			end->closed++;
			end->closed_status = v->status;
			break;
		case WF_EVENT_SENT:
			end->sent++;
			end->sent_status = v->status;
			end->cookie = v->cookie;
			break;
		case WF_EVENT_READ:
			end->reads++;
			end->read_status = v->status;
			end->cookie = v->cookie;
			break;
		case WF_EVENT_RECEIVED:
			end->received++;
			end->count = v->count;
			end->first = v->bytes[0];
			wf_rail_give(end->rail, v->slot);
			break;
		}
	}
	return n > 0;
}

/* As a worker does before it sleeps: what a poll has not looked at yet, arming finds. */
static void hear(struct end *end)
{
	do
		while (hear_some(end))
			;
	while (wf_rail_arm(end->rail) == -EAGAIN);
}

/* Let @ns pass, step by step, with both ends polling. */
static void pass(struct world *w, uint64_t ns)
{
	uint64_t until = wf_clock_now() + ns;

	for (;;) {
		uint64_t next;

		hear(&w->a);
		hear(&w->b);
		hear(&w->a);
		next = wf_fake_next_ns();
		if (next > until) {
			if (wf_clock_now() == until)
				return;
			next = until;
		}
		wf_fake_clock_set(next);
	}
}

/* By the kind of address that the rail has. */
static int open_at(struct end *from, const struct end *to, const uint8_t *address, size_t bytes,
		   const char *data, void *owner, struct wf_ep **ep)
{
	if (wf_rail_caps(from->rail)->same_host)
		return wf_ep_open_here(from->rail, address, bytes, (uint32_t)getpid(),
				       wf_rail_gate_fd(to->rail), owner, ep, NULL);
	return wf_ep_open(from->rail, address, bytes, data, strlen(data), owner, ep, NULL);
}

static void address_to(struct end *from, struct end *to, const char *data)
{
	uint8_t address[WF_ADDRESS_BYTES];
	size_t bytes = wf_rail_address(to->rail, address);

	assert_int_equal(open_at(from, to, address, bytes, data, from, &from->ep), 0);
}

static void join(struct world *w)
{
	address_to(&w->a, &w->b, "token");
	if (!w->shape->connected)
		address_to(&w->b, &w->a, "");
	pass(w, 10 * MS);
	assert_int_equal(w->a.connected, w->shape->connected);
	assert_int_equal(w->b.connected, w->shape->connected);
}

static void open_memory(struct world *w)
{
	size_t i;

	w->target = calloc(1, BIG);
	w->source = malloc(BIG);
	assert_non_null(w->target);
	assert_non_null(w->source);
	for (i = 0; i < BIG; i++)
		w->source[i] = (uint8_t)(i * 7 + 1);
	assert_int_equal(wf_mr_open(w->a.rail, w->target, BIG, WF_ACCESS_LOCAL, &w->target_mr, NULL), 0);
	assert_int_equal(wf_mr_open(w->b.rail, w->source, BIG, WF_ACCESS_REMOTE_READ, &w->source_mr,
				    NULL), 0);
	assert_int_equal(wf_mr_open(w->a.rail, w->frame, sizeof(w->frame), WF_ACCESS_LOCAL,
				    &w->frame_mr, NULL), 0);
}

static struct world *begin(const struct shape *shape, struct wf_fake fake)
{
	struct world *w = calloc(1, sizeof(*w));
	struct wf_options options = { .shm = true, .rdma = true };

	assert_non_null(w);
	w->shape = shape;
	fake.version = shape->version;
	if (!fake.seed)
		fake.seed = 1;
	wf_fake_open(&fake);
	if (shape == &gated)
		wf_fake_offer(FI_EP_RDM, "shm", "shm", NULL);
	if (shape == &adapter)
		wf_fake_offer(FI_EP_MSG, "verbs", "mlx5_0", "127.0.0.1");
	strcpy(options.provider, shape->provider);
	assert_int_equal(wf_select_open(&options, &w->select, NULL), 0);
	open_end(w, &w->a, 1);
	open_end(w, &w->b, 2);
	open_memory(w);
	join(w);
	return w;
}

static void end(struct world *w)
{
	wf_rail_close(w->a.rail);
	wf_rail_close(w->b.rail);
	wf_select_close(&w->select);
	assert_int_equal(atomic_load(&w->a.counters.registered_bytes), 0);
	assert_int_equal(wf_fake_close(), 0);
	free(w->target);
	free(w->source);
	free(w);
}

static int send_bytes(struct world *w, size_t count, void *cookie)
{
	return wf_ep_send(w->a.ep, w->frame, count, wf_mr_desc(w->frame_mr), cookie);
}

static int read_all(struct world *w, uint64_t key, void *cookie)
{
	return wf_ep_read(w->a.ep, w->target, BIG, wf_mr_desc(w->target_mr),
			  wf_mr_address(w->source_mr, w->source), key, cookie);
}

/* The tests, each for a shape that cmocka hands over. */

static void a_message_comes_out_as_it_went_in(void **state)
{
	struct world *w = begin(*state, (struct wf_fake){ .delay_min_ns = US, .delay_max_ns = US });
	int cookie;

	w->frame[0] = 42;
	assert_int_equal(send_bytes(w, 1000, &cookie), 0);
	assert_int_equal(wf_ep_busy(w->a.ep), 1);
	pass(w, 1 * MS);

	assert_int_equal(w->a.sent, 1);
	assert_ptr_equal(w->a.cookie, &cookie);
	assert_int_equal(wf_ep_busy(w->a.ep), 0);
	assert_int_equal(w->b.received, 1);
	assert_int_equal(w->b.count, 1000);
	assert_int_equal(w->b.first, 42);
	end(w);
}

static void a_short_message_is_done_at_once(void **state)
{
	struct world *w = begin(*state, (struct wf_fake){ 0 });

	assert_int_equal(send_bytes(w, wf_rail_caps(w->a.rail)->inject_bytes, NULL), 1);
	pass(w, 1 * MS);
	assert_int_equal(w->a.sent, 0);
	assert_int_equal(w->b.received, 1);
	/* One byte more needs a completion. */
	assert_int_equal(send_bytes(w, wf_rail_caps(w->a.rail)->inject_bytes + 1, NULL), 0);
	end(w);
}

static void a_frame_that_fits_no_slot_is_refused(void **state)
{
	struct world *w = begin(*state, (struct wf_fake){ 0 });

	assert_int_equal(send_bytes(w, wf_rail_caps(w->a.rail)->frame_bytes + 1, NULL), -EMSGSIZE);
	assert_int_equal(wf_ep_busy(w->a.ep), 0);
	end(w);
}

static void every_slot_is_used_again(void **state)
{
	struct world *w = begin(*state, (struct wf_fake){ .delay_min_ns = US, .delay_max_ns = 50 * US,
							 .shuffle = true });
	unsigned i;

	for (i = 0; i < 10 * SLOTS; i++) {
		assert_true(send_bytes(w, 8 + i, NULL) >= 0);
		if (i % 5 == 0)
			pass(w, 10 * US);
	}
	pass(w, 1 * MS);
	assert_int_equal(w->b.received, 10 * SLOTS);
	end(w);
}

static void a_read_brings_the_peers_bytes(void **state)
{
	struct world *w = begin(*state, (struct wf_fake){ .delay_min_ns = US, .delay_max_ns = US,
							 .mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR |
								    FI_MR_PROV_KEY });

	assert_int_equal(read_all(w, wf_mr_key(w->source_mr), w), 0);
	pass(w, 1 * MS);
	assert_int_equal(w->a.reads, 1);
	assert_int_equal(w->a.read_status, 0);
	assert_ptr_equal(w->a.cookie, w);
	assert_memory_equal(w->target, w->source, BIG);
	end(w);
}

static void a_refused_post_changes_nothing(void **state)
{
	struct world *w = begin(*state, (struct wf_fake){ 0 });

	wf_fake_knobs()->eagain = 1000;
	assert_int_equal(send_bytes(w, 8, NULL), -EAGAIN);
	assert_int_equal(send_bytes(w, 1000, NULL), -EAGAIN);
	assert_int_equal(read_all(w, wf_mr_key(w->source_mr), NULL), -EAGAIN);
	assert_int_equal(wf_ep_busy(w->a.ep), 0);
	wf_fake_knobs()->eagain = 0;
	assert_int_equal(send_bytes(w, 1000, NULL), 0);
	pass(w, 1 * MS);
	assert_int_equal(w->a.sent, 1);
	assert_int_equal(w->a.closed, 0);
	end(w);
}

static void a_slot_that_could_not_be_posted_is_tried_again(void **state)
{
	struct world *w = begin(*state, (struct wf_fake){ 0 });
	unsigned i;

	for (i = 0; i < SLOTS; i++)
		assert_true(send_bytes(w, 100, NULL) >= 0);
	wf_fake_knobs()->eagain = 1000; /* all slots are given back, none is taken */
	pass(w, 1 * MS);
	assert_int_equal(w->b.received, SLOTS);
	wf_fake_knobs()->eagain = 0;
	for (i = 0; i < SLOTS; i++)
		assert_true(send_bytes(w, 100, NULL) >= 0);
	pass(w, 1 * MS);
	assert_int_equal(w->b.received, 2 * SLOTS);
	end(w);
}

static void completions_that_come_twice_or_from_nowhere_are_dropped(void **state)
{
	struct world *w = begin(*state, (struct wf_fake){ .delay_min_ns = US, .delay_max_ns = 20 * US });
	unsigned i;

	wf_fake_knobs()->twice = 1000;
	wf_fake_knobs()->nobody = 1000;
	for (i = 0; i < 3 * SLOTS; i++) {
		assert_int_equal(send_bytes(w, 200, NULL), 0);
		pass(w, 100 * US);
	}
	assert_int_equal(w->a.sent, 3 * SLOTS);
	assert_int_equal(w->b.received, 3 * SLOTS);
	assert_int_equal(w->a.closed, 0);
	assert_true(atomic_load(&w->a.counters.late_dropped) >= 2 * 3 * SLOTS);
	end(w);
}

static void an_error_ends_its_operation_once(void **state)
{
	struct world *w = begin(*state, (struct wf_fake){ .delay_min_ns = US, .delay_max_ns = US });

	wf_fake_knobs()->fail = 1000;
	assert_int_equal(read_all(w, wf_mr_key(w->source_mr), NULL), 0);
	assert_int_equal(send_bytes(w, 1000, NULL), 0);
	pass(w, 1 * MS);
	assert_int_equal(w->a.reads, 1);
	assert_true(w->a.read_status < 0);
	assert_int_equal(w->a.sent, 1);
	assert_true(w->a.sent_status < 0);
	/* It is the end of a connection, told once on either side; a shared endpoint lives on. */
	assert_int_equal(w->a.closed, w->shape->connected);
	assert_int_equal(w->b.closed, w->shape->connected);
	end(w);
}

static void a_wrong_key_gets_no_bytes(void **state)
{
	struct world *w = begin(*state, (struct wf_fake){ .delay_min_ns = US, .delay_max_ns = US });

	assert_int_equal(read_all(w, wf_mr_key(w->source_mr) ^ 1, NULL), 0);
	pass(w, 1 * MS);
	assert_int_equal(w->a.reads, 1);
	assert_true(w->a.read_status < 0);
	assert_int_equal(w->target[1], 0);
	end(w);
}

static void closing_drops_what_was_under_way(void **state)
{
	struct world *w = begin(*state, (struct wf_fake){ .delay_min_ns = 100 * US,
							 .delay_max_ns = 100 * US });

	assert_int_equal(send_bytes(w, 1000, NULL), 0);
	assert_int_equal(read_all(w, wf_mr_key(w->source_mr), NULL), 0);
	assert_int_equal(wf_ep_busy(w->a.ep), 2);
	wf_ep_close(w->a.ep);
	w->a.ep = NULL;
	pass(w, 10 * MS);

	assert_int_equal(w->a.sent + w->a.reads + w->a.closed, 0);
	assert_true(atomic_load(&w->a.counters.late_dropped) >= 2);
	assert_int_equal(w->b.closed, w->shape->connected);
	end(w);
}

static void after_a_close_a_new_way_works(void **state)
{
	struct world *w = begin(*state, (struct wf_fake){ .delay_min_ns = US, .delay_max_ns = 90 * US });
	unsigned i, j;

	/* More often than there are slots: none may be lost with a connection. */
	for (i = 0; i < 3 * SLOTS; i++) {
		for (j = 0; j < 3; j++)
			assert_true(send_bytes(w, 1000, NULL) >= 0);
		wf_ep_close(w->a.ep);
		pass(w, 1 * MS);
		wf_ep_close(w->b.ep);
		w->a.connected = w->b.connected = 0;
		join(w);
	}
	w->b.received = 0;
	for (j = 0; j < SLOTS; j++)
		assert_true(send_bytes(w, 1000, NULL) >= 0);
	pass(w, 1 * MS);
	assert_int_equal(w->b.received, SLOTS);
	end(w);
}

static void a_read_that_never_ends_dies_with_its_endpoint(void **state)
{
	struct world *w = begin(*state, (struct wf_fake){ .delay_min_ns = US, .delay_max_ns = US });

	wf_fake_knobs()->stick = 1000;
	assert_int_equal(read_all(w, wf_mr_key(w->source_mr), NULL), 0);
	pass(w, 1000 * MS);
	assert_int_equal(w->a.reads, 0);
	assert_int_equal(wf_ep_busy(w->a.ep), 1);
	if (w->shape->connected) {
		assert_int_equal(wf_rail_reopen(w->a.rail, NULL), -ENOSYS);
	} else {
		uint8_t was[WF_ADDRESS_BYTES], is[WF_ADDRESS_BYTES];
		size_t bytes = wf_rail_address(w->a.rail, was);

		assert_int_equal(wf_rail_reopen(w->a.rail, NULL), 0);
		assert_int_equal(wf_rail_address(w->a.rail, is), bytes);
		assert_memory_not_equal(was, is, bytes);
		assert_int_equal(wf_ep_busy(w->a.ep), 0);
		assert_int_equal(send_bytes(w, 8, NULL), -ENOTCONN);
	}
	wf_ep_close(w->a.ep);
	w->a.ep = NULL;
	wf_fake_knobs()->stick = 0;
	pass(w, 10 * MS);
	assert_int_equal(w->a.reads, 0);
	assert_int_equal(w->target[1], 0);

	wf_ep_close(w->b.ep);
	w->a.connected = w->b.connected = 0;
	join(w);
	assert_int_equal(read_all(w, wf_mr_key(w->source_mr), NULL), 0);
	pass(w, 1 * MS);
	assert_int_equal(w->a.reads, 1);
	assert_memory_equal(w->target, w->source, BIG);
	end(w);
}

static void a_killed_peer_is_heard_of_where_connected(void **state)
{
	struct world *w = begin(*state, (struct wf_fake){ .delay_min_ns = US, .delay_max_ns = US });

	assert_int_equal(read_all(w, wf_mr_key(w->source_mr), NULL), 0);
	wf_fake_kill(2);
	pass(w, 10 * MS);
	if (w->shape->connected) {
		assert_int_equal(w->a.closed, 1);
		assert_int_equal(w->a.reads, 1);
		assert_true(w->a.read_status < 0);
		assert_int_equal(send_bytes(w, 8, NULL), -ENOTCONN);
	} else {
		/* Nothing at all: liveness is the link's business. */
		assert_int_equal(w->a.closed, 0);
		assert_int_equal(w->a.reads, 0);
		assert_int_equal(send_bytes(w, 8, NULL), 1);
	}
	end(w);
}

static void a_frozen_peer_goes_on_where_it_was(void **state)
{
	struct world *w = begin(*state, (struct wf_fake){ .delay_min_ns = US, .delay_max_ns = US });
	unsigned i;

	wf_fake_freeze(2, true);
	assert_int_equal(send_bytes(w, 1000, NULL), 0);
	assert_int_equal(read_all(w, wf_mr_key(w->source_mr), NULL), 0);
	for (i = 0; i < 100; i++) {
		wf_fake_clock_set(wf_clock_now() + MS);
		hear(&w->a);
	}
	assert_int_equal(w->a.sent, 1);
	assert_int_equal(w->a.reads, 0);
	assert_int_equal(w->b.received, 0);
	wf_fake_freeze(2, false);
	pass(w, 1 * MS);
	assert_int_equal(w->a.reads, 1);
	assert_int_equal(w->b.received, 1);
	end(w);
}

static void a_bad_address_is_refused(void **state)
{
	struct world *w = begin(*state, (struct wf_fake){ 0 });
	uint8_t junk[WF_ADDRESS_BYTES + 1];
	struct wf_ep *ep = NULL;
	size_t bytes;

	memset(junk, 0xab, sizeof(junk));
	for (bytes = 0; bytes <= sizeof(junk); bytes++) {
		if (!w->shape->connected && bytes == wf_rail_address(w->a.rail, (uint8_t[128]){ 0 }))
			continue; /* opaque there: only the provider can tell */
		assert_int_equal(open_at(&w->a, &w->b, junk, bytes, "", w, &ep), -EBADMSG);
	}
	assert_null(ep);
	end(w);
}

/* Only one of the shapes. */

static void nobody_listening_closes_the_endpoint(void **state)
{
	struct world *w = begin(&connected_own_queues, (struct wf_fake){ .delay_min_ns = US,
									.delay_max_ns = US });
	uint8_t address[WF_ADDRESS_BYTES];
	size_t bytes = wf_rail_address(w->b.rail, address);
	struct wf_ep *first = w->a.ep;

	(void)state;
	address[2] ^= 0x40; /* another port */
	assert_int_equal(wf_ep_open(w->a.rail, address, bytes, NULL, 0, &w->a, &w->a.ep, NULL), 0);
	assert_int_equal(send_bytes(w, 8, NULL), -EAGAIN); /* not yet connected */
	pass(w, 1 * MS);
	assert_int_equal(w->a.closed, 1);
	assert_int_equal(w->a.closed_status, -ECONNREFUSED);
	assert_int_equal(send_bytes(w, 8, NULL), -ENOTCONN);
	wf_ep_close(w->a.ep);
	w->a.ep = first;
	assert_int_equal(send_bytes(w, 8, NULL), 1);
	end(w);
}

static void news_of_a_closed_endpoint_is_not_for_its_successor(void **state)
{
	struct world *w = begin(&connected_own_queues, (struct wf_fake){ 0 });

	(void)state;
	wf_ep_close(w->b.ep);
	hear(&w->b); /* now it lies in a's queue, unread, that b has hung up */
	wf_ep_close(w->a.ep);
	w->a.connected = w->b.connected = 0;
	join(w); /* at the address of the old one */
	assert_int_equal(w->a.closed, 0);
	assert_int_equal(w->b.closed, 0);
	end(w);
}

static void a_rejected_request_closes_the_endpoint(void **state)
{
	struct world *w = begin(&connected_one_queue, (struct wf_fake){ 0 });
	uint8_t address[WF_ADDRESS_BYTES];
	size_t bytes = wf_rail_address(w->b.rail, address);
	struct wf_rail_event event = { 0 };
	struct wf_ep *ep;

	(void)state;
	assert_int_equal(wf_ep_open(w->a.rail, address, bytes, "no", 2, w, &ep, NULL), 0);
	/* Polls look for requests only now and then. */
	assert_int_equal(wf_rail_arm(w->b.rail), -EAGAIN);
	assert_int_equal(wf_rail_poll(w->b.rail, &event, 1), 1);
	assert_int_equal(event.kind, WF_EVENT_REQUEST);
	assert_int_equal(event.count, 2);
	wf_ep_reject(w->b.rail, event.request);
	assert_int_equal(wf_rail_poll(w->a.rail, &event, 1), 1);
	assert_int_equal(event.kind, WF_EVENT_CLOSED);
	assert_ptr_equal(event.ep, ep);
	end(w);
}

static void an_event_of_a_closed_endpoint_finds_no_owner(void **state)
{
	struct world *w = begin(&shared, (struct wf_fake){ 0 });
	struct wf_rail_event events[4];

	(void)state;
	assert_int_equal(send_bytes(w, 1000, NULL), 0);
	assert_int_equal(send_bytes(w, 1000, NULL), 0);
	assert_int_equal(wf_rail_poll(w->a.rail, events, 4), 2);
	wf_ep_close(events[0].ep);
	assert_null(wf_ep_owner(events[1].ep));
	w->a.ep = NULL;
	end(w);
}

static void two_ways_to_one_peer_share_its_entry(void **state)
{
	struct world *w = begin(&shared, (struct wf_fake){ 0 });
	struct wf_ep *first = w->a.ep;

	(void)state;
	address_to(&w->a, &w->b, "");
	wf_ep_close(first);
	assert_int_equal(send_bytes(w, 8, NULL), 1);
	pass(w, 1 * MS);
	assert_int_equal(w->b.received, 1);
	end(w);
}

static void a_message_held_over_a_reopen_keeps_its_slot(void **state)
{
	struct world *w = begin(&shared, (struct wf_fake){ 0 });
	struct wf_rail_event held = { 0 };
	unsigned i;

	(void)state;
	w->frame[0] = 77;
	assert_int_equal(send_bytes(w, 100, NULL), 0);
	hear(&w->a);
	assert_int_equal(wf_rail_poll(w->b.rail, &held, 1), 1);
	assert_int_equal(wf_rail_reopen(w->b.rail, NULL), 0);
	wf_ep_close(w->a.ep);
	wf_ep_close(w->b.ep);
	join(w);
	w->frame[0] = 1;
	for (i = 0; i < SLOTS - 1; i++)
		assert_int_equal(send_bytes(w, 100, NULL), 0);
	pass(w, 1 * MS);
	assert_int_equal(w->b.received, SLOTS - 1);
	assert_int_equal(held.bytes[0], 77);
	wf_rail_give(w->b.rail, held.slot);
	end(w);
}

static void a_port_in_use_is_passed_over(void **state)
{
	struct world *w = begin(&connected_own_queues, (struct wf_fake){ 0 });
	struct wf_rail_config config = {
		.host = "127.0.0.1", .port_first = 7000, .port_last = 7001, .slots_count = 4,
	};
	struct wf_rail *rails[3] = { NULL };
	struct wf_error e = { 0 };

	(void)state;
	assert_int_equal(wf_rail_open(chosen(&w->select), &config, &rails[0], &e), 0);
	assert_int_equal(wf_rail_open(chosen(&w->select), &config, &rails[1], &e), 0);
	assert_int_equal(wf_rail_open(chosen(&w->select), &config, &rails[2], &e), -EADDRINUSE);
	assert_non_null(strstr(e.text, "7000 to 7001"));
	assert_null(rails[2]);
	wf_rail_close(rails[0]);
	wf_rail_close(rails[1]);
	end(w);
}

static void a_layer_that_crashes_on_close_is_never_reopened(void **state)
{
	struct wf_options options = { .rdma = true, .provider = "tcp;ofi_rxm" };
	struct wf_rail_config config = { .host = "127.0.0.1", .slots_count = 4 };
	struct wf_select select;
	struct wf_rail *rail;

	(void)state;
	wf_fake_open(&(struct wf_fake){ .seed = 1 });
	wf_fake_offer(FI_EP_RDM, "tcp;ofi_rxm", "lo", "127.0.0.1");
	assert_int_equal(wf_select_open(&options, &select, NULL), 0);
	assert_int_equal(wf_rail_open(chosen(&select), &config, &rail, NULL), 0);
	assert_int_equal(wf_rail_reopen(rail, NULL), -ENOSYS);
	wf_rail_close(rail);
	wf_select_close(&select);
	assert_int_equal(wf_fake_close(), 0);
}

static void fewer_slots_than_asked_for_is_said(void **state)
{
	struct wf_options options = { .rdma = true, .provider = "efa" };
	struct wf_rail_config config = { .slots_count = 100 };
	struct wf_select select;
	struct wf_rail *rail;

	(void)state;
	wf_fake_open(&(struct wf_fake){ .seed = 1, .slots_max = 12 });
	assert_int_equal(wf_select_open(&options, &select, NULL), 0);
	assert_int_equal(wf_rail_open(chosen(&select), &config, &rail, NULL), 0);
	assert_int_equal(wf_rail_slots(rail), 12);
	wf_rail_close(rail);
	wf_select_close(&select);
	assert_int_equal(wf_fake_close(), 0);
}

/* One that comes when its knock has been answered in vain: in how many polls is it heard? */
static unsigned polls_for_one_without_a_knock(struct world *w)
{
	unsigned polls = 1;

	assert_int_equal(send_bytes(w, 20, NULL), 1);
	assert_false(hear_some(&w->b));
	wf_fake_clock_set(wf_fake_next_ns());
	while (!hear_some(&w->b))
		polls++;
	return polls;
}

static void an_owner_goes_through_its_gate_when_somebody_has_knocked(void **state)
{
	struct world *w = begin(&gated, (struct wf_fake){ 0 });
	unsigned i;

	(void)state;
	for (i = 0; i < 200; i++) {
		assert_false(hear_some(&w->b));
		assert_int_equal(send_bytes(w, 20, NULL), 1);
		assert_true(hear_some(&w->b));
	}
	assert_int_equal(w->b.received, 200);

	/* For what he has sent himself he needs no knock. */
	assert_false(hear_some(&w->a));
	assert_int_equal(send_bytes(w, 1000, NULL), 0);
	assert_true(hear_some(&w->a));
	assert_int_equal(w->a.sent, 1);
	end(w);
}

static void an_event_without_a_knock_is_heard_later_or_before_sleeping(void **state)
{
	struct world *w = begin(&gated, (struct wf_fake){ .delay_min_ns = MS, .delay_max_ns = MS });

	(void)state;
	/* The first comes at any point of the round, so the second waits for a whole one. */
	assert_in_range(polls_for_one_without_a_knock(w), 1, 64);
	assert_in_range(polls_for_one_without_a_knock(w), 32, 64);

	assert_int_equal(send_bytes(w, 20, NULL), 1);
	assert_false(hear_some(&w->b));
	wf_fake_clock_set(wf_fake_next_ns());
	assert_int_equal(wf_rail_arm(w->b.rail), -EAGAIN);
	assert_true(hear_some(&w->b));
	end(w);
}

/* Each endpoint may have as many operations under way as the provider takes from one. */
static void endpoints_of_an_adapter_overrun_no_queue(void **state)
{
	enum { PEERS = 4, EACH = 256 };
	struct world *w = begin(&adapter, (struct wf_fake){ 0 });
	struct wf_ep *eps[PEERS] = { w->a.ep };

	(void)state;
	for (unsigned i = 1; i < PEERS; i++) {
		w->a.connected = w->b.connected = 0;
		join(w);
		eps[i] = w->a.ep;
	}
	for (unsigned i = 0; i < PEERS * EACH; i++)
		assert_int_equal(wf_ep_send(eps[i % PEERS], w->frame, 1000,
					    wf_mr_desc(w->frame_mr), NULL), 0);
	hear(&w->b);
	assert_int_equal(wf_fake_queue_overruns(), 0);
	pass(w, 10 * MS);
	assert_int_equal(w->a.sent, PEERS * EACH);
	assert_int_equal(w->b.received, PEERS * EACH);
	end(w);
}

/* A rail's owner that keeps a registration until somebody needs the room. */
struct keeper {
	struct wf_mr *kept;
	unsigned asked;
};

static bool make_room(void *ctx)
{
	struct keeper *keeper = ctx;
	bool any = keeper->kept != NULL;

	keeper->asked++;
	wf_mr_close(keeper->kept);
	keeper->kept = NULL;
	return any;
}

static void a_registration_without_room_asks_the_owner_for_some(void **state)
{
	struct wf_options options = { .rdma = true, .provider = "efa" };
	struct keeper keeper = { 0 };
	struct wf_rail_config config = {
		.slots_count = SLOTS, .make_room = make_room, .make_room_ctx = &keeper,
	};
	static uint8_t memory[2][4 * KIB];
	struct wf_select select;
	struct wf_rail *rail;
	struct wf_error e;
	struct wf_mr *mr;

	(void)state;
	wf_fake_open(&(struct wf_fake){ .seed = 1 });
	assert_int_equal(wf_select_open(&options, &select, NULL), 0);
	assert_int_equal(wf_rail_open(chosen(&select), &config, &rail, NULL), 0);
	assert_int_equal(wf_mr_open(rail, memory[0], sizeof(memory[0]), WF_ACCESS_LOCAL,
				    &keeper.kept, &e), 0);
	wf_fake_knobs()->mr_bytes_max = sizeof(memory[0]);
	assert_int_equal(wf_mr_open(rail, memory[1], sizeof(memory[1]), WF_ACCESS_LOCAL, &mr, &e), 0);
	assert_int_equal(keeper.asked, 1);
	assert_null(keeper.kept);
	/* Where the owner keeps nothing there is none. */
	assert_int_equal(wf_mr_open(rail, memory[0], sizeof(memory[0]), WF_ACCESS_LOCAL,
				    &keeper.kept, &e), -ENOMEM);
	assert_int_equal(keeper.asked, 2);
	wf_fake_knobs()->mr_bytes_max = 0;
	wf_mr_close(mr);
	wf_rail_close(rail);
	wf_select_close(&select);
	assert_int_equal(wf_fake_close(), 0);
}

/* The gate of @end, entered, as by a sender that is kept from running there. */
static struct wf_gate stay_in_the_gate_of(const struct end *end)
{
	int fd = fcntl(wf_rail_gate_fd(end->rail), F_DUPFD_CLOEXEC, 0);
	struct wf_gate gate = { 0 };

	assert_int_equal(wf_gate_take(&gate, fd), 0);
	assert_true(wf_gate_enter(&gate));
	return gate;
}

/* Look behind the gate of @end, and let @ns pass. */
static void look_for(struct end *end, uint64_t ns)
{
	wf_rail_woken(end->rail);
	assert_false(hear_some(end));
	wf_fake_clock_set(wf_clock_now() + ns);
}

static void an_endpoint_is_stuck_where_looks_in_a_row_find_its_gate_shut(void **state)
{
	struct world *w = begin(&gated, (struct wf_fake){ 0 });
	struct wf_gate gate = stay_in_the_gate_of(&w->b);

	(void)state;
	/* Some looks prove nothing, however far apart they are; nor do many of a moment. */
	for (unsigned i = 0; i < 5; i++)
		look_for(&w->b, 1000 * MS);
	for (unsigned i = 0; i < 100; i++)
		look_for(&w->b, US);
	assert_false(wf_rail_is_stuck(w->b.rail));
	for (unsigned i = 0; i < 300; i++)
		look_for(&w->b, MS);
	assert_true(wf_rail_is_stuck(w->b.rail));

	wf_gate_leave(&gate);
	look_for(&w->b, MS);
	assert_false(wf_rail_is_stuck(w->b.rail));
	wf_gate_close(&gate);
	end(w);
}

/* The same seed must give the same run, or a failure can't be replayed. */
static void a_seed_replays(void **state)
{
	uint64_t ended[2];
	unsigned run, i;

	(void)state;
	for (run = 0; run < 2; run++) {
		struct world *w = begin(&shared, (struct wf_fake){ .seed = 99, .delay_min_ns = US,
								  .delay_max_ns = 900 * US,
								  .shuffle = true, .reorder = true });
		uint64_t from = wf_clock_now();

		wf_fake_knobs()->lose = 100;
		for (i = 0; i < SLOTS; i++)
			assert_int_equal(send_bytes(w, 500 + i, NULL), 0);
		ended[run] = 0;
		while (wf_fake_next_ns() != UINT64_MAX) {
			wf_fake_clock_set(wf_fake_next_ns());
			hear(&w->a);
			hear(&w->b);
			ended[run] = ended[run] * 31 + (wf_clock_now() - from) + w->b.count;
		}
		assert_int_equal(w->a.sent, SLOTS);
		end(w);
	}
	assert_int_equal(ended[0], ended[1]);
}

#define ON(shape, test) { #test " (" #shape ")", test, NULL, NULL, (void *)&shape }
#define BOTH(test)                                                             \
	ON(connected_own_queues, test), ON(connected_one_queue, test), ON(shared, test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(a_message_comes_out_as_it_went_in),
		BOTH(a_short_message_is_done_at_once),
		BOTH(a_frame_that_fits_no_slot_is_refused),
		BOTH(every_slot_is_used_again),
		BOTH(a_read_brings_the_peers_bytes),
		BOTH(a_refused_post_changes_nothing),
		BOTH(a_slot_that_could_not_be_posted_is_tried_again),
		BOTH(completions_that_come_twice_or_from_nowhere_are_dropped),
		BOTH(an_error_ends_its_operation_once),
		BOTH(a_wrong_key_gets_no_bytes),
		BOTH(closing_drops_what_was_under_way),
		BOTH(after_a_close_a_new_way_works),
		BOTH(a_read_that_never_ends_dies_with_its_endpoint),
		BOTH(a_killed_peer_is_heard_of_where_connected),
		BOTH(a_frozen_peer_goes_on_where_it_was),
		BOTH(a_bad_address_is_refused),
		cmocka_unit_test(nobody_listening_closes_the_endpoint),
		cmocka_unit_test(news_of_a_closed_endpoint_is_not_for_its_successor),
		cmocka_unit_test(a_rejected_request_closes_the_endpoint),
		cmocka_unit_test(an_event_of_a_closed_endpoint_finds_no_owner),
		cmocka_unit_test(two_ways_to_one_peer_share_its_entry),
		cmocka_unit_test(a_message_held_over_a_reopen_keeps_its_slot),
		cmocka_unit_test(a_port_in_use_is_passed_over),
		cmocka_unit_test(a_layer_that_crashes_on_close_is_never_reopened),
		cmocka_unit_test(fewer_slots_than_asked_for_is_said),
		cmocka_unit_test(an_owner_goes_through_its_gate_when_somebody_has_knocked),
		cmocka_unit_test(an_event_without_a_knock_is_heard_later_or_before_sleeping),
		cmocka_unit_test(an_endpoint_is_stuck_where_looks_in_a_row_find_its_gate_shut),
		cmocka_unit_test(endpoints_of_an_adapter_overrun_no_queue),
		cmocka_unit_test(a_registration_without_room_asks_the_owner_for_some),
		cmocka_unit_test(a_seed_replays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
