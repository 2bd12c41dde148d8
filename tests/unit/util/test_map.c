/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <time.h>

#define ITEMS 400

struct item {
	struct wf_map_node node;
	uint64_t hash;
	bool in, seen;
};

static struct item items[ITEMS];
static uint64_t seed;

static uint64_t draw(uint64_t below)
{
	/* xorshift64: the same run every time */
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

/* Members of @hash by the map itself. */
static size_t count_found(const struct wf_map *m, uint64_t hash)
{
	struct wf_map_node *node = NULL;
	size_t count = 0;

	while ((node = wf_map_find(m, hash, node))) {
		assert_true(WF_CONTAINER(node, struct item, node)->in);
		assert_int_equal(WF_CONTAINER(node, struct item, node)->hash, hash);
		count++;
	}
	return count;
}

static size_t count_in(uint64_t hash)
{
	size_t count = 0;

	for (size_t i = 0; i < ITEMS; i++)
		count += items[i].in && items[i].hash == hash;
	return count;
}

static void walk_meets_each_member_once(const struct wf_map *m)
{
	struct wf_map_node *node = NULL;
	size_t count = 0;

	for (size_t i = 0; i < ITEMS; i++)
		items[i].seen = false;
	while ((node = wf_map_next(m, node))) {
		struct item *item = WF_CONTAINER(node, struct item, node);

		assert_true(item->in);
		assert_false(item->seen);
		item->seen = true;
		count++;
	}
	assert_int_equal(count, m->count);
}

/* @hashes is how many different hashes there are: few make long chains. */
static void compare_with_an_array(uint64_t hashes)
{
	struct wf_map m;
	size_t count = 0;

	wf_map_init(&m);
	for (size_t i = 0; i < ITEMS; i++)
		items[i] = (struct item){ .hash = draw(hashes) << 3 };
	for (int round = 0; round < 5000; round++) {
		struct item *item = &items[draw(ITEMS)];

		if (item->in) {
			wf_map_remove(&m, &item->node);
			count--;
		} else {
			wf_map_add(&m, &item->node, item->hash);
			count++;
		}
		item->in = !item->in;
		assert_int_equal(m.count, count);

		item = &items[draw(ITEMS)];
		assert_int_equal(count_found(&m, item->hash), count_in(item->hash));
		if (round % 100 == 0)
			walk_meets_each_member_once(&m);
	}
	/* Never more than one member a bucket on average. */
	assert_true(m.bucket_count >= m.count);
	wf_map_fini(&m);
}

static void any_mix_of_calls_finds_what_is_in_and_nothing_else(void **state)
{
	(void)state;
	seed = 11;
	compare_with_an_array(UINT32_MAX);
	compare_with_an_array(40);
	compare_with_an_array(1);
}

static void an_empty_map_finds_nothing(void **state)
{
	struct wf_map m;

	(void)state;
	wf_map_init(&m);
	assert_null(wf_map_find(&m, 0, NULL));
	assert_null(wf_map_next(&m, NULL));
	wf_map_fini(&m);
}

/* Quadratic work would be 10^11 buckets here, which takes minutes. */
static void a_map_of_many_is_emptied_first_by_first_in_no_time(void **state)
{
	const size_t count = 1000000;
	struct wf_map_node *nodes = calloc(count, sizeof(*nodes)), *node;
	struct wf_map m;
	size_t found = 0;
	clock_t begun;

	(void)state;
	assert_non_null(nodes);
	wf_map_init(&m);
	for (size_t i = 0; i < count; i++)
		wf_map_add(&m, &nodes[i], wf_map_hash(&m, i, NULL, 0));
	begun = clock();
	while ((node = wf_map_first(&m))) {
		wf_map_remove(&m, node);
		found++;
	}
	assert_true(clock() - begun < 20 * CLOCKS_PER_SEC);
	assert_int_equal(found, count);
	wf_map_add(&m, &nodes[0], 0);
	assert_ptr_equal(wf_map_first(&m), &nodes[0]);
	wf_map_fini(&m);
	free(nodes);
}

static void a_hash_depends_on_map_step_and_every_byte(void **state)
{
	struct wf_map m, other;
	uint8_t key[300] = { 0 }; /* XXH3 takes another road above 240 bytes */
	uint64_t hash;

	(void)state;
	wf_map_init(&m);
	wf_map_init(&other);
	hash = wf_map_hash(&m, 1, key, sizeof(key));
	assert_int_equal(wf_map_hash(&m, 1, key, sizeof(key)), hash);
	assert_int_not_equal(wf_map_hash(&m, 2, key, sizeof(key)), hash);
	assert_int_not_equal(wf_map_hash(&m, 1, key, sizeof(key) - 1), hash);
	assert_int_not_equal(wf_map_hash(&other, 1, key, sizeof(key)), hash);
	for (size_t i = 0; i < sizeof(key); i++) {
		key[i] = 1;
		assert_int_not_equal(wf_map_hash(&m, 1, key, sizeof(key)), hash);
		key[i] = 0;
	}
	wf_map_fini(&other);
	wf_map_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_mix_of_calls_finds_what_is_in_and_nothing_else),
		cmocka_unit_test(an_empty_map_finds_nothing),
		cmocka_unit_test(a_map_of_many_is_emptied_first_by_first_in_no_time),
		cmocka_unit_test(a_hash_depends_on_map_step_and_every_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
