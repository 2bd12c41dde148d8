/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is who: a node that says that it is another one gets nothing that is the other's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/node.h"
#include "core/worker.h"
#include "tests/sim/world.h"
#include "util/clock.h"

#define US WF_NS_PER_US
#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define BYTES 100

enum { A, B, LIAR, NODES };

static uint8_t source[BYTES], target[BYTES], back[BYTES];

/* Node A and B decide which of two links stays by their incarnations: in turn A and B do. */
static void open_world(enum wf_world_shape shape, bool a_decides)
{
	wf_world_open(shape, NODES, NULL);
	memset(wf_world_node(A)->directory.incarnation, a_decides ? 0x10 : 0xf0,
	       WF_INCARNATION_BYTES);
	memset(wf_world_node(B)->directory.incarnation, 0x80, WF_INCARNATION_BYTES);
	wf_world_fill(source, BYTES, 1);
	memset(target, 0, BYTES);
	memset(back, 0, BYTES);
}

/* How many links of node @number have a peer. */
static unsigned links_of(unsigned number)
{
	unsigned count = 0;

	WF_LIST_EACH(at, &wf_world_node(number)->workers[0].engine.link_list)
		count += wf_link_greeted(WF_CONTAINER(at, struct wf_link, node));
	return count;
}

/* A tensor each way between A and B, by address; the liar, who would take any, gets none. */
static void exchange(uint64_t step)
{
	struct wf_flight f[4], stolen;
	static uint8_t loot[BYTES];

	wf_flight_receive(&stolen, LIAR, LIAR, step, loot, BYTES, 10 * S);
	wf_flight_send(&f[0], A, B, step, source, BYTES, 2 * S);
	wf_flight_receive(&f[1], B, A, step, target, BYTES, 2 * S);
	wf_flight_send(&f[2], B, A, step, source, BYTES, 2 * S);
	wf_flight_receive(&f[3], A, B, step, back, BYTES, 2 * S);
	wf_flight_land(f, 4, 3 * S);
	for (unsigned i = 0; i < 4; i++)
		if (f[i].status != WEFT_OK)
			fail_msg("operation %u: %s", i, weft_op_message(f[i].op));
	assert_true(wf_world_is_filled(target, BYTES, 1) && wf_world_is_filled(back, BYTES, 1));
	assert_int_equal(stolen.outcomes, 0);
	weft_cancel(stolen.op);
	wf_flight_land(&stolen, 1, S);
	wf_flight_free(&stolen, 1);
	wf_flight_free(f, 4);
}

/* For every lie, shape of rail and order of incarnations. */
static void each(void (*play)(unsigned lies))
{
	for (unsigned i = 0; i < 3 * 3 * 2; i++) {
		open_world(wf_world_shapes[i % 3], i / 9);
		wf_world_lie(LIAR, B, 1 + i / 3 % 3);
		play(1 + i / 3 % 3);
		assert_int_equal(wf_world_close(), 0);
	}
}

static void come_first(unsigned lies)
{
	(void)lies;
	wf_world_connect(LIAR, A);
	exchange(1);
	assert_int_equal(links_of(A), 2);
}

static void a_liar_before_the_true_peer_is_met_gets_nothing(void **state)
{
	(void)state;
	each(come_first);
}

static void come_into_the_midst(unsigned lies)
{
	(void)lies;
	wf_world_connect(A, B);
	exchange(1);
	wf_world_connect(LIAR, A);
	exchange(2);
	assert_int_equal(wf_world_count(A).peers_lost + wf_world_count(B).peers_lost, 0);
	assert_int_equal(links_of(A), 2);
	assert_int_equal(links_of(B), 1);
}

static void a_liar_while_the_true_peer_lives_gets_nothing(void **state)
{
	(void)state;
	each(come_into_the_midst);
}

static void lie_to_both(unsigned lies)
{
	(void)lies;
	wf_world_connect(LIAR, A);
	wf_world_lie(LIAR, A, WF_WORLD_LIE_INCARNATION | WF_WORLD_LIE_ADDRESS);
	wf_world_connect(LIAR, B);
	exchange(1);
	wf_world_pass(2 * S);
	exchange(2);
}

static void a_liar_to_both_ends_does_not_keep_them_apart(void **state)
{
	(void)state;
	each(lie_to_both);
}

/* A answers a dead stranger, whose address was B's: by no dial. */
static void a_message_for_a_dead_stranger_goes_nowhere(void **state)
{
	struct wf_flight f[2], late;
	struct weft_send_options options = { .size = sizeof(options) };
	int64_t shape = BYTES;
	struct weft_tensor t = { .data = source, .ndim = 1, .dtype = { WEFT_UINT, 8, 1 },
				 .shape = &shape, .device = { WEFT_CPU, 0 } };

	(void)state;
	open_world(WF_WORLD_CONNECTED, true);
	wf_world_lie(LIAR, B, WF_WORLD_LIE_ADDRESS);
	wf_flight_send(&f[0], LIAR, A, 1, source, BYTES, S);
	wf_flight_receive(&f[1], A, A, 1, target, BYTES, S);
	wf_flight_land(f, 2, S);
	assert_int_equal(f[1].status, WEFT_OK);
	wf_world_kill(LIAR);
	wf_world_pass(3 * S);
	options.op = wf_flight_begin(&late, 2 * S);
	assert_int_equal(weft_send(weft_op_peer(f[1].op), 2, "", 0, &t, &options, &late.op), 0);
	wf_flight_land(&late, 1, 3 * S);
	assert_int_equal(late.status, WEFT_UNAVAILABLE);
	assert_int_equal(links_of(B), 0);
	wf_flight_free(&late, 1);
	wf_flight_free(f, 2);
	assert_int_equal(wf_world_close(), 0);
}

/* A hello goes over the wire as another, though the same to both ends but for a letter of a name. */
static void change_the_name(uint8_t *bytes, size_t count)
{
	static const uint8_t name[] = { 0x22, 2, 'n' }; /* field 4, two bytes: n0, n1 */
	uint8_t *at = memmem(bytes, count, name, sizeof(name));

	if (at)
		at[2] = 'm';
}

static void a_hello_that_was_changed_on_its_way_proves_nothing(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		open_world(WF_WORLD_CONNECTED, i);
		wf_world_connect(A, B);
		wf_net_set_tamper(change_the_name);
		wf_world_connect(B, A);
		assert_int_equal(links_of(A), 2);
		assert_int_equal(links_of(B), 2);
		wf_net_set_tamper(NULL);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* And the same bytes prove it. */
static void two_dials_between_two_nodes_become_one_link(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2 * 3; i++) {
		open_world(wf_world_shapes[i % 3], i / 3);
		wf_world_connect(A, B);
		wf_world_connect(B, A);
		wf_world_pass(100 * MS); /* the other end of what was given up hears of it */
		assert_int_equal(links_of(A), 1);
		assert_int_equal(links_of(B), 1);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* Two links whose peers have proven different identities are not merged. */
static void links_of_two_identities_stay_two(void **state)
{
	struct wf_list *first;

	(void)state;
	for (unsigned i = 0; i < 2 * 3; i++) {
		open_world(wf_world_shapes[i % 3], i / 3);
		wf_world_connect(A, B);
		first = wf_list_first(&wf_world_node(A)->workers[0].engine.link_list);
		strcpy(WF_CONTAINER(first, struct wf_link, node)->seals.identity, "spiffe://else");
		wf_world_connect(B, A);
		wf_world_pass(100 * MS);
		assert_int_equal(links_of(A), 2);
		assert_int_equal(wf_world_close(), 0);
	}
}

/* Most pieces are quick, and some take longer than a rail needs to come up. */
static uint64_t uneven_delay_ns(void *ctx, uint64_t random)
{
	(void)ctx;
	return random % 4 ? 20 * US + random / 4 % (100 * US) : random / 4 % (20 * MS);
}

static void dials_that_cross_become_one_link_however_late_hellos_come(void **state)
{
	struct wf_flight pings[2];

	(void)state;
	for (uint64_t seed = 0; seed < 600; seed++) {
		struct wf_fake fake = { .seed = seed, .delay_min_ns = 5 * US, .delay_max_ns = 50 * US };

		wf_world_open(wf_world_shapes[seed % 3], 2, &fake);
		wf_net_set_delay(uneven_delay_ns, NULL);
		wf_flight_ping(&pings[0], A, B, 5 * S);
		wf_world_pass(seed % 25 * MS);
		wf_flight_ping(&pings[1], B, A, 5 * S);
		wf_flight_land(pings, 2, 5 * S);
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(pings[i].status, WEFT_OK);
		wf_flight_free(pings, 2);
		wf_world_pass(100 * MS);
		assert_int_equal(links_of(A), 1);
		assert_int_equal(links_of(B), 1);
		assert_int_equal(wf_world_close(), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_liar_before_the_true_peer_is_met_gets_nothing),
		cmocka_unit_test(a_liar_while_the_true_peer_lives_gets_nothing),
		cmocka_unit_test(a_liar_to_both_ends_does_not_keep_them_apart),
		cmocka_unit_test(a_message_for_a_dead_stranger_goes_nowhere),
		cmocka_unit_test(a_hello_that_was_changed_on_its_way_proves_nothing),
		cmocka_unit_test(two_dials_between_two_nodes_become_one_link),
		cmocka_unit_test(links_of_two_identities_stay_two),
		cmocka_unit_test(dials_that_cross_become_one_link_however_late_hellos_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
