/* SPDX-License-Identifier: BSD-2-Clause */
/* What an operation takes of the process's memory while it is open: weft(7) says it. */
#include "pair.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define OPS 100000
#define BODY_BYTES (256 * 1024) /* offered, by every provider */
#define RECV_BYTES_MAX 1024
#define SEND_BYTES_MAX 2048

static struct weft_op *ops[OPS];

/* Also of the map of all channels, and of what malloc adds. */
static size_t allocated(void)
{
	struct mallinfo2 now = mallinfo2();

	return now.uordblks + now.hblkhd;
}

static void skip_where_malloc_is_another(void)
{
	void *volatile piece = malloc(OPS);
	size_t with = allocated();

	free(piece);
	if (with >= OPS)
		return;
	print_message("skip: this build has a malloc that does not say what it has given\n");
	skip();
}

static void end_all(void)
{
	for (unsigned i = 0; i < OPS; i++)
		weft_cancel(ops[i]);
	for (unsigned i = 0; i < OPS; i++) {
		need(!weft_wait(ops[i], PAIR_LIMIT_NS));
		weft_op_free(ops[i]);
	}
}

static void an_open_receive_takes_less_than_a_kibibyte(void **state)
{
	int64_t shape[] = { BODY_BYTES };
	struct weft_tensor into = { .device = { WEFT_CPU, 0 }, .ndim = 1,
				    .dtype = { WEFT_UINT, 8, 1 }, .shape = shape };
	char key[32];
	struct pair pair;
	size_t before, each;

	(void)state;
	skip_where_malloc_is_another();
	pair_open(&pair, pair_any(), NULL);
	pair_ping(pair.peer);
	into.data = malloc(BODY_BYTES);
	assert_non_null(into.data);
	before = allocated();
	for (unsigned i = 0; i < OPS; i++) {
		int bytes = snprintf(key, sizeof(key), "layer/%u/weights", i);

		need(!weft_recv(pair.node, pair.peer, 0, key, (size_t)bytes, &into, NULL, &ops[i]));
	}
	pair_ping(pair.peer); /* all have begun */
	each = (allocated() - before) / OPS;
	print_message("%zu bytes for each of %d open receives\n", each, OPS);
	assert_true(each < RECV_BYTES_MAX);
	end_all();
	free(into.data);
	pair_close(&pair);
}

static void an_open_send_takes_less_than_two_kibibytes(void **state)
{
	int64_t shape[] = { BODY_BYTES };
	struct weft_tensor from = { .device = { WEFT_CPU, 0 }, .ndim = 1,
				    .dtype = { WEFT_UINT, 8, 1 }, .shape = shape };
	char key[32];
	struct pair pair;
	size_t before, each;

	(void)state;
	skip_where_malloc_is_another();
	pair_open(&pair, pair_any(), NULL);
	pair_ping(pair.peer);
	from.data = calloc(1, BODY_BYTES);
	assert_non_null(from.data);
	before = allocated();
	for (unsigned i = 0; i < OPS; i++) {
		int bytes = snprintf(key, sizeof(key), "layer/%u/weights", i);

		need(!weft_send(pair.peer, 0, key, (size_t)bytes, &from, NULL, &ops[i]));
	}
	pair_ping(pair.peer); /* all are offered */
	each = (allocated() - before) / OPS;
	print_message("%zu bytes for each of %d open sends\n", each, OPS);
	assert_true(each < SEND_BYTES_MAX);
	end_all();
	free(from.data);
	pair_close(&pair);
}

#define TEST(name) cmocka_unit_test_teardown(name, pair_teardown)

int main(int argc, char **argv)
{
	static const struct pair_command commands[] = { { NULL, NULL } };
	const struct CMUnitTest tests[] = {
		TEST(an_open_receive_takes_less_than_a_kibibyte),
		TEST(an_open_send_takes_less_than_two_kibibytes),
	};

	/* All of them are offered at once, which no peer keeps by default. */
	setenv("WEFT_PEER_BYTES", "1G", 1);
	if (pair_is_other(argc, argv, commands))
		return 0;
	cmocka_set_test_filter(argv[1]); /* a test's name, or all */
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
