/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/table.h"

#include <errno.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
	/* xorshift64: the same run every time */
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

static void any_mix_of_calls_finds_what_is_in_and_nothing_else(void **state)
{
	enum { LIMIT = 100 };
	uint64_t ids[LIMIT] = { 0 }; /* 0: not in; the thing itself is its place here */
	uint64_t stale[LIMIT] = { 0 };
	struct wf_table t;
	uint32_t count = 0;

	(void)state;
	seed = 7;
	wf_table_init(&t, LIMIT);
	for (int round = 0; round < 20000; round++) {
		size_t i = draw(LIMIT);

		if (ids[i]) {
			wf_table_remove(&t, ids[i]);
			stale[i] = ids[i];
			ids[i] = 0;
			count--;
		} else {
			assert_int_equal(wf_table_add(&t, &ids[i], &ids[i]), 0);
			assert_int_not_equal(ids[i], 0);
			count++;
		}
		wf_table_remove(&t, stale[draw(LIMIT)]);
		assert_int_equal(t.count, count);

		i = draw(LIMIT);
		assert_ptr_equal(wf_table_get(&t, ids[i]), ids[i] ? &ids[i] : NULL);
		assert_null(wf_table_get(&t, stale[i]));
	}

	/* What next gives is each member once. */
	for (uint32_t at = 0, found = 0;; found++) {
		uint64_t *id = wf_table_next(&t, &at);

		if (!id) {
			assert_int_equal(found, count);
			break;
		}
		assert_int_not_equal(*id, 0);
		*id = 0;
	}
	wf_table_fini(&t);
}

static void an_id_is_stale_after_its_place_is_taken_again(void **state)
{
	int first, second;
	uint64_t old_id, new_id;
	struct wf_table t;

	(void)state;
	wf_table_init(&t, 1);
	assert_int_equal(wf_table_add(&t, &first, &old_id), 0);
	wf_table_remove(&t, old_id);
	assert_null(wf_table_get(&t, old_id));
	assert_int_equal(wf_table_add(&t, &second, &new_id), 0);
	assert_int_equal((uint32_t)new_id, (uint32_t)old_id);

	assert_null(wf_table_get(&t, old_id));
	wf_table_remove(&t, old_id);
	assert_ptr_equal(wf_table_get(&t, new_id), &second);
	wf_table_fini(&t);
}

static void a_full_table_refuses_and_leaves_the_id_alone(void **state)
{
	enum { LIMIT = 17 };
	uint64_t ids[LIMIT], extra = 42;
	struct wf_table t;

	(void)state;
	wf_table_init(&t, LIMIT);
	for (size_t i = 0; i < LIMIT; i++)
		assert_int_equal(wf_table_add(&t, &ids[i], &ids[i]), 0);
	assert_int_equal(wf_table_add(&t, &extra, &extra), -ENOSPC);
	assert_int_equal(extra, 42);

	wf_table_remove(&t, ids[3]);
	assert_int_equal(wf_table_add(&t, &extra, &extra), 0);
	assert_ptr_equal(wf_table_get(&t, extra), &extra);
	wf_table_fini(&t);
}

static void ids_nobody_gave_find_nothing(void **state)
{
	struct wf_table t;
	uint64_t id;
	int thing;

	(void)state;
	wf_table_init(&t, 64);
	assert_null(wf_table_get(&t, 0));
	assert_int_equal(wf_table_add(&t, &thing, &id), 0);
	assert_null(wf_table_get(&t, 0));
	assert_null(wf_table_get(&t, UINT64_MAX));
	assert_null(wf_table_get(&t, id + 1)); /* a place that is free */
	assert_null(wf_table_get(&t, id + ((uint64_t)1 << 32)));

	/* The id that the place will have next is not out yet. */
	wf_table_remove(&t, id);
	assert_null(wf_table_get(&t, id + ((uint64_t)1 << 32)));
	wf_table_remove(&t, id + ((uint64_t)1 << 32));
	assert_int_equal(t.count, 0);
	wf_table_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_mix_of_calls_finds_what_is_in_and_nothing_else),
		cmocka_unit_test(an_id_is_stale_after_its_place_is_taken_again),
		cmocka_unit_test(a_full_table_refuses_and_leaves_the_id_alone),
		cmocka_unit_test(ids_nobody_gave_find_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
