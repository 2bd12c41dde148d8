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
#define SEND_BYTES_MAX 1536

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

/* Bytes for each of OPS operations that are open at once, with keys of their own: begun by @begin. */
static size_t measure(void (*begin)(struct pair *pair, const char *key, size_t bytes,
				    const struct weft_tensor *tensor, struct weft_op **op))
{
	int64_t shape[] = { BODY_BYTES };
	struct weft_tensor tensor = { .device = { WEFT_CPU, 0 }, .ndim = 1,
				      .dtype = { WEFT_UINT, 8, 1 }, .shape = shape };
	char key[32];
	struct pair pair;
	size_t before, each;

	pair_open(&pair, pair_any(), NULL);
	pair_ping(pair.peer);
	tensor.data = calloc(1, BODY_BYTES);
	assert_non_null(tensor.data);
	before = allocated();
	for (unsigned i = 0; i < OPS; i++) {
		int bytes = snprintf(key, sizeof(key), "layer/%u/weights", i);

		begin(&pair, key, (size_t)bytes, &tensor, &ops[i]);
	}
	pair_ping(pair.peer); /* all have begun, and what is sent is offered */
	each = (allocated() - before) / OPS;
	print_message("%zu bytes for each of %d\n", each, OPS);
	end_all();
	free(tensor.data);
	pair_close(&pair);
	return each;
}

static void begin_receive(struct pair *pair, const char *key, size_t bytes,
			  const struct weft_tensor *tensor, struct weft_op **op)
{
	need(!weft_recv(pair->node, pair->peer, 0, key, bytes, tensor, NULL, op));
}

static void begin_send(struct pair *pair, const char *key, size_t bytes,
		       const struct weft_tensor *tensor, struct weft_op **op)
{
	need(!weft_send(pair->peer, 0, key, bytes, tensor, NULL, op));
}

static void an_open_receive_takes_less_than_a_kibibyte(void **state)
{
	(void)state;
	skip_where_malloc_is_another();
	assert_true(measure(begin_receive) < RECV_BYTES_MAX);
}

static void an_open_send_takes_less_than_one_and_a_half_kibibytes(void **state)
{
	(void)state;
	skip_where_malloc_is_another();
	assert_true(measure(begin_send) < SEND_BYTES_MAX);
}

#define TEST(name) cmocka_unit_test_teardown(name, pair_teardown)

int main(int argc, char **argv)
{
	static const struct pair_command commands[] = { { NULL, NULL } };
	const struct CMUnitTest tests[] = {
		TEST(an_open_receive_takes_less_than_a_kibibyte),
		TEST(an_open_send_takes_less_than_one_and_a_half_kibibytes),
	};

	/* All of them are offered at once, which no peer keeps by default. */
	setenv("WEFT_PEER_BYTES", "1G", 1);
	/* A machine that is busy elsewhere may take longer over them than a peer may be silent. */
	setenv("WEFT_LOST", "60s", 1);
	if (pair_is_other(argc, argv, commands))
		return 0;
	cmocka_set_test_filter(argv[1]); /* a test's name, or all */
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
