/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * all_reduce: sums of float32 over all processes of a job, in place, one after the other, for
 * `weft run -n RANKS`.  Rank 0 decides how many, and prints how long each took there.
 */
#include "tests/bench/bench.h"

#include <stdlib.h>
#include <weft/weft.h>

#define WARM_COUNT  10u
#define SAMPLES_MAX 1000000u

static void check(int err, const char *what)
{
	if (err)
		bench_die("%s: %s", what, weft_error());
}

static void wait_for(struct weft_op *op, const char *what)
{
	enum weft_status status;

	check(weft_finish(op, &status), what);
	if (status != WEFT_OK)
		bench_die("%s: %s", what, weft_error());
}

static double sum_up(struct weft_group *group, const struct weft_tensor *numbers)
{
	double start = bench_now();
	struct weft_op *op;

	check(weft_all_reduce(group, numbers, numbers, WEFT_SUM, NULL, &op), "all_reduce");
	wait_for(op, "all_reduce");
	return bench_now() - start;
}

/* Let rank 0 tell the others a number. */
static uint64_t agree(struct weft_group *group, uint64_t number)
{
	int64_t one = 1;
	struct weft_tensor t = { .data = &number, .device = { WEFT_CPU, 0 }, .ndim = 1,
				 .dtype = { WEFT_UINT, 64, 1 }, .shape = &one };
	struct weft_op *op;

	check(weft_group_broadcast(group, 0, &t, NULL, &op), "broadcast");
	wait_for(op, "broadcast");
	return number;
}

int main(int argc, char **argv)
{
	struct bench_options o = {
		.provider = "", .endpoint = "", .bytes = 4096, .seconds = 1, .window = 1
	};
	struct weft_node_options options = WEFT_NODE_OPTIONS_INIT;
	struct weft_group *group;
	struct weft_node *node;
	struct weft_tensor t = { .device = { WEFT_CPU, 0 }, .ndim = 1, .dtype = { WEFT_FLOAT, 32, 1 } };
	double warm = 0, start, *us;
	int64_t count;
	uint64_t rounds;

	bench_options(&o, argc, argv, "weft run -n RANKS all_reduce [-p PROVIDER] [-s BYTES] [-t SECONDS]");
	count = (int64_t)(o.bytes / sizeof(float));
	options.provider = o.provider;
	check(weft_node_open(&options, &node), "node");
	check(weft_join(node, NULL, &group), "join");
	t.data = bench_memory(o.bytes);
	t.shape = &count;
	for (unsigned i = 0; i < WARM_COUNT; i++)
		warm = sum_up(group, &t);
	rounds = (uint64_t)(o.seconds / warm) + 5;
	rounds = agree(group, rounds < SAMPLES_MAX ? rounds : SAMPLES_MAX);
	us = bench_memory(rounds * sizeof(*us));
	start = bench_now();
	for (uint64_t i = 0; i < rounds; i++)
		us[i] = sum_up(group, &t) * 1e6;
	if (!weft_group_rank(group))
		bench_print("all_reduce", &o, us, rounds, rounds, bench_now() - start);
	agree(group, 0); /* nobody leaves before all have done */
	check(weft_group_close(group), "group");
	check(weft_node_close(node), "node");
	free(t.data);
	free(us);
	return 0;
}
