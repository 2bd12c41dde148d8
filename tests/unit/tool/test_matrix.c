/* SPDX-License-Identifier: BSD-2-Clause */
/* A matrix of pairs as text, as JSON and as a picture. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/tool/xml.h"
#include "tool/matrix.h"
#include "tool/matrix_json.h"
#include "tool/matrix_svg.h"

/* Text that would end a line, a string and an element, and steer a terminal. */
#define HOSTILE "a\n\"<&>\x1b[2J'\xff"

static const char *const addresses[] = { "10.0.0.1:7000", "10.0.0.2:7000", "10.0.0.3:7000" };

#define MEASURED(ns, rate, fabric, name)                                                           \
	{ .p50_ns = (ns), .p99_ns = 2 * (ns), .bytes_per_s = (rate), .rails = 1,                   \
	  .provider = fabric, .device = name, .way = "pull" }

static struct matrix_cell cells[9] = {
	[1] = MEASURED(4100, 3000000000, "one", "card0"),
	[2] = MEASURED(35000, 80000000, "other", "card1"),
	[3] = MEASURED(4200, 2000000000, "one", "card0"),
	[5] = { .failed = HOSTILE },
	[6] = MEASURED(36000, 90000000, "other", "card1"),
	[7] = MEASURED(4300, 2500000000, "one", "card0"),
};

static const struct matrix matrix = { .size = 3, .launcher = "slurm", .addresses = addresses,
				      .bytes = 1048576, .time_ns = 500000000, .cells = cells };

static char *text;

static const char *printed(void (*print)(const struct matrix *, FILE *), const struct matrix *m)
{
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(out);
	print(m, out);
	assert_int_equal(fclose(out), 0);
	return text;
}

static int drop(void **state)
{
	(void)state;
	free(text);
	text = NULL;
	return 0;
}

static void the_text_has_both_tables_the_worst_pairs_the_ways_and_what_failed(void **state)
{
	(void)state;
	assert_string_equal(printed(matrix_print, &matrix),
			    "\n"
			    "latency: median round trip of 8 bytes, us\n"
			    "from\\to        0          1          2\n"
			    "      0        -        4.1 a     35.0 b\n"
			    "      1      4.2 a        -     failed\n"
			    "      2     36.0 b      4.3 a        -\n"
			    "median 4.3, worst 36.0 from 2 to 0 (b)\n"
			    "\n"
			    "bandwidth: bodies of 1048576 bytes one way, MB/s\n"
			    "from\\to        0          1          2\n"
			    "      0        -     3000.0 a     80.0 b\n"
			    "      1   2000.0 a        -     failed\n"
			    "      2     90.0 b   2500.0 a        -\n"
			    "median 2000.0, worst 80.0 from 0 to 2 (b)\n"
			    "\n"
			    "a: one, card0, pull, 1 rail\n"
			    "b: other, card1, pull, 1 rail\n"
			    "1 to 2 failed: a\\x0a\"<&>\\x1b[2J'\\xff\n");
}

static void the_json_names_every_ordered_pair_once(void **state)
{
	(void)state;
	assert_string_equal(
		printed(matrix_json, &matrix),
		"{\"processes\":3,\"launcher\":\"slurm\",\"bytes\":1048576,\"seconds\":0.500,\"ranks\":["
		"{\"rank\":0,\"address\":\"10.0.0.1:7000\"},{\"rank\":1,\"address\":\"10.0.0.2:7000\"},"
		"{\"rank\":2,\"address\":\"10.0.0.3:7000\"}],\"pairs\":["
		"{\"from\":0,\"to\":1,\"latency_us\":{\"p50\":4.10,\"p99\":8.20},"
		"\"bytes_per_s\":3000000000,"
		"\"path\":{\"provider\":\"one\",\"device\":\"card0\",\"way\":\"pull\",\"rails\":1}},"
		"{\"from\":0,\"to\":2,\"latency_us\":{\"p50\":35.00,\"p99\":70.00},"
		"\"bytes_per_s\":80000000,"
		"\"path\":{\"provider\":\"other\",\"device\":\"card1\",\"way\":\"pull\",\"rails\":1}},"
		"{\"from\":1,\"to\":0,\"latency_us\":{\"p50\":4.20,\"p99\":8.40},"
		"\"bytes_per_s\":2000000000,"
		"\"path\":{\"provider\":\"one\",\"device\":\"card0\",\"way\":\"pull\",\"rails\":1}},"
		"{\"from\":1,\"to\":2,\"failed\":\"a\\u000a\\\"<&>\\u001b[2J'\\ufffd\"},"
		"{\"from\":2,\"to\":0,\"latency_us\":{\"p50\":36.00,\"p99\":72.00},"
		"\"bytes_per_s\":90000000,"
		"\"path\":{\"provider\":\"other\",\"device\":\"card1\",\"way\":\"pull\",\"rails\":1}},"
		"{\"from\":2,\"to\":1,\"latency_us\":{\"p50\":4.30,\"p99\":8.60},"
		"\"bytes_per_s\":2500000000,"
		"\"path\":{\"provider\":\"one\",\"device\":\"card0\",\"way\":\"pull\",\"rails\":1}}]}\n");
}

static void the_picture_is_xml_whatever_a_sentence_has_in_it(void **state)
{
	const char *wrong;

	(void)state;
	wrong = xml_wrong(printed(matrix_svg, &matrix), "svg");
	if (wrong)
		fail_msg("wrong at %.60s", wrong);
	assert_non_null(strstr(text, "<title>1 to 2: failed: a&#xfffd;&#34;&#60;&#38;&#62;&#xfffd;[2J&#39;"
				     "&#xfffd;</title>"));
	assert_non_null(strstr(text, "<title>0 to 1: 4.1 us, 3000.0 MB/s, one, card0, pull, 1 rail"));
}

/* The best pair is pale and the worst dark, of latency and of bandwidth. */
static void the_picture_shows_the_worst_pair_darkest(void **state)
{
	const char *second, *cell;

	(void)state;
	printed(matrix_svg, &matrix);
	second = strstr(text, "bandwidth");
	assert_non_null(second);
	cell = strstr(text, "<title>2 to 0:");
	assert_non_null(strstr(cell, "#253478"));
	assert_true(strstr(cell, "#253478") < strstr(cell, "</g>"));
	cell = strstr(second, "<title>0 to 2:");
	assert_true(strstr(cell, "#253478") && strstr(cell, "#253478") < strstr(cell, "</g>"));
	cell = strstr(second, "<title>0 to 1:");
	assert_true(strstr(cell, "#fff7cc") && strstr(cell, "#fff7cc") < strstr(cell, "</g>"));
}

static void a_matrix_of_failures_and_one_of_many_ranks_are_pictures_too(void **state)
{
	struct matrix m = { .size = 200, .launcher = "slurm", .bytes = 8 };

	(void)state;
	m.cells = calloc((size_t)m.size * m.size, sizeof(*m.cells));
	assert_non_null(m.cells);
	assert_null(xml_wrong(printed(matrix_svg, &m), "svg"));
	drop(NULL);
	for (uint32_t i = 0; i < m.size * m.size; i++)
		strcpy(m.cells[i].failed, "no way");
	assert_null(xml_wrong(printed(matrix_svg, &m), "svg"));
	assert_int_equal(matrix_failed(&m), 200 * 199);
	free(m.cells);
}

static void more_ways_than_letters_have_a_question_mark(void **state)
{
	struct matrix m = { .size = 6, .launcher = "none", .bytes = 8 };
	struct matrix_cell all[36] = { 0 };
	struct matrix_marks marks;

	(void)state;
	m.cells = all;
	for (unsigned i = 0; i < 36; i++)
		snprintf(all[i].device, sizeof(all[i].device), "card%u", i);
	marks = matrix_marks(&m);
	assert_int_equal(marks.count, MATRIX_MARKS_MAX);
	assert_int_equal(matrix_mark(&marks, matrix_at(&m, 0, 1)), 'a');
	assert_int_equal(matrix_mark(&marks, matrix_at(&m, 5, 4)), '?');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			the_text_has_both_tables_the_worst_pairs_the_ways_and_what_failed, drop),
		cmocka_unit_test_teardown(the_json_names_every_ordered_pair_once, drop),
		cmocka_unit_test_teardown(the_picture_is_xml_whatever_a_sentence_has_in_it, drop),
		cmocka_unit_test_teardown(the_picture_shows_the_worst_pair_darkest, drop),
		cmocka_unit_test_teardown(
			a_matrix_of_failures_and_one_of_many_ranks_are_pictures_too, drop),
		cmocka_unit_test_teardown(more_ways_than_letters_have_a_question_mark, drop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
