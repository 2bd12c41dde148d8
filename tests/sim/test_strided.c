/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends that are gathered first, and wait for memory of the pool. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define BYTES (3 * MIB) /* gathered in several turns, and pulled */
#define COLUMNS 48
#define STEP 7

static uint8_t source[BYTES], target[BYTES], other[100];
static void *hoard;

/* The pools have room for one such tensor; that of node 0 has none now. */
static void open_world(enum wf_world_shape shape)
{
	assert_int_equal(setenv("WEFT_POOL_BYTES", "4M", 1), 0);
	wf_world_open(shape, 2, NULL);
	wf_world_connect(0, 1);
	assert_int_equal(weft_alloc(wf_world_node(0), BYTES, &hoard), 0);
	wf_world_fill(source, BYTES, 1);
	memset(target, 0, BYTES);
}

static void close_world(void)
{
	weft_free(wf_world_node(0), hoard);
	hoard = NULL;
	assert_int_equal(wf_world_close(), 0);
}

static void let_go(void)
{
	weft_free(wf_world_node(0), hoard);
	hoard = NULL;
}

/* Send the first @bytes of the source, a matrix, with its columns as rows. */
static int try_send(struct wf_flight *f, uint64_t step, size_t bytes, unsigned flags,
		    uint64_t timeout_ns)
{
	int64_t shape[] = { COLUMNS, (int64_t)bytes / COLUMNS }, strides[] = { 1, COLUMNS };
	struct weft_tensor t = {
		.data = source, .device = { WEFT_CPU, 0 }, .ndim = 2, .dtype = { WEFT_UINT, 8, 1 },
		.shape = shape, .strides = strides,
	};
	struct weft_send_options options = {
		.size = sizeof(options), .op = wf_flight_begin(f, timeout_ns), .flags = flags,
	};

	return weft_send(wf_world_peer(0, 1), step, "", 0, &t, &options, &f->op);
}

static void send_strided(struct wf_flight *f, uint64_t timeout_ns)
{
	assert_int_equal(try_send(f, STEP, BYTES, 0, timeout_ns), 0);
}

/* As many bytes as fit the target, of whatever shape; not in place of what the channel has. */
static void receive(struct wf_flight *f, void *into, size_t bytes)
{
	int64_t shape = (int64_t)bytes;
	struct weft_tensor t = {
		.data = into, .device = { WEFT_CPU, 0 }, .ndim = 1, .dtype = { WEFT_UINT, 8, 1 },
		.shape = &shape,
	};
	struct weft_recv_options options = {
		.size = sizeof(options), .op = wf_flight_begin(f, 0), .flags = WEFT_ANY_SHAPE,
	};

	assert_int_equal(weft_recv(wf_world_node(1), NULL, STEP, "", 0, &t, &options, &f->op), 0);
}

static void assert_gathered(void)
{
	size_t rows = BYTES / COLUMNS;

	for (size_t c = 0; c < COLUMNS; c++)
		for (size_t r = 0; r < rows; r++)
			if (target[c * rows + r] != source[r * COLUMNS + c])
				fail_msg("column %zu, row %zu", c, r);
}

static void land_as(struct wf_flight *f, enum weft_status status, const char *part,
		    uint64_t limit_ns)
{
	wf_flight_land(f, 1, limit_ns);
	assert_int_equal(f->status, status);
	assert_non_null(strstr(weft_op_message(f->op), part));
	wf_flight_free(f, 1);
}

static void a_send_that_finds_no_memory_waits_for_some(void **state)
{
	struct weft_path path = { .size = sizeof(path) };
	struct wf_flight sent, received;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(wf_world_shapes); i++) {
		uint64_t waits;

		open_world(wf_world_shapes[i]);
		waits = wf_world_count(0).pool_waits;
		receive(&received, target, BYTES);
		send_strided(&sent, 0);
		wf_world_pass(10 * S);
		assert_int_equal(sent.outcomes, 0);
		assert_int_equal(wf_world_count(0).pool_waits, waits + 1);

		let_go();
		wf_flight_land(&sent, 1, S);
		assert_int_equal(weft_op_path(sent.op, &path), 0);
		assert_int_equal(path.copies, 1);
		land_as(&sent, WEFT_OK, "", 0);
		land_as(&received, WEFT_OK, "", S);
		assert_gathered();
		close_world();
	}
}

static void at_the_deadline_the_sentence_names_the_setting(void **state)
{
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	send_strided(&f, 5 * S);
	wf_world_pass(5 * S - 10 * MS);
	assert_int_equal(f.outcomes, 0);
	land_as(&f, WEFT_RESOURCE_EXHAUSTED,
		"the deadline passed: 3145728 bytes of the pool are waited for: 3145728 of 4194304 are in use (WEFT_POOL_BYTES)",
		20 * MS);
	close_world();
}

static void a_send_that_waits_for_memory_ends_as_soon_as_it_is_told_to(void **state)
{
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	send_strided(&f, 0);
	wf_world_pass(S);
	weft_cancel(f.op);
	land_as(&f, WEFT_CANCELLED, "cancelled", 10 * MS);

	send_strided(&f, 0);
	wf_world_pass(S);
	assert_int_equal(weft_step_abort(wf_world_node(0), STEP, WEFT_ABORTED, NULL), 0);
	land_as(&f, WEFT_ABORTED, "step 7 was aborted", 10 * MS);

	/* And in the middle of being gathered. */
	let_go();
	wf_world_pass(S);
	assert_int_equal(try_send(&f, STEP + 1, BYTES, 0, 0), 0);
	wf_world_poll(0);
	assert_int_equal(wf_world_count(0).pool_bytes_used, BYTES);
	weft_cancel(f.op);
	land_as(&f, WEFT_CANCELLED, "cancelled", 10 * MS);
	assert_int_equal(wf_world_count(0).pool_bytes_used, 0);
	wf_world_pass(S);
	close_world();
}

static void the_peers_death_ends_it_too(void **state)
{
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	send_strided(&f, 0);
	wf_world_pass(S);
	wf_world_kill(1);
	land_as(&f, WEFT_UNAVAILABLE, "", S);
	close_world();

	/* Also when it says nothing. */
	open_world(WF_WORLD_CONNECTED);
	send_strided(&f, 0);
	wf_world_pass(S);
	wf_world_freeze(1, true);
	land_as(&f, WEFT_UNAVAILABLE, "silent", 5 * S);
	close_world();
}

static void and_so_does_closing_the_node(void **state)
{
	struct wf_flight f[2];

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	send_strided(&f[0], 0);
	wf_flight_send(&f[1], 0, 1, STEP, other, sizeof(other), 0); /* behind it */
	wf_world_pass(S);
	let_go();
	wf_world_leave(0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(f[i].outcomes, 1);
		assert_int_equal(f[i].status, WEFT_CANCELLED);
	}
	wf_flight_free(f, 2);
	assert_int_equal(wf_world_close(), 0);
}

static void a_tensor_that_can_never_fit_is_refused_at_once(void **state)
{
	struct wf_flight f;

	(void)state;
	assert_int_equal(setenv("WEFT_POOL_BYTES", "2M", 1), 0);
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	assert_int_equal(try_send(&f, STEP, BYTES, 0, 0), -ENOBUFS);
	assert_non_null(strstr(weft_error(), "WEFT_POOL_BYTES"));
	assert_int_equal(wf_world_close(), 0);
}

static void a_snapshot_does_not_wait(void **state)
{
	struct wf_flight f;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	assert_int_equal(try_send(&f, STEP, BYTES, WEFT_SNAPSHOT, 0), -ENOBUFS);
	assert_non_null(strstr(weft_error(), "WEFT_POOL_BYTES"));
	close_world();
}

/* What waits for memory is not overtaken in its channel, and keeps nobody else waiting. */
static void a_channel_keeps_its_order_meanwhile(void **state)
{
	static uint8_t got[2][100];
	struct wf_flight sent[4], received[4];

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	send_strided(&sent[0], 0);
	wf_world_fill(other, sizeof(other), 2);
	wf_flight_send(&sent[1], 0, 1, STEP, other, sizeof(other), 0);
	send_strided(&sent[2], 0);
	wf_flight_send(&sent[3], 0, 1, STEP + 1, other, sizeof(other), 0);
	wf_flight_receive(&received[3], 1, 0, STEP + 1, got[1], sizeof(other), 0);
	wf_flight_land(&received[3], 1, S);
	wf_flight_land(&sent[3], 1, S);
	wf_world_pass(S);
	assert_int_equal(sent[0].outcomes + sent[1].outcomes + sent[2].outcomes, 0);

	let_go();
	for (unsigned i = 0; i < 3; i++)
		receive(&received[i], i == 1 ? got[0] : target, i == 1 ? sizeof(other) : BYTES);
	wf_flight_land(received, 3, S);
	wf_flight_land(sent, 3, S);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(sent[i].status, WEFT_OK);
		assert_int_equal(received[i].status, WEFT_OK);
	}
	assert_same_content(got[0], other, sizeof(other));
	assert_gathered();
	wf_flight_free(sent, 4);
	wf_flight_free(received, 4);
	close_world();
}

/* Whoever leaves the line lets the next of its channel go on, wherever it stood. */
static void a_place_in_the_line_can_be_given_up(void **state)
{
	struct wf_flight sent[4], received;

	(void)state;
	open_world(WF_WORLD_CONNECTED);
	for (unsigned i = 0; i < 3; i++)
		send_strided(&sent[i], 0);
	wf_flight_send(&sent[3], 0, 1, STEP, other, sizeof(other), 0);
	wf_world_pass(100 * MS);
	weft_cancel(sent[1].op);
	land_as(&sent[1], WEFT_CANCELLED, "", 10 * MS);
	weft_cancel(sent[0].op);
	land_as(&sent[0], WEFT_CANCELLED, "", 10 * MS);
	wf_world_pass(100 * MS);
	assert_int_equal(sent[2].outcomes + sent[3].outcomes, 0);
	weft_cancel(sent[2].op);
	land_as(&sent[2], WEFT_CANCELLED, "", 10 * MS);
	receive(&received, target, sizeof(other));
	land_as(&sent[3], WEFT_OK, "", S);
	land_as(&received, WEFT_OK, "", S);
	close_world();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_send_that_finds_no_memory_waits_for_some),
		cmocka_unit_test(at_the_deadline_the_sentence_names_the_setting),
		cmocka_unit_test(a_send_that_waits_for_memory_ends_as_soon_as_it_is_told_to),
		cmocka_unit_test(the_peers_death_ends_it_too),
		cmocka_unit_test(and_so_does_closing_the_node),
		cmocka_unit_test(a_tensor_that_can_never_fit_is_refused_at_once),
		cmocka_unit_test(a_snapshot_does_not_wait),
		cmocka_unit_test(a_channel_keeps_its_order_meanwhile),
		cmocka_unit_test(a_place_in_the_line_can_be_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
