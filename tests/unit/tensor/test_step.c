/* SPDX-License-Identifier: BSD-2-Clause */
#include "tensor/step.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "util/status.h"

static void add(struct wf_steps *steps, uint64_t number, uint64_t now_ns)
{
	struct wf_step *s = wf_step_new_aborted(number, WEFT_ABORTED, NULL, 0);

	assert_non_null(s);
	wf_steps_add(steps, s, now_ns);
}

static void a_step_is_known_by_its_number(void **state)
{
	static const uint64_t numbers[] = { 0, 1, UINT64_MAX, UINT64_C(1) << 63 };
	struct wf_steps steps;

	(void)state;
	wf_steps_init(&steps);
	for (size_t i = 0; i < WF_COUNT(numbers); i++) {
		assert_null(wf_steps_find(&steps, numbers[i]));
		add(&steps, numbers[i], 0);
		assert_int_equal(wf_steps_find(&steps, numbers[i])->number, numbers[i]);
	}
	assert_null(wf_steps_find(&steps, 2));
	wf_steps_fini(&steps);
}

static void the_sentence_names_the_step_and_the_reason(void **state)
{
	struct wf_step *s = wf_step_new_aborted(7, WEFT_DATA_LOSS, "the loss is nan, say", 15);
	struct wf_error e;

	(void)state;
	assert_int_equal(wf_status_of(wf_step_error(s, &e)), WEFT_DATA_LOSS);
	assert_string_equal(e.text, "step 7 was aborted: the loss is nan");
	wf_step_free(s);

	s = wf_step_new_aborted(UINT64_MAX, WEFT_UNKNOWN, NULL, 0);
	assert_int_equal(wf_status_of(wf_step_error(s, &e)), WEFT_UNKNOWN);
	assert_string_equal(e.text, "step 18446744073709551615 was aborted");
	wf_step_free(s);

	s = wf_step_new_ended(8);
	assert_int_equal(wf_status_of(wf_step_error(s, &e)), WEFT_FAILED_PRECONDITION);
	assert_string_equal(e.text, "step 8 has ended on this node");
	wf_step_free(s);
}

static void a_long_reason_is_cut_so_that_a_sentence_holds_it(void **state)
{
	char why[1000], tail[4];
	struct wf_error e;
	struct wf_step *s;

	(void)state;
	memset(why, 'x', sizeof(why));
	memcpy(&why[WF_STEP_TEXT_BYTES - 3], "end", 3);
	s = wf_step_new_aborted(UINT64_MAX, WEFT_INTERNAL, why, sizeof(why));
	assert_int_equal(strlen(s->text), WF_STEP_TEXT_BYTES);
	wf_step_error(s, &e);
	memcpy(tail, e.text + strlen(e.text) - 3, sizeof(tail));
	assert_string_equal(tail, "end");
	wf_step_free(s);
}

static void the_oldest_is_forgotten_first(void **state)
{
	struct wf_steps steps;

	(void)state;
	wf_steps_init(&steps);
	for (uint64_t i = 0; i < 3 * WF_STEPS_MAX; i++) {
		add(&steps, i * i, 0);
		assert_int_equal(steps.count, WF_MIN(i + 1, (uint64_t)WF_STEPS_MAX));
		assert_non_null(wf_steps_find(&steps, i * i));
		if (i < WF_STEPS_MAX)
			continue;
		assert_null(wf_steps_find(&steps, (i - WF_STEPS_MAX) * (i - WF_STEPS_MAX)));
		assert_non_null(wf_steps_find(&steps,
					      (i - WF_STEPS_MAX + 1) * (i - WF_STEPS_MAX + 1)));
	}
	wf_steps_fini(&steps);
}

static void crowded_is_full_of_young_ones(void **state)
{
	struct wf_steps steps;

	(void)state;
	wf_steps_init(&steps);
	for (uint64_t i = 0; i < WF_STEPS_MAX; i++) {
		assert_false(wf_steps_crowded(&steps, i));
		add(&steps, i, i);
	}
	/* The oldest came at 0, and makes place for one more when it is a minute old. */
	assert_true(wf_steps_crowded(&steps, WF_STEPS_MAX));
	assert_true(wf_steps_crowded(&steps, WF_STEP_YOUNG_NS - 1));
	assert_false(wf_steps_crowded(&steps, WF_STEP_YOUNG_NS));
	add(&steps, WF_STEPS_MAX, WF_STEP_YOUNG_NS);
	assert_true(wf_steps_crowded(&steps, WF_STEP_YOUNG_NS));
	assert_false(wf_steps_crowded(&steps, WF_STEP_YOUNG_NS + 1));
	wf_steps_fini(&steps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_is_known_by_its_number),
		cmocka_unit_test(the_sentence_names_the_step_and_the_reason),
		cmocka_unit_test(a_long_reason_is_cut_so_that_a_sentence_holds_it),
		cmocka_unit_test(the_oldest_is_forgotten_first),
		cmocka_unit_test(crowded_is_full_of_young_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
