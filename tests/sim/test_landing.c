/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Landings, and the pushes of honest and of lying peers, while slots are given back, rails fail,
 * landings close, pushes are given up and nodes die.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/landing.h"
#include "core/node.h"
#include "core/rma.h"
#include "tests/sim/world.h"
#include "util/clock.h"
#include "wire/landed.h"

#define US WF_NS_PER_US
#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define OWNER 0
#define PEER 1
#define OTHER 2
#define PEERS_MAX 6
#define SLOTS_MAX 8
#define SLOT_BYTES (192 * KIB) /* pulled in some chunks */
#define PUSHES_MAX 24
#define LIMIT_NS (20 * S)
#define CANARY 0xee

static uint8_t memory[SLOTS_MAX * SLOT_BYTES];
static struct weft_landing *landing;
static struct weft_remote *remotes[1 + PEERS_MAX]; /* of each peer */
static unsigned slot_count;

struct push {
	struct wf_flight flight;
	uint8_t local[SLOT_BYTES];
	int64_t shape[2];
};

static struct push pushes[PUSHES_MAX];

/* Worlds */

static struct weft_remote *import(unsigned node)
{
	uint8_t descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
	size_t bytes = sizeof(descriptor);
	struct weft_remote *fresh;

	assert_int_equal(weft_landing_describe(landing, descriptor, &bytes), 0);
	assert_int_equal(weft_window_import(wf_world_peer(node, OWNER), descriptor, bytes, &fresh),
			 0);
	return fresh;
}

static void open_landing(unsigned slots)
{
	slot_count = slots;
	memset(memory, CANARY, sizeof(memory));
	assert_int_equal(weft_landing_open(wf_world_node(OWNER), memory, SLOT_BYTES, slots,
					   &landing), 0);
}

static void open_world(enum wf_world_shape shape, unsigned peers, unsigned slots)
{
	wf_world_lose_soon();
	wf_world_open(shape, 1 + peers, NULL);
	for (unsigned i = 0; i <= peers; i++)
		wf_world_node(i)->workers[0].engine.options.chunk_bytes = 16 * KIB;
	open_landing(slots);
	for (unsigned i = 1; i <= peers; i++)
		remotes[i] = import(i);
}

static void close_landing(void)
{
	assert_int_equal(weft_landing_close(landing), 0);
	landing = NULL;
}

static void close_all(void)
{
	for (unsigned i = 1; i <= PEERS_MAX; i++) {
		weft_remote_close(remotes[i]);
		remotes[i] = NULL;
	}
	close_landing();
}

static void close_world(void)
{
	close_all();
	wf_world_end();
}

/* Operations */

static void push_shape(struct push *p, unsigned from, int64_t rows, int64_t columns,
		       uint64_t number, uint64_t timeout_ns)
{
	const struct weft_tensor tensor = {
		.data = p->local, .device = { WEFT_CPU, 0 }, .ndim = 2,
		.dtype = { WEFT_UINT, 8, 1 }, .shape = p->shape,
	};
	struct weft_push_options options = { .size = sizeof(options), .number = number };

	p->shape[0] = rows;
	p->shape[1] = columns;
	wf_world_fill(p->local, (size_t)(rows * columns), number);
	options.op = wf_flight_begin(&p->flight, timeout_ns);
	assert_int_equal(weft_push(remotes[from], &tensor, &options, &p->flight.op), 0);
}

static void push(struct push *p, unsigned from, uint64_t number)
{
	push_shape(p, from, 2, SLOT_BYTES / 2, number, LIMIT_NS);
}

static void land(struct push *p, enum weft_status status)
{
	wf_flight_land(&p->flight, 1, 2 * LIMIT_NS);
	if (p->flight.status != status)
		fail_msg("%s: %s", weft_status_name(p->flight.status), weft_op_message(p->flight.op));
	wf_flight_free(&p->flight, 1);
}

static void begin_next(struct wf_flight *f, uint64_t timeout_ns)
{
	struct weft_op_options options = wf_flight_begin(f, timeout_ns);

	assert_int_equal(weft_landing_next(landing, &options, &f->op), 0);
}

/* Take a tensor, and return its number.  It is whole, and in a slot. */
static uint64_t take(struct wf_flight *f)
{
	const struct weft_tensor *tensor;
	uint64_t number;

	begin_next(f, LIMIT_NS);
	wf_flight_land(f, 1, LIMIT_NS);
	assert_int_equal(f->status, WEFT_OK);
	tensor = weft_op_tensor(f->op, NULL);
	assert_int_equal(weft_op_landed(f->op, &number), 0);
	assert_int_equal(((uint8_t *)tensor->data - memory) % SLOT_BYTES, 0);
	assert_true(wf_world_is_filled(tensor->data, (size_t)(tensor->shape[0] * tensor->shape[1]),
				       number));
	return number;
}

static void give_back(struct wf_flight *f)
{
	wf_flight_free(f, 1);
}

/* Take whatever has landed, and give it back.  Returns how many there were. */
static unsigned sweep(void)
{
	unsigned count = 0;
	struct wf_flight f;

	for (;;) {
		begin_next(&f, 50 * MS);
		wf_flight_land(&f, 1, S);
		give_back(&f);
		if (f.status != WEFT_OK)
			return count;
		count++;
	}
}

/* Take the tensors of the first @count pushes, each once, whose numbers are from @first on. */
static void take_all(unsigned count, uint64_t first)
{
	unsigned seen = 0;
	struct wf_flight f;

	for (unsigned i = 0; i < count; i++) {
		uint64_t number = take(&f) - first;

		assert_true(number < count && !(seen & 1u << number));
		seen |= 1u << number;
		give_back(&f);
	}
	for (unsigned i = 0; i < count; i++)
		land(&pushes[i], WEFT_OK);
}

/* Assert that no tensor lands, and that no byte of the memory changes. */
static void assert_still(void)
{
	static uint8_t copy[sizeof(memory)];
	struct wf_flight f;

	memcpy(copy, memory, sizeof(copy));
	begin_next(&f, S);
	wf_flight_land(&f, 1, 2 * S);
	assert_int_equal(f.status, WEFT_DEADLINE_EXCEEDED);
	wf_flight_free(&f, 1);
	assert_same_content(copy, memory, sizeof(copy));
}

static const uint64_t phases_us[] = { 0, 20, 60, 110, 160, 220, 300, 400, 550, 800, 1200, 2000, 4000 };

static void in_each_phase(void (*test)(enum wf_world_shape shape, uint64_t at_ns))
{
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++)
		for (size_t at = 0; at < WF_COUNT(phases_us); at++)
			test(wf_world_shapes[i], phases_us[at] * US);
}

/* Tests */

static void a_push_lands_whole_and_is_told_once(void **state)
{
	static const int64_t columns[] = { 0, 1, 1000, 70000, SLOT_BYTES / 2 };
	struct wf_flight f;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i], 1, 2);
		for (unsigned k = 0; k < 3 * WF_COUNT(columns); k++) {
			const struct weft_tensor *tensor;

			push_shape(&pushes[0], PEER, 2, columns[k % WF_COUNT(columns)],
				   k + (1ull << 40), LIMIT_NS);
			land(&pushes[0], WEFT_OK);
			assert_int_equal(take(&f), k + (1ull << 40));
			tensor = weft_op_tensor(f.op, NULL);
			assert_int_equal(tensor->ndim, 2);
			assert_int_equal(tensor->shape[1], columns[k % WF_COUNT(columns)]);
			assert_int_equal(tensor->dtype.bits, 8);
			assert_non_null(weft_op_peer(f.op));
			give_back(&f);
		}
		assert_int_equal(sweep(), 0);
		close_world();
	}
}

static void tensors_come_in_the_order_in_which_their_pushes_ended(void **state)
{
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 1, 3);
	for (unsigned i = 0; i < 3 * 4; i++) {
		push(&pushes[0], PEER, i);
		land(&pushes[0], WEFT_OK);
		for (unsigned k = i - 2; i % 3 == 2 && k <= i; k++) {
			assert_int_equal(take(&f), k);
			give_back(&f);
		}
	}
	close_world();
}

static void a_push_waits_until_a_slot_is_given_back(void **state)
{
	struct wf_flight held[2];
	uint64_t first;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i], 1, 2);
		for (unsigned k = 0; k < 3; k++)
			push(&pushes[k], PEER, k);
		first = take(&held[0]);
		assert_int_equal(first + take(&held[1]), 1);
		assert_still();
		assert_int_equal(pushes[2].flight.outcomes, 0);
		give_back(&held[1]);
		assert_int_equal(take(&held[1]), 2);
		assert_true(wf_world_is_filled(weft_op_tensor(held[0].op, NULL)->data, SLOT_BYTES,
					       first));
		for (unsigned k = 0; k < 3; k++)
			land(&pushes[k], WEFT_OK);
		give_back(&held[0]);
		give_back(&held[1]);
		close_world();
	}
}

/* Put @blocks as a liar does, with a note of its own making. */
static enum weft_status lie(unsigned from, const struct weft_block *blocks, size_t count,
			    uint32_t slot, uint64_t serial, int64_t dimension)
{
	uint8_t note[WF_LANDED_BYTES_MAX];
	struct wf_bytes_writer w = wf_bytes_writer(note, sizeof(note));
	const struct wf_landed landed = { serial, 0, { WEFT_UINT, 8, 1 }, 1, NULL };
	struct weft_access_options options = {
		.size = sizeof(options), .flags = WEFT_NOTE, .number = slot, .note = note,
	};
	struct wf_flight f;

	wf_landed_put(&w, &landed, &dimension);
	options.note_bytes = (size_t)(w.at - note);
	options.op = wf_flight_begin(&f, LIMIT_NS);
	remotes[from]->rights |= WEFT_WINDOW_WRITE;
	assert_int_equal(weft_put(remotes[from], blocks, count, &options, &f.op), 0);
	remotes[from]->rights = WEFT_WINDOW_LAND;
	wf_flight_land(&f, 1, LIMIT_NS);
	wf_flight_free(&f, 1);
	return f.status;
}

#define SERIALS 6 /* more than there were announcements */

/* Say of every slot that it was announced by every serial there may be; all is refused. */
static void lie_about_all(unsigned from)
{
	for (uint32_t slot = 0; slot <= slot_count; slot++)
		for (uint64_t serial = 0; serial <= SERIALS; serial++) {
			struct weft_block block = { pushes[9].local, slot * SLOT_BYTES, SLOT_BYTES };

			assert_int_equal(lie(from, &block, slot < slot_count, slot, serial,
					     slot < slot_count ? SLOT_BYTES : 0), WEFT_ABORTED);
		}
}

static void a_slot_that_is_taken_is_not_written(void **state)
{
	struct wf_flight held[2];

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i], 1, 2);
		for (unsigned k = 0; k < 2; k++) {
			push(&pushes[k], PEER, k);
			assert_int_equal(take(&held[k]), k);
			land(&pushes[k], WEFT_OK);
		}
		lie_about_all(PEER);
		assert_still();
		give_back(&held[0]);
		give_back(&held[1]);
		close_world();
	}
}

static void a_slot_of_another_peer_is_not_written(void **state)
{
	struct wf_flight f;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i], 2, 4);
		push(&pushes[0], PEER, 7); /* whose slots are announced from then on */
		assert_int_equal(take(&f), 7);
		land(&pushes[0], WEFT_OK);
		lie_about_all(OTHER);
		assert_still();
		give_back(&f);
		close_world();
	}
}

/* The slot announced next would be slot 0 by serial 1, if the peer pushed as it should. */
static void a_push_that_is_no_tensor_in_its_slot_is_refused(void **state)
{
	const struct weft_block block = { pushes[9].local, 0, 1000 }, moved = { pushes[9].local, 1, 1000 },
		long_one = { pushes[9].local, 0, SLOT_BYTES }, two[] = { block, { pushes[9].local, 2000, 9 } };
	const struct weft_tensor tensor = { .data = pushes[0].local, .dtype = { WEFT_UINT, 8, 1 } };
	struct weft_access_options options = { .size = sizeof(options) };
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 1, 1);
	/* A push that is too long makes the peer a sender, and leaves the slot announced. */
	push_shape(&pushes[0], PEER, 1, SLOT_BYTES, 1, LIMIT_NS);
	land(&pushes[0], WEFT_OK);
	assert_int_equal(sweep(), 1);
	memset(memory, CANARY, sizeof(memory));
	assert_int_equal(lie(PEER, &moved, 1, 0, 2, 1000), WEFT_ABORTED);
	assert_int_equal(lie(PEER, &block, 1, 0, 2, 999), WEFT_ABORTED);
	assert_int_equal(lie(PEER, &block, 1, 0, 2, -1), WEFT_ABORTED);
	assert_int_equal(lie(PEER, &block, 1, 0, 2, INT64_MAX), WEFT_ABORTED);
	assert_int_equal(lie(PEER, &long_one, 1, 0, 1, SLOT_BYTES), WEFT_ABORTED);
	assert_int_equal(lie(PEER, two, 2, 0, 2, 1009), WEFT_ABORTED);
	assert_int_equal(lie(PEER, NULL, 0, 0, 2, 5), WEFT_ABORTED);
	remotes[PEER]->rights |= WEFT_WINDOW_WRITE;
	options.op = wf_flight_begin(&f, LIMIT_NS);
	assert_int_equal(weft_put(remotes[PEER], &block, 1, &options, &f.op), 0);
	remotes[PEER]->rights = WEFT_WINDOW_LAND;
	wf_flight_land(&f, 1, LIMIT_NS);
	assert_int_equal(f.status, WEFT_ABORTED);
	wf_flight_free(&f, 1);
	assert_still();
	for (size_t i = 0; i < sizeof(memory); i++)
		assert_int_equal(memory[i], CANARY);
	/* A push with the right words is taken. */
	assert_int_equal(lie(PEER, &block, 1, 0, 2, 1000), WEFT_OK);
	assert_int_equal(sweep(), 1);
	assert_int_equal(weft_put(remotes[PEER], &block, 1, NULL, NULL), -EACCES);
	remotes[PEER]->rights = WEFT_WINDOW_WRITE;
	assert_int_equal(weft_push(remotes[PEER], &tensor, NULL, NULL), -EACCES);
	remotes[PEER]->rights = WEFT_WINDOW_LAND;
	close_world();
}

static void die_in_phase(enum wf_world_shape shape, uint64_t at_ns)
{
	struct wf_flight f;

	open_world(shape, 2, 2);
	wf_world_connect(OTHER, OWNER);
	push(&pushes[0], PEER, 1);
	push(&pushes[1], PEER, 2);
	push(&pushes[2], PEER, 3);
	wf_world_pass(at_ns);
	remotes[PEER] = NULL; /* goes with its node */
	wf_world_kill(PEER);
	for (unsigned i = 0; i < 3; i++) {
		weft_op_free(pushes[i].flight.op);
		push(&pushes[4 + i], OTHER, 10 + i);
	}
	/* Tensors that had landed whole before stay, and are told before or after. */
	for (unsigned got = 0; got < 3;) {
		got += take(&f) >= 10;
		give_back(&f);
	}
	for (unsigned i = 0; i < 3; i++)
		land(&pushes[4 + i], WEFT_OK);
	assert_true(sweep() <= 2);
	close_all();
	wf_world_pass(S);
	wf_world_assert_free(OWNER);
	wf_world_assert_free(OTHER);
	assert_int_equal(wf_world_close(), 0);
}

static void slots_of_a_sender_that_dies_are_announced_to_others(void **state)
{
	(void)state;
	in_each_phase(die_in_phase);
}

static void close_in_phase(enum wf_world_shape shape, uint64_t at_ns)
{
	static uint8_t copy[sizeof(memory)];
	struct wf_flight next;

	open_world(shape, 1, 2);
	begin_next(&next, LIMIT_NS);
	for (unsigned i = 0; i < 4; i++)
		push(&pushes[i], PEER, i);
	wf_world_pass(at_ns);
	close_landing();
	memcpy(copy, memory, sizeof(copy));
	wf_flight_land(&next, 1, S);
	wf_flight_free(&next, 1);
	wf_flight_land(&pushes[0].flight, 1, 5 * S);
	wf_flight_land(&pushes[1].flight, 1, 5 * S);
	for (unsigned i = 2; i < 4; i++) {
		wf_flight_land(&pushes[i].flight, 1, 5 * S);
		if (pushes[i].flight.status != WEFT_OK || next.status != WEFT_OK || i > 2)
			assert_int_equal(pushes[i].flight.status, WEFT_NOT_FOUND);
	}
	for (unsigned i = 0; i < 4; i++)
		wf_flight_free(&pushes[i].flight, 1);
	wf_world_pass(3 * S);
	assert_same_content(memory, copy, sizeof(copy));
	push(&pushes[0], PEER, 9);
	land(&pushes[0], WEFT_NOT_FOUND);
	open_landing(1);
	close_world();
}

static void a_landing_that_closes_is_quiet_and_ends_its_pushes(void **state)
{
	(void)state;
	in_each_phase(close_in_phase);
}

static void a_tensor_can_be_freed_after_its_landing_has_closed(void **state)
{
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 1, 1);
	push(&pushes[0], PEER, 3);
	assert_int_equal(take(&f), 3);
	land(&pushes[0], WEFT_OK);
	close_landing();
	assert_true(wf_world_is_filled(weft_op_tensor(f.op, NULL)->data, SLOT_BYTES, 3));
	give_back(&f);
	open_landing(1);
	close_world();
}

/* Give pushes up, and let others use the slots after them. */
static void give_up_in_phase(enum wf_world_shape shape, uint64_t at_ns, bool late)
{
	open_world(shape, 1, 2);
	for (unsigned i = 0; i < 3; i++)
		push_shape(&pushes[i], PEER, 1, SLOT_BYTES, i, late ? at_ns + 1 : LIMIT_NS);
	wf_world_pass(at_ns);
	for (unsigned i = 0; !late && i < 3; i++)
		weft_cancel(pushes[i].flight.op);
	for (unsigned i = 0; i < 3; i++) {
		wf_flight_land(&pushes[i].flight, 1, S);
		assert_true(pushes[i].flight.status == WEFT_OK ||
			    pushes[i].flight.status == (late ? WEFT_DEADLINE_EXCEEDED : WEFT_CANCELLED));
		wf_flight_free(&pushes[i].flight, 1);
	}
	(void)sweep();
	for (unsigned i = 0; i < 6; i++)
		push(&pushes[i], PEER, 10 + i);
	take_all(6, 10);
	close_world();
}

static void cancel_in_phase(enum wf_world_shape shape, uint64_t at_ns)
{
	give_up_in_phase(shape, at_ns, false);
}

static void expire_in_phase(enum wf_world_shape shape, uint64_t at_ns)
{
	give_up_in_phase(shape, at_ns, true);
}

static void a_push_that_is_cancelled_leaves_its_slot_to_the_next(void **state)
{
	(void)state;
	in_each_phase(cancel_in_phase);
}

static void a_push_whose_deadline_passes_leaves_its_slot_to_the_next(void **state)
{
	(void)state;
	in_each_phase(expire_in_phase);
}

static void break_in_phase(enum wf_world_shape shape, uint64_t at_ns)
{
	open_world(shape, 1, 2);
	for (unsigned i = 0; i < 4; i++)
		push(&pushes[i], PEER, i);
	wf_world_pass(at_ns);
	wf_world_break_rail(PEER, OWNER, true);
	wf_world_pass(20 * MS);
	wf_world_break_rail(PEER, OWNER, false);
	take_all(4, 0);
	assert_int_equal(sweep(), 0);
	close_world();
}

static void pushes_go_on_over_the_next_rail(void **state)
{
	(void)state;
	in_each_phase(break_in_phase);
}

/* Two senders have more to push than there are slots, and nothing is given back. */
static void senders_have_equal_shares(void **state)
{
	struct wf_flight held[6];
	unsigned of[2] = { 0 };

	(void)state;
	open_world(WF_WORLD_CONNECTED, 2, 6);
	push(&pushes[0], PEER, 1); /* all slots are this peer's */
	wf_world_pass(10 * MS);
	assert_int_equal(sweep(), 1);
	land(&pushes[0], WEFT_OK);
	push(&pushes[0], OTHER, 2);
	wf_world_pass(10 * MS);
	assert_int_equal(sweep(), 1);
	land(&pushes[0], WEFT_OK);
	for (unsigned i = 0; i < 6; i++)
		push(&pushes[i], PEER, 100);
	for (unsigned i = 6; i < 12; i++)
		push(&pushes[i], OTHER, 200);
	for (unsigned i = 0; i < 6; i++)
		of[take(&held[i]) == 200]++;
	assert_int_equal(of[0], 3);
	assert_int_equal(of[1], 3);
	for (unsigned i = 0; i < 6; i++)
		give_back(&held[i]);
	assert_int_equal(sweep(), 6);
	for (unsigned i = 0; i < 12; i++)
		land(&pushes[i], WEFT_OK);
	close_world();
}

static void a_sender_that_comes_last_gets_a_slot_that_another_has_announced(void **state)
{
	(void)state;
	open_world(WF_WORLD_CONNECTED, 3, 3);
	for (unsigned i = 1; i <= 3; i++) {
		push(&pushes[i], i, i);
		land(&pushes[i], WEFT_OK);
		assert_int_equal(sweep(), 1);
	}
	close_world();
}

/* A slot is withdrawn while a push into it is on its way. */
static void a_push_into_a_slot_that_is_withdrawn_gets_another(void **state)
{
	(void)state;
	for (uint64_t at_us = 0; at_us < 400; at_us += 5) {
		open_world(WF_WORLD_CONNECTED, 2, 2);
		push(&pushes[0], PEER, 1);
		land(&pushes[0], WEFT_OK);
		assert_int_equal(sweep(), 1);
		push(&pushes[2], OTHER, 9);
		wf_world_pass(at_us * US);
		push(&pushes[0], PEER, 1);
		push(&pushes[1], PEER, 2);
		assert_int_equal(sweep(), 3);
		for (unsigned i = 0; i < 3; i++)
			land(&pushes[i], WEFT_OK);
		close_world();
	}
}

/* A tensor that is longer than a slot. */
static const struct weft_tensor *longer(void)
{
	static uint8_t bytes[SLOT_BYTES + 1];
	static int64_t shape = sizeof(bytes);
	static const struct weft_tensor tensor = {
		.data = bytes, .ndim = 1, .dtype = { WEFT_UINT, 8, 1 }, .shape = &shape,
		.device = { WEFT_CPU, 0 },
	};

	return &tensor;
}

static void a_tensor_longer_than_a_slot_is_refused(void **state)
{
	struct weft_push_options options = { .size = sizeof(options) };

	(void)state;
	open_world(WF_WORLD_CONNECTED, 1, 1);
	options.op = wf_flight_begin(&pushes[0].flight, LIMIT_NS);
	assert_int_equal(weft_push(remotes[PEER], longer(), &options, &pushes[0].flight.op), 0);
	land(&pushes[0], WEFT_FAILED_PRECONDITION);
	assert_still();
	push(&pushes[0], PEER, 1);
	land(&pushes[0], WEFT_OK);
	assert_int_equal(sweep(), 1);
	close_world();
}

/* Types are DLPack's: CUDA, Metal, ROCm, a private one of a vendor, oneAPI. */
static void memory_that_the_cpu_does_not_reach_is_not_pushed(void **state)
{
	static const int32_t devices[] = { WEFT_CUDA, 8, 10, 12, 14, 0, -1 };
	static const int32_t hosts[] = { WEFT_CPU, WEFT_CUDA_HOST, WEFT_CUDA_MANAGED };
	struct weft_tensor tensor = {
		.data = pushes[0].local, .ndim = 0, .dtype = { WEFT_UINT, 8, 1 },
	};
	struct weft_push_options options = { .size = sizeof(options) };

	(void)state;
	open_world(WF_WORLD_CONNECTED, 1, 4);
	for (size_t i = 0; i < WF_COUNT(devices); i++) {
		tensor.device.type = devices[i];
		assert_int_equal(weft_push(remotes[PEER], &tensor, NULL, NULL), -ENOTSUP);
	}
	for (size_t i = 0; i < WF_COUNT(hosts); i++) {
		tensor.device.type = hosts[i];
		options.op = wf_flight_begin(&pushes[0].flight, LIMIT_NS);
		assert_int_equal(weft_push(remotes[PEER], &tensor, &options,
					   &pushes[0].flight.op), 0);
		land(&pushes[0], WEFT_OK);
	}
	assert_int_equal(sweep(), 3);
	close_world();
}

static void any_number_of_longer_tensors_is_refused_at_once(void **state)
{
	static struct wf_flight many[30000];
	struct weft_push_options options = { .size = sizeof(options) };

	(void)state;
	open_world(WF_WORLD_CONNECTED, 1, 1);
	for (size_t i = 0; i < WF_COUNT(many); i++) {
		options.op = wf_flight_begin(&many[i], LIMIT_NS);
		assert_int_equal(weft_push(remotes[PEER], longer(), &options, &many[i].op), 0);
	}
	wf_flight_land(many, WF_COUNT(many), LIMIT_NS);
	for (size_t i = 0; i < WF_COUNT(many); i++)
		assert_int_equal(many[i].status, WEFT_FAILED_PRECONDITION);
	wf_flight_free(many, WF_COUNT(many));
	close_world();
}

/* A peer has no more than its part of all by importing a landing again and again. */
static void remotes_of_a_peer_beyond_four_are_refused(void **state)
{
	struct weft_remote *more[4];

	(void)state;
	open_world(WF_WORLD_CONNECTED, 1, 8);
	for (unsigned i = 0; i < 4; i++) {
		push(&pushes[0], PEER, i);
		land(&pushes[0], WEFT_OK);
		more[i] = remotes[PEER];
		remotes[PEER] = import(PEER);
	}
	push(&pushes[0], PEER, 4);
	land(&pushes[0], WEFT_RESOURCE_EXHAUSTED);
	weft_remote_close(more[0]);
	wf_world_pass(MS);
	push(&pushes[0], PEER, 5);
	land(&pushes[0], WEFT_OK);
	assert_int_equal(sweep(), 5);
	for (unsigned i = 1; i < 4; i++)
		weft_remote_close(more[i]);
	close_world();
}

/*
 * Deadlines pass before the owner's word is here, which does not confirm the peer's controls
 * either: cancels would wait behind the first, and calls would not.
 */
static void a_push_gets_its_slot_while_others_miss_their_deadlines(void **state)
{
	(void)state;
	open_world(WF_WORLD_CONNECTED, 1, 1);
	wf_world_connect(PEER, OWNER);
	wf_world_hold_way(OWNER, PEER, true);
	push(&pushes[0], PEER, 1);
	for (unsigned i = 0; i < 8; i++) {
		push_shape(&pushes[1], PEER, 1, SLOT_BYTES, 2, MS);
		land(&pushes[1], WEFT_DEADLINE_EXCEEDED);
	}
	wf_world_hold_way(OWNER, PEER, false);
	land(&pushes[0], WEFT_OK);
	assert_int_equal(sweep(), 1);
	close_world();
}

static void a_landing_is_imported_again_at_once(void **state)
{
	(void)state;
	open_world(WF_WORLD_CONNECTED, 1, 1);
	for (unsigned i = 0; i < 4; i++) {
		push(&pushes[0], PEER, i);
		land(&pushes[0], WEFT_OK);
		assert_int_equal(sweep(), 1);
		weft_remote_close(remotes[PEER]);
		remotes[PEER] = import(PEER);
	}
	close_world();
}

static void close_remote_in_phase(enum wf_world_shape shape, uint64_t at_ns)
{
	open_world(shape, 1, 2);
	push(&pushes[0], PEER, 1);
	push(&pushes[1], PEER, 2);
	wf_world_pass(at_ns);
	weft_remote_close(remotes[PEER]);
	remotes[PEER] = NULL;
	take_all(2, 1);
	wf_world_pass(20 * MS);
	assert_int_equal(wf_world_count(OWNER).served, 0);
	assert_true(wf_list_empty(&wf_world_node(PEER)->remotes));
	close_world();
}

static void pushes_go_on_after_their_remote_was_closed(void **state)
{
	(void)state;
	in_each_phase(close_remote_in_phase);
}

static void leave_in_phase(enum wf_world_shape shape, uint64_t at_ns)
{
	struct wf_flight next;

	for (unsigned who = 0; who < 2; who++) {
		open_world(shape, 1, 2);
		begin_next(&next, LIMIT_NS);
		for (unsigned i = 0; i < 3; i++)
			push(&pushes[i], PEER, i);
		wf_world_pass(at_ns);
		if (who == PEER)
			remotes[PEER] = NULL;
		else
			landing = NULL;
		wf_world_leave(who);
		if (who == OWNER) {
			for (unsigned i = 0; i < 3; i++)
				wf_flight_land(&pushes[i].flight, 1, 2 * LIMIT_NS);
		}
		for (unsigned i = 0; i < 3; i++) {
			assert_int_equal(pushes[i].flight.outcomes, 1);
			wf_flight_free(&pushes[i].flight, 1);
		}
		if (who == PEER) {
			(void)sweep();
			weft_cancel(next.op);
			wf_flight_land(&next, 1, S);
		}
		assert_int_equal(next.outcomes, 1);
		wf_flight_free(&next, 1);
		weft_remote_close(remotes[PEER]);
		remotes[PEER] = NULL;
		if (landing)
			close_landing();
		assert_int_equal(wf_world_close(), 0);
	}
}

static void a_node_closes_with_landings_and_pushes(void **state)
{
	(void)state;
	in_each_phase(leave_in_phase);
}

static void pushes_end_when_the_owner_dies(void **state)
{
	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		open_world(wf_world_shapes[i], 1, 1);
		wf_world_connect(PEER, OWNER);
		push(&pushes[0], PEER, 1);
		push(&pushes[1], PEER, 2);
		wf_world_pass(i * 3 * MS);
		landing = NULL;
		wf_world_kill(OWNER);
		wf_flight_land(&pushes[0].flight, 1, 2 * LIMIT_NS);
		wf_flight_free(&pushes[0].flight, 1);
		land(&pushes[1], WEFT_UNAVAILABLE);
		wf_world_restart(OWNER);
		push(&pushes[0], PEER, 1);
		wf_flight_land(&pushes[0].flight, 1, LIMIT_NS);
		assert_true(pushes[0].flight.status == WEFT_NOT_FOUND ||
			    pushes[0].flight.status == WEFT_UNAVAILABLE);
		wf_flight_free(&pushes[0].flight, 1);
		open_landing(1);
		push(&pushes[0], PEER, 1);
		land(&pushes[0], WEFT_NOT_FOUND);
		close_world();
	}
}

static void lose_many_in_phase(enum wf_world_shape shape, uint64_t at_ns)
{
	open_world(shape, 1, 1);
	wf_world_connect(PEER, OWNER);
	push(&pushes[0], PEER, 1);
	for (unsigned i = 1; i < PUSHES_MAX; i++)
		push_shape(&pushes[i], PEER, i % 2, 1, 1 + i, LIMIT_NS); /* some are empty */
	wf_world_pass(at_ns);
	wf_world_freeze(OWNER, true);
	for (unsigned i = 0; i < PUSHES_MAX; i++)
		wf_flight_land(&pushes[i].flight, 1, LIMIT_NS / 2);
	wf_world_freeze(OWNER, false);
	for (unsigned i = 1; i < PUSHES_MAX; i++) {
		assert_int_equal(pushes[i].flight.status, WEFT_UNAVAILABLE);
		assert_in_range(pushes[i].flight.ended_ns, pushes[1].flight.ended_ns,
				pushes[1].flight.ended_ns + 10 * MS);
	}
	for (unsigned i = 0; i < PUSHES_MAX; i++)
		wf_flight_free(&pushes[i].flight, 1);
	wf_world_pass(2 * S); /* the owner finds out what became of the stream */
	close_world();
}

static void pushes_that_wait_for_a_slot_end_at_once_when_the_owner_is_lost(void **state)
{
	(void)state;
	in_each_phase(lose_many_in_phase);
}

static void a_node_that_drains_announces_no_slots(void **state)
{
	(void)state;
	open_world(WF_WORLD_CONNECTED, 1, 1);
	push(&pushes[0], PEER, 1);
	land(&pushes[0], WEFT_OK);
	push(&pushes[1], PEER, 2);
	wf_world_pass(10 * MS);
	assert_int_equal(weft_node_drain(wf_world_node(OWNER), S), 0);
	land(&pushes[1], WEFT_UNAVAILABLE);
	assert_int_equal(sweep(), 1);
	close_world();
}

static void a_landing_is_found_by_its_key(void **state)
{
	struct weft_op_options options;
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED, 1, 1);
	assert_int_equal(weft_landing_publish(landing, "layer", 5), 0);
	weft_remote_close(remotes[PEER]);
	options = wf_flight_begin(&f, S);
	assert_int_equal(weft_window_find(wf_world_peer(PEER, OWNER), "layer", 5, &options, &f.op), 0);
	wf_flight_land(&f, 1, S);
	assert_int_equal(weft_op_remote(f.op, &remotes[PEER]), 0);
	wf_flight_free(&f, 1);
	assert_int_equal(weft_remote_rights(remotes[PEER]), WEFT_WINDOW_LAND);
	assert_int_equal(weft_remote_bytes(remotes[PEER]), SLOT_BYTES);
	push(&pushes[0], PEER, 1);
	land(&pushes[0], WEFT_OK);
	assert_int_equal(sweep(), 1);
	close_world();
}

static void peers_of_all_workers_share_a_landing(void **state)
{
	unsigned seen[PUSHES_MAX] = { 0 };
	struct wf_flight f;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		memset(seen, 0, sizeof(seen));
		wf_world_set_workers(3);
		open_world(wf_world_shapes[i], PEERS_MAX, PEERS_MAX);
		for (unsigned k = 0; k < PUSHES_MAX; k++)
			push(&pushes[k], 1 + k % PEERS_MAX, k);
		for (unsigned k = 0; k < PUSHES_MAX; k++) {
			seen[take(&f)]++;
			give_back(&f);
		}
		for (unsigned k = 0; k < PUSHES_MAX; k++) {
			assert_int_equal(seen[k], 1);
			land(&pushes[k], WEFT_OK);
		}
		close_world();
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_push_lands_whole_and_is_told_once),
		cmocka_unit_test(tensors_come_in_the_order_in_which_their_pushes_ended),
		cmocka_unit_test(a_push_waits_until_a_slot_is_given_back),
		cmocka_unit_test(a_slot_that_is_taken_is_not_written),
		cmocka_unit_test(a_slot_of_another_peer_is_not_written),
		cmocka_unit_test(a_push_that_is_no_tensor_in_its_slot_is_refused),
		cmocka_unit_test(slots_of_a_sender_that_dies_are_announced_to_others),
		cmocka_unit_test(a_landing_that_closes_is_quiet_and_ends_its_pushes),
		cmocka_unit_test(a_tensor_can_be_freed_after_its_landing_has_closed),
		cmocka_unit_test(a_push_that_is_cancelled_leaves_its_slot_to_the_next),
		cmocka_unit_test(a_push_whose_deadline_passes_leaves_its_slot_to_the_next),
		cmocka_unit_test(pushes_go_on_over_the_next_rail),
		cmocka_unit_test(senders_have_equal_shares),
		cmocka_unit_test(a_sender_that_comes_last_gets_a_slot_that_another_has_announced),
		cmocka_unit_test(a_push_into_a_slot_that_is_withdrawn_gets_another),
		cmocka_unit_test(a_tensor_longer_than_a_slot_is_refused),
		cmocka_unit_test(memory_that_the_cpu_does_not_reach_is_not_pushed),
		cmocka_unit_test(any_number_of_longer_tensors_is_refused_at_once),
		cmocka_unit_test(remotes_of_a_peer_beyond_four_are_refused),
		cmocka_unit_test(a_push_gets_its_slot_while_others_miss_their_deadlines),
		cmocka_unit_test(a_landing_is_imported_again_at_once),
		cmocka_unit_test(pushes_go_on_after_their_remote_was_closed),
		cmocka_unit_test(a_node_closes_with_landings_and_pushes),
		cmocka_unit_test(pushes_end_when_the_owner_dies),
		cmocka_unit_test(pushes_that_wait_for_a_slot_end_at_once_when_the_owner_is_lost),
		cmocka_unit_test(a_node_that_drains_announces_no_slots),
		cmocka_unit_test(a_landing_is_found_by_its_key),
		cmocka_unit_test(peers_of_all_workers_share_a_landing),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
