/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/sequence.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void frames_are_numbered_from_zero(void **state)
{
	struct wf_sequence s = { 0 };

	(void)state;
	assert_int_equal(wf_sequence_next(&s), 0);
	assert_int_equal(wf_sequence_next(&s), 1);
	assert_int_equal(s.sent, 2);
}

static void an_acknowledgement_confirms_each_frame_once(void **state)
{
	struct wf_sequence s = { .sent = 5 };

	(void)state;
	assert_int_equal(wf_sequence_ack(&s, 3), 3);
	assert_int_equal(wf_sequence_ack(&s, 3), 0);
	assert_int_equal(wf_sequence_ack(&s, 5), 2);
}

static void an_old_acknowledgement_confirms_nothing(void **state)
{
	struct wf_sequence s = { .sent = 9, .acked = 6 };

	(void)state;
	assert_int_equal(wf_sequence_ack(&s, 5), 0);
	assert_int_equal(s.acked, 6);
}

static void confirming_what_was_never_sent_breaks_the_protocol(void **state)
{
	struct wf_sequence s = { .sent = 9, .acked = 6 };

	(void)state;
	assert_int_equal(wf_sequence_ack(&s, 10), -EPROTO);
	assert_int_equal(wf_sequence_ack(&s, 6 + (uint32_t)INT32_MAX), -EPROTO);
	assert_int_equal(s.acked, 6);
}

static void frames_are_received_in_order_and_once(void **state)
{
	struct wf_sequence s = { 0 };

	(void)state;
	assert_int_equal(wf_sequence_receive(&s, 0), 0);
	assert_int_equal(wf_sequence_receive(&s, 0), -EALREADY);
	assert_int_equal(wf_sequence_receive(&s, 2), -ENODATA);
	assert_int_equal(wf_sequence_receive(&s, 1), 0);
	assert_int_equal(wf_sequence_receive(&s, 2), 0);
	assert_int_equal(s.received, 3);
}

static void a_refused_frame_is_not_counted(void **state)
{
	struct wf_sequence s = { .received = 7 };

	(void)state;
	assert_int_equal(wf_sequence_receive(&s, 6), -EALREADY);
	assert_int_equal(wf_sequence_receive(&s, 8), -ENODATA);
	assert_int_equal(s.received, 7);
}

static void numbers_wrap_without_a_seam(void **state)
{
	struct wf_sequence s = { .sent = UINT32_MAX, .acked = UINT32_MAX - 1,
				 .received = UINT32_MAX };

	(void)state;
	assert_int_equal(wf_sequence_next(&s), UINT32_MAX);
	assert_int_equal(wf_sequence_next(&s), 0);
	assert_int_equal(wf_sequence_ack(&s, 2), -EPROTO);
	assert_int_equal(wf_sequence_ack(&s, 1), 3);
	assert_int_equal(wf_sequence_ack(&s, UINT32_MAX), 0);

	assert_int_equal(wf_sequence_receive(&s, 0), -ENODATA);
	assert_int_equal(wf_sequence_receive(&s, UINT32_MAX), 0);
	assert_int_equal(wf_sequence_receive(&s, UINT32_MAX), -EALREADY);
	assert_int_equal(wf_sequence_receive(&s, 0), 0);
	assert_int_equal(s.received, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_are_numbered_from_zero),
		cmocka_unit_test(an_acknowledgement_confirms_each_frame_once),
		cmocka_unit_test(an_old_acknowledgement_confirms_nothing),
		cmocka_unit_test(confirming_what_was_never_sent_breaks_the_protocol),
		cmocka_unit_test(frames_are_received_in_order_and_once),
		cmocka_unit_test(a_refused_frame_is_not_counted),
		cmocka_unit_test(numbers_wrap_without_a_seam),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
