/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/status.h"
#include "util/base.h"

#include <errno.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* gRPC's list, in the order of its numbers. */
static const char *const names[] = {
	"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
	"ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
	"ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS",
	"UNAUTHENTICATED",
};

static void names_are_those_of_grpc(void **state)
{
	(void)state;
	assert_int_equal(WF_COUNT(names), WEFT_UNAUTHENTICATED + 1);
	for (size_t i = 0; i < WF_COUNT(names); i++)
		assert_string_equal(wf_status_name((enum weft_status)i), names[i]);
	assert_string_equal(wf_status_name((enum weft_status)WF_COUNT(names)), "?");
	assert_string_equal(wf_status_name((enum weft_status)255), "?");
	assert_string_equal(wf_status_name((enum weft_status)-1), "?");
}

/* A status that comes from a peer is carried as a code, and must come out again. */
static void every_status_survives_as_a_code(void **state)
{
	(void)state;
	assert_int_equal(wf_status_code(WEFT_OK), 0);
	for (int i = 1; i <= WEFT_UNAUTHENTICATED; i++) {
		int code = wf_status_code((enum weft_status)i);

		assert_true(code < 0);
		assert_int_equal(wf_status_of(code), i);
	}
}

static void codes_have_the_status_that_fits(void **state)
{
	static const struct {
		int code;
		enum weft_status status;
	} rows[] = {
		{ 0, WEFT_OK },
		{ -ECANCELED, WEFT_CANCELLED },
		{ -ETIMEDOUT, WEFT_DEADLINE_EXCEEDED },
		{ -ENOMEM, WEFT_RESOURCE_EXHAUSTED },
		{ -ENOBUFS, WEFT_RESOURCE_EXHAUSTED },
		{ -EBADFD, WEFT_FAILED_PRECONDITION },
		{ -EPROTO, WEFT_INTERNAL },
		{ -EBADMSG, WEFT_INTERNAL },
		{ -ECONNRESET, WEFT_UNAVAILABLE },
		{ -ECONNREFUSED, WEFT_UNAVAILABLE },
		{ -EHOSTUNREACH, WEFT_UNAVAILABLE },
		{ -EHOSTDOWN, WEFT_UNAVAILABLE },
		{ -ESHUTDOWN, WEFT_UNAVAILABLE },
		{ -EIO, WEFT_DATA_LOSS },
	};

	(void)state;
	for (size_t i = 0; i < WF_COUNT(rows); i++)
		assert_int_equal(wf_status_of(rows[i].code), rows[i].status);
}

static void an_unknown_status_is_unknown(void **state)
{
	(void)state;
	assert_int_equal(wf_status_of(-ENOTTY), WEFT_UNKNOWN);
	assert_int_equal(wf_status_of(-270), WEFT_UNKNOWN);
	assert_int_equal(wf_status_of(1), WEFT_UNKNOWN);
	assert_int_equal(wf_status_of(wf_status_code((enum weft_status)99)), WEFT_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_those_of_grpc),
		cmocka_unit_test(every_status_survives_as_a_code),
		cmocka_unit_test(codes_have_the_status_that_fits),
		cmocka_unit_test(an_unknown_status_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
