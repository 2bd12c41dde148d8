/* SPDX-License-Identifier: BSD-2-Clause */
/* Rounds of disjoint pairs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tool/rounds.h"

#define SIZE_MAX_TESTED 67 /* odd and even numbers of ranks, more than a rack has */

static void each_pair_meets_in_exactly_one_round(void **state)
{
	(void)state;
	for (uint32_t size = 0; size <= SIZE_MAX_TESTED; size++) {
		unsigned *met = calloc((size_t)size * size + 1, sizeof(*met));

		assert_non_null(met);
		for (uint32_t round = 0; round < rounds_count(size); round++)
			for (uint32_t rank = 0; rank < size; rank++) {
				uint32_t partner = rounds_partner(size, round, rank);

				assert_in_range(partner, 0, size);
				if (partner < size)
					met[rank * size + partner]++;
			}
		for (uint32_t from = 0; from < size; from++)
			for (uint32_t to = 0; to < size; to++)
				assert_int_equal(met[from * size + to], from == to ? 0 : 1);
		free(met);
	}
}

static void ranks_of_a_pair_agree_so_a_rank_is_in_one_pair_of_a_round(void **state)
{
	(void)state;
	for (uint32_t size = 2; size <= SIZE_MAX_TESTED; size++)
		for (uint32_t round = 0; round < rounds_count(size); round++)
			for (uint32_t rank = 0; rank < size; rank++) {
				uint32_t partner = rounds_partner(size, round, rank);

				if (partner < size)
					assert_int_equal(rounds_partner(size, round, partner), rank);
			}
}

static void an_even_number_of_ranks_has_none_idle_and_an_odd_number_one(void **state)
{
	(void)state;
	for (uint32_t size = 2; size <= SIZE_MAX_TESTED; size++) {
		assert_int_equal(rounds_count(size), size % 2 ? size : size - 1);
		for (uint32_t round = 0; round < rounds_count(size); round++) {
			uint32_t idle = 0;

			for (uint32_t rank = 0; rank < size; rank++)
				idle += rounds_partner(size, round, rank) == size;
			assert_int_equal(idle, size % 2);
		}
	}
}

static void a_rank_alone_meets_nobody(void **state)
{
	(void)state;
	assert_int_equal(rounds_count(0), 0);
	assert_int_equal(rounds_count(1), 0);
	assert_int_equal(rounds_partner(1, 0, 0), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_pair_meets_in_exactly_one_round),
		cmocka_unit_test(ranks_of_a_pair_agree_so_a_rank_is_in_one_pair_of_a_round),
		cmocka_unit_test(an_even_number_of_ranks_has_none_idle_and_an_odd_number_one),
		cmocka_unit_test(a_rank_alone_meets_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
