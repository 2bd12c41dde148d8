/* SPDX-License-Identifier: BSD-2-Clause */
/* weft's own prototypes of PMIx beside those of its header. */
#include <pmix.h>
#include "group/pmix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define SAME_PLACE(ours, our_member, theirs, their_member)                  \
	_Static_assert(offsetof(struct ours, our_member) == offsetof(theirs, their_member), \
		       #our_member)

SAME_PLACE(wf_pmix_process, name, pmix_proc_t, nspace);
SAME_PLACE(wf_pmix_process, rank, pmix_proc_t, rank);
SAME_PLACE(wf_pmix_value, type, pmix_value_t, type);
SAME_PLACE(wf_pmix_value, data, pmix_value_t, data);
SAME_PLACE(wf_pmix_value, data.string, pmix_value_t, data.string);
SAME_PLACE(wf_pmix_value, data.number, pmix_value_t, data.uint32);

static void sizes_and_numbers_are_pmixs(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct wf_pmix_process), sizeof(pmix_proc_t));
	assert_int_equal(sizeof(struct wf_pmix_value), sizeof(pmix_value_t));
	assert_int_equal(WF_PMIX_SUCCESS, PMIX_SUCCESS);
	assert_int_equal(WF_PMIX_STRING, PMIX_STRING);
	assert_int_equal(WF_PMIX_UINT32, PMIX_UINT32);
	assert_int_equal(WF_PMIX_GLOBAL, PMIX_GLOBAL);
	assert_int_equal((uint32_t)WF_PMIX_NO_RANK, PMIX_RANK_WILDCARD);
	assert_int_equal(sizeof(pmix_scope_t), sizeof(uint8_t));
	assert_int_equal(sizeof(pmix_status_t), sizeof(int));
	assert_string_equal(WF_PMIX_JOB_SIZE, PMIX_JOB_SIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_and_numbers_are_pmixs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
