/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/terms.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void a_checksum_is_made_where_either_side_wants_one(void **state)
{
	static const struct {
		bool ours, theirs, can;
		int err;
		uint8_t kind;
	} rows[] = {
		{ false, false, true, 0, WF_BODY_SUM_NONE },
		{ true, false, true, 0, WF_BODY_SUM_XXH3 },
		{ false, true, true, 0, WF_BODY_SUM_XXH3 },
		{ true, true, true, 0, WF_BODY_SUM_XXH3 },
		{ false, false, false, 0, WF_BODY_SUM_NONE },
		{ true, false, false, -EBADFD, 99 },
		/* It wants one of a kind that is not known here: its own affair. */
		{ false, true, false, 0, WF_BODY_SUM_NONE },
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		/* The other bits are of kinds yet to come. */
		struct wf_greet_hello peer = { .checksums = rows[i].can ? UINT32_MAX : ~1u,
					 .checksum = rows[i].theirs };
		struct wf_link link = { .name = "ps0", .peer = &peer };
		struct wf_terms terms = { .checksum = rows[i].ours };
		struct wf_error e;
		uint8_t kind = 99;

		assert_int_equal(wf_terms_sum(&terms, &link, &kind, &e), rows[i].err);
		assert_int_equal(kind, rows[i].kind);
		if (rows[i].err)
			assert_string_equal(e.text, "a checksum was asked for, and ps0 can verify none");
	}
}

static void a_body_without_the_checksum_asked_for_is_refused(void **state)
{
	struct wf_body bare = { .way = WF_BODY_PULL, .bytes = 1 }, none = { 0 };
	struct wf_body summed = { .bytes = 1, .sum_kind = WF_BODY_SUM_XXH3 };
	struct wf_terms any = { 0 }, strict = { .checksum = true };
	struct wf_greet_hello peer = { .checksums = 1 };
	struct wf_link link = { .name = "ps0", .peer = &peer };
	struct wf_error e;

	(void)state;
	assert_int_equal(wf_terms_body(&any, &link, &bare, &e), 0);
	assert_int_equal(wf_terms_body(&strict, &link, &summed, &e), 0);
	assert_int_equal(wf_terms_body(&strict, &link, &none, &e), 0);
	assert_int_equal(wf_terms_body(&strict, &link, &bare, &e), -EBADFD);
	assert_string_equal(e.text, "a checksum was asked for, and ps0 sent none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_checksum_is_made_where_either_side_wants_one),
		cmocka_unit_test(a_body_without_the_checksum_asked_for_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
