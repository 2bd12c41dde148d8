/* SPDX-License-Identifier: BSD-2-Clause */
/* Nodes with a key: links whose frames get keys of a new key file, and handshakes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/node.h"
#include "link/link.h"
#include "tests/sim/keys.h"
#include "tests/sim/world.h"

#define S WF_NS_PER_S
#define BIG (3 * MIB + 17)

static uint8_t source[BIG], place[BIG];

static const struct wf_seals *seals(unsigned number)
{
	return &wf_world_link(number)->seals;
}

static bool are_same(const struct wf_secret *a, const struct wf_secret *b)
{
	return !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

/* Have both nodes, which know each other, read their file as soon as they look. */
static void replace_key(void)
{
	wf_keys_replace();
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(weft_node_rekey(wf_world_node(i)), 0);
}

static uint64_t rekeyed(unsigned number)
{
	struct weft_counters counters = { .size = sizeof(counters) };

	assert_int_equal(weft_node_counters(wf_world_node(number), &counters), 0);
	return counters.links_rekeyed;
}

/* Begin to move a body from node 0 to node 1. */
static void begin(uint64_t step, struct weft_op **send, struct weft_op **recv)
{
	int64_t count = BIG;
	struct weft_tensor t = { .data = source, .device = { WEFT_CPU, 0 }, .ndim = 1,
				 .dtype = { WEFT_UINT, 8, 1 }, .shape = &count };
	struct weft_tensor into = t;

	memset(place, 0, sizeof(place));
	into.data = place;
	assert_int_equal(weft_recv(wf_world_node(1), NULL, step, "", 0, &into, NULL, recv), 0);
	assert_int_equal(weft_send(wf_world_peer(0, 1), step, "", 0, &t, NULL, send), 0);
}

static void end(struct weft_op *op)
{
	assert_int_equal(weft_wait(op, 20 * S), 0);
	if (weft_op_status(op) != WEFT_OK)
		fail_msg("%s", weft_op_message(op));
	weft_op_free(op);
}

static void replace_on(enum wf_world_shape shape)
{
	struct wf_secret before;
	struct weft_op *send, *recv;

	wf_keys_use("sealed");
	wf_world_open(shape, 2, NULL);
	wf_world_connect(0, 1);
	assert_true(seals(0)->on);
	for (unsigned i = 1; i <= 3; i++) {
		before = *seals(0)->secret;
		begin(i, &send, &recv);
		for (unsigned steps = 0; steps < 40 * i; steps++)
			wf_world_step();
		replace_key();
		end(send);
		end(recv);
		assert_memory_equal(place, source, BIG);
		wf_world_pass(3 * S);

		assert_int_equal(rekeyed(0), i);
		assert_int_equal(rekeyed(1), 0);
		assert_false(are_same(seals(0)->secret, &before));
		assert_true(are_same(seals(0)->secret, seals(1)->secret));
		assert_true(seals(0)->on && seals(1)->on);
		begin(10 + i, &send, &recv);
		end(send);
		end(recv);
		assert_memory_equal(place, source, BIG);
	}
	wf_world_end();
	wf_keys_use(NULL);
}

static void frames_get_keys_of_the_new_file(void **state)
{
	(void)state;
	replace_on(WF_WORLD_CONNECTED);
	replace_on(WF_WORLD_SHARED);
}

/* A door that fails is no reason to disturb the rail; the next probe has its keys all the same. */
static void a_door_that_is_cut_changes_no_keys_of_the_epoch(void **state)
{
	struct wf_secret before;
	struct weft_op *send, *recv;

	(void)state;
	wf_keys_use("sealed");
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_world_connect(0, 1);
	before = *seals(0)->secret;
	wf_world_cut_door(0, 1);
	wf_world_pass(3 * S);
	assert_true(are_same(seals(0)->secret, &before));
	assert_false(are_same(seals(0)->next, &before));
	assert_true(are_same(seals(0)->next, seals(1)->next));
	assert_int_equal(rekeyed(0), 0);

	wf_link_rail_failed(wf_world_link(0), "the test says so");
	begin(1, &send, &recv);
	end(send);
	end(recv);
	assert_false(are_same(seals(0)->secret, &before));
	assert_true(are_same(seals(0)->secret, seals(1)->secret));
	wf_world_end();
	wf_keys_use(NULL);
}

static unsigned said; /* lines about the key, in which its lock was free */

static void hear(unsigned number, int level, const char *line)
{
	pthread_mutex_t *lock = &wf_world_node(number)->proof.lock;

	(void)level;
	if (!strstr(line, "credentials"))
		return;
	assert_int_equal(pthread_mutex_trylock(lock), 0);
	pthread_mutex_unlock(lock);
	said++;
}

/* Put nothing of use into the key file, which the nodes see by themselves. */
static void spoil_key(void)
{
	FILE *file = fopen(getenv("WEFT_KEY_FILE"), "w");

	assert_non_null(file);
	assert_int_equal(fclose(file), 0);
}

/* A log that blocks must not keep the first worker from its next look at the files. */
static void a_program_hears_of_its_keys_while_their_lock_is_free(void **state)
{
	(void)state;
	said = 0;
	wf_keys_use("keyed");
	assert_int_equal(setenv("WEFT_LOG", "2", 1), 0);
	wf_world_hear(hear);
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	replace_key();
	assert_int_equal(said, 2);
	spoil_key();
	wf_world_pass(2 * S);
	assert_int_equal(said, 4);
	wf_world_end();
	wf_world_hear(NULL);
	wf_keys_replace();
	wf_keys_use(NULL);
}

static uint64_t far_ns(void *ctx, uint64_t random)
{
	(void)ctx;
	return 30 * WF_NS_PER_MS + random % WF_NS_PER_MS;
}

/* A redial over a long way has no session for longer than the pause between two looks at links. */
static void links_of_far_peers_get_new_keys_by_one_redial(void **state)
{
	struct weft_op *send, *recv;

	(void)state;
	wf_keys_use("sealed");
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_net_set_delay(far_ns, NULL);
	wf_world_connect(0, 1);
	begin(1, &send, &recv);
	replace_key();
	wf_world_pass(6 * S);
	end(send);
	end(recv);
	assert_memory_equal(place, source, BIG);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(wf_world_count(i).peers_lost, 0);
		assert_int_equal(wf_world_count(i).links_resumed, 1);
	}
	assert_int_equal(rekeyed(0), 1);
	assert_true(are_same(seals(0)->secret, seals(1)->secret));
	wf_world_end();
	wf_keys_use(NULL);
}

/* Node 1 forgets a connection whose first bytes are under way, and says so to nobody. */
static void a_dial_whose_handshake_is_never_answered_is_made_again(void **state)
{
	struct wf_flight f;

	(void)state;
	wf_keys_use("sealed");
	wf_world_open(WF_WORLD_CONNECTED, 2, NULL);
	wf_net_set_delay(far_ns, NULL);
	wf_flight_ping(&f, 0, 1, 40 * S);
	wf_world_pass(75 * WF_NS_PER_MS);
	wf_world_forget_door(1, 0);
	wf_flight_land(&f, 1, 16 * S);
	assert_int_equal(f.status, WEFT_OK);
	wf_flight_free(&f, 1);
	wf_world_end();
	wf_keys_use(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_get_keys_of_the_new_file),
		cmocka_unit_test(links_of_far_peers_get_new_keys_by_one_redial),
		cmocka_unit_test(a_door_that_is_cut_changes_no_keys_of_the_epoch),
		cmocka_unit_test(a_program_hears_of_its_keys_while_their_lock_is_free),
		cmocka_unit_test(a_dial_whose_handshake_is_never_answered_is_made_again),
	};

	for (size_t i = 0; i < BIG; i++)
		source[i] = (uint8_t)(i * 31 + i / 251);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
