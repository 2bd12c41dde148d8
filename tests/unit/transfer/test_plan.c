/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/plan.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define RECORD_MAX ((uint32_t)MIB)

/* A rail with tcp's numbers. */
static const struct wf_rail_caps caps = {
	.frame_bytes = 16 * KIB,
	.eager_bytes = 64 * KIB,
	.chunk_bytes = MIB,
	.read_bytes_max = 8 * MIB,
	.depth = 2,
};

#define EAGER(count) { .way = WF_BODY_EAGER, .frames = (count), .copies = 2, \
		       .why = "within the eager limit" }
#define PULL(chunk, reads, reason) { .way = WF_BODY_PULL, .chunk_bytes = (chunk), \
				     .depth = (reads), .why = (reason) }
#define LARGE "larger than the eager limit"

static void the_table_holds(void **state)
{
	static const struct {
		uint64_t bytes;
		bool credit;
		uint32_t record_max;
		uint64_t eager_bytes, chunk_bytes, depth; /* settings */
		struct wf_plan plan;
	} rows[] = {
		{ 0, true, RECORD_MAX, 0, 0, 0, { .why = "there is no body" } },
		{ 0, false, 0, 0, 0, 0, { .why = "there is no body" } },
		{ 1, true, RECORD_MAX, 0, 0, 0, EAGER(1) },
		{ 16 * KIB, true, RECORD_MAX, 0, 0, 0, EAGER(1) },
		{ 16 * KIB + 1, true, RECORD_MAX, 0, 0, 0, EAGER(2) },
		{ 64 * KIB, true, RECORD_MAX, 0, 0, 0, EAGER(4) },
		{ 64 * KIB + 1, true, RECORD_MAX, 0, 0, 0, PULL(MIB, 1, LARGE) },
		/* No more reads than there are chunks. */
		{ MIB, true, RECORD_MAX, 0, 0, 0, PULL(MIB, 1, LARGE) },
		{ MIB + 1, true, RECORD_MAX, 0, 0, 0, PULL(MIB, 2, LARGE) },
		{ UINT64_MAX / 2, true, RECORD_MAX, 0, 0, 0, PULL(MIB, 2, LARGE) },
		/* Without credit a short body is pulled as well. */
		{ 1, false, RECORD_MAX, 0, 0, 0,
		  PULL(MIB, 1, "the receiver has no room for unexpected bodies") },
		/* 200 KiB are kept for what stands before a body. */
		{ 32 * KIB, true, 232 * KIB, 0, 0, 0, EAGER(2) },
		{ 32 * KIB + 1, true, 232 * KIB, 0, 0, 0,
		  PULL(MIB, 1, "longer than a record may be") },
		/* Settings win over the row, and the rail's own limit over settings. */
		{ 1000, true, RECORD_MAX, 1000, 0, 0, EAGER(1) },
		{ 1001, true, RECORD_MAX, 1000, 0, 0, PULL(MIB, 1, LARGE) },
		{ 128 * KIB, true, RECORD_MAX, 128 * KIB, 0, 0, EAGER(8) },
		{ 64 * MIB, true, RECORD_MAX, 0, 64 * KIB, 7, PULL(64 * KIB, 7, LARGE) },
		{ 64 * MIB, true, RECORD_MAX, 0, 64 * MIB, 7, PULL(8 * MIB, 7, LARGE) },
		{ 64 * MIB, true, RECORD_MAX, 0, 0, 16, PULL(MIB, 16, LARGE) },
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++) {
		const struct wf_options options = { .eager_bytes = rows[i].eager_bytes,
						    .chunk_bytes = rows[i].chunk_bytes,
						    .depth = rows[i].depth };
		const struct wf_plan *want = &rows[i].plan;
		struct wf_plan got;

		memset(&got, 0xee, sizeof(got));
		wf_plan_make(&caps, &options, rows[i].bytes, rows[i].credit, rows[i].record_max,
			     &got);
		if (got.way != want->way || got.chunk_bytes != want->chunk_bytes ||
		    got.depth != want->depth || got.frames != want->frames ||
		    got.copies != want->copies || strcmp(got.why, want->why))
			fail_msg("row %zu: %s, chunks of %llu, depth %u, %u frames, %u copies: %s",
				 i, wf_plan_way(got.way), (unsigned long long)got.chunk_bytes,
				 got.depth, got.frames, got.copies, got.why);
	}
}

static void only_large_bodies_are_read_with_help(void **state)
{
	static const struct wf_rail_caps helped = { .frame_bytes = 4 * KIB, .eager_bytes = 4 * KIB,
					       .chunk_bytes = MIB, .read_bytes_max = UINT64_MAX,
					       .depth = 1, .helper_bytes = 4 * MIB };
	const struct wf_options options = { 0 };
	struct wf_plan plan;

	(void)state;
	wf_plan_make(&helped, &options, 4 * MIB, true, RECORD_MAX, &plan);
	assert_true(plan.helper);
	wf_plan_make(&helped, &options, 4 * MIB - 1, true, RECORD_MAX, &plan);
	assert_false(plan.helper);
	wf_plan_make(&helped, &options, 1000, true, RECORD_MAX, &plan);
	assert_false(plan.helper);
	wf_plan_make(&caps, &options, 64 * MIB, true, RECORD_MAX, &plan);
	assert_false(plan.helper);
}

static void ways_have_names(void **state)
{
	(void)state;
	assert_string_equal(wf_plan_way(WF_BODY_NONE), "none");
	assert_string_equal(wf_plan_way(WF_BODY_EAGER), "eager");
	assert_string_equal(wf_plan_way(WF_BODY_PULL), "pull");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_holds),
		cmocka_unit_test(only_large_bodies_are_read_with_help),
		cmocka_unit_test(ways_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
