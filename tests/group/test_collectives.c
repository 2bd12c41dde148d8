/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collectives of four nodes of this process: every result is compared with what plain loops give.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <weft/weft.h>

#define RANKS 4
#define LIMIT_NS 60000000000ull
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct weft_node *nodes[RANKS];
static struct weft_group *groups[RANKS];
static uint64_t number; /* of the groups, another for each test */

/* Lengths that are sent whole, cut evenly and not, and in several pieces. */
static const size_t lengths[] = { 0, 1, 5, 1000, 40000, 300001, 900000 };

static void check(int err)
{
	if (err)
		fail_msg("%s", weft_error());
}

static int open_with_pools(uint64_t pool_bytes)
{
	struct weft_node_options options = WEFT_NODE_OPTIONS_INIT;
	const char *addresses[RANKS];

	options.pool_bytes = pool_bytes;
	options.provider = "tcp"; /* shm serves between processes only: test_join.c */
	options.timeout_ns = LIMIT_NS;
	number++;
	for (unsigned i = 0; i < RANKS; i++) {
		check(weft_node_open(&options, &nodes[i]));
		addresses[i] = weft_node_address(nodes[i]);
	}
	for (unsigned i = 0; i < RANKS; i++)
		check(weft_group_open(nodes[i], i, RANKS, addresses, number, &groups[i]));
	return 0;
}

static int open_groups(void **state)
{
	(void)state;
	return open_with_pools(0);
}

static int open_groups_with_small_pools(void **state)
{
	(void)state;
	return open_with_pools(8 << 20);
}

static int close_groups(void **state)
{
	(void)state;
	for (unsigned i = 0; i < RANKS; i++) {
		check(weft_group_close(groups[i]));
		groups[i] = NULL;
		check(weft_node_close(nodes[i]));
		nodes[i] = NULL;
	}
	return 0;
}

static struct weft_tensor tensor_of(void *data, int64_t *count, uint8_t code, uint8_t bits)
{
	return (struct weft_tensor){ .data = data, .device = { WEFT_CPU, 0 }, .ndim = 1,
				     .dtype = { code, bits, 1 }, .shape = count };
}

static void end_well(struct weft_op *ops[RANKS])
{
	for (unsigned i = 0; i < RANKS; i++) {
		enum weft_status status;

		check(weft_finish(ops[i], &status));
		if (status != WEFT_OK)
			fail_msg("rank %u: %s: %s", i, weft_status_name(status), weft_error());
	}
}

/* Floats that have exact sums. */
static float value(unsigned rank, size_t i)
{
	return (float)((i * 7 + rank * 13) % 64);
}

static float *floats(unsigned rank, size_t count)
{
	float *all = malloc((count + 1) * sizeof(*all));

	assert_non_null(all);
	for (size_t i = 0; i < count; i++)
		all[i] = value(rank, i);
	all[count] = -1; /* nobody writes behind the end */
	return all;
}

static void sums_of(size_t length, bool in_place)
{
	float *in[RANKS], *out[RANKS];
	struct weft_op *ops[RANKS];
	int64_t count = (int64_t)length;

	for (unsigned r = 0; r < RANKS; r++) {
		in[r] = floats(r, length);
		out[r] = in_place ? in[r] : floats(9, length);
	}
	for (unsigned r = 0; r < RANKS; r++) {
		struct weft_tensor i = tensor_of(in[r], &count, WEFT_FLOAT, 32);
		struct weft_tensor o = tensor_of(out[r], &count, WEFT_FLOAT, 32);

		check(weft_all_reduce(groups[r], &i, &o, WEFT_SUM, NULL, &ops[r]));
	}
	end_well(ops);
	for (unsigned r = 0; r < RANKS; r++) {
		for (size_t i = 0; i < length; i++) {
			float sum = 0;

			for (unsigned k = 0; k < RANKS; k++)
				sum += value(k, i);
			if (out[r][i] != sum)
				fail_msg("%zu floats, rank %u: number %zu is %g, not %g", length, r, i,
					 (double)out[r][i], (double)sum);
		}
		assert_true(out[r][length] == -1);
		if (!in_place) {
			for (size_t i = 0; i < length; i++)
				assert_true(in[r][i] == value(r, i));
			free(out[r]);
		}
		free(in[r]);
	}
}

static void all_reduce_sums_bodies_of_any_length(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(lengths); i++) {
		sums_of(lengths[i], false);
		sums_of(lengths[i], true);
	}
}

static void reduce_scatter_gives_each_rank_its_part_of_the_average(void **state)
{
	(void)state;
	for (size_t n = 0; n < COUNT(lengths); n++) {
		int64_t part = (int64_t)lengths[n], whole = part * RANKS;
		float *in[RANKS], *out[RANKS];
		struct weft_op *ops[RANKS];

		for (unsigned r = 0; r < RANKS; r++) {
			struct weft_tensor i, o;

			in[r] = floats(r, (size_t)whole);
			out[r] = floats(9, (size_t)part);
			i = tensor_of(in[r], &whole, WEFT_FLOAT, 32);
			o = tensor_of(out[r], &part, WEFT_FLOAT, 32);
			check(weft_reduce_scatter(groups[r], &i, &o, WEFT_AVERAGE, NULL, &ops[r]));
		}
		end_well(ops);
		for (unsigned r = 0; r < RANKS; r++) {
			for (size_t i = 0; i < (size_t)part; i++) {
				size_t at = r * (size_t)part + i;

				assert_true(out[r][i] == (value(0, at) + value(1, at) + value(2, at) +
							  value(3, at)) / RANKS);
			}
			free(in[r]);
			free(out[r]);
		}
	}
}

static void all_gather_and_all_to_all_put_parts_by_rank(void **state)
{
	(void)state;
	for (size_t n = 0; n < COUNT(lengths); n++) {
		int64_t part = (int64_t)lengths[n], whole = part * RANKS;
		float *all[RANKS], *one[RANKS], *many[RANKS];
		struct weft_op *ops[RANKS];

		for (unsigned r = 0; r < RANKS; r++) {
			all[r] = floats(9, (size_t)whole);
			one[r] = floats(r, (size_t)part);
			many[r] = floats(r, (size_t)whole);
		}
		for (unsigned r = 0; r < RANKS; r++) {
			struct weft_tensor i = tensor_of(one[r], &part, WEFT_FLOAT, 32);
			struct weft_tensor o = tensor_of(all[r], &whole, WEFT_FLOAT, 32);

			check(weft_all_gather(groups[r], &i, &o, NULL, &ops[r]));
		}
		end_well(ops);
		for (unsigned r = 0; r < RANKS; r++)
			for (size_t i = 0; i < (size_t)whole; i++)
				assert_true(all[r][i] == value((unsigned)(i / (size_t)part), i % (size_t)part));
		for (unsigned r = 0; r < RANKS; r++) {
			struct weft_tensor i = tensor_of(many[r], &whole, WEFT_FLOAT, 32);
			struct weft_tensor o = tensor_of(all[r], &whole, WEFT_FLOAT, 32);

			check(weft_all_to_all(groups[r], &i, &o, NULL, &ops[r]));
		}
		end_well(ops);
		for (unsigned r = 0; r < RANKS; r++)
			for (size_t i = 0; i < (size_t)whole; i++) {
				size_t from = i / (size_t)part;

				assert_true(all[r][i] == value((unsigned)from,
							       r * (size_t)part + i % (size_t)part));
			}
		for (unsigned r = 0; r < RANKS; r++) {
			free(all[r]);
			free(one[r]);
			free(many[r]);
		}
	}
}

/* Reduce, gather, scatter and broadcast, with each rank as their root once. */
static void every_rank_may_be_the_root(void **state)
{
	(void)state;
	for (unsigned root = 0; root < RANKS; root++) {
		int64_t part = 200000 + root, whole = part * RANKS;
		float *one[RANKS], *all = floats(9, (size_t)whole);
		struct weft_tensor total = tensor_of(all, &whole, WEFT_FLOAT, 32), t[RANKS];
		struct weft_op *ops[RANKS];

		for (unsigned r = 0; r < RANKS; r++) {
			one[r] = floats(r, (size_t)part);
			t[r] = tensor_of(one[r], &part, WEFT_FLOAT, 32);
		}
		for (unsigned r = 0; r < RANKS; r++)
			check(weft_gather(groups[r], root, &t[r], r == root ? &total : NULL, NULL, &ops[r]));
		end_well(ops);
		for (size_t i = 0; i < (size_t)whole; i++)
			assert_true(all[i] == value((unsigned)(i / (size_t)part), i % (size_t)part));
		for (unsigned r = 0; r < RANKS; r++)
			check(weft_reduce(groups[r], root, &t[r], r == root ? &t[r] : NULL, WEFT_MAX, NULL,
					  &ops[r]));
		end_well(ops);
		for (unsigned r = 0; r < RANKS; r++)
			for (size_t i = 0; i < (size_t)part; i++) {
				float most = value(r, i);

				for (unsigned k = 0; k < RANKS && r == root; k++)
					most = value(k, i) > most ? value(k, i) : most;
				assert_true(one[r][i] == most);
			}
		for (unsigned r = 0; r < RANKS; r++)
			check(weft_scatter(groups[r], root, r == root ? &total : NULL, &t[r], NULL, &ops[r]));
		end_well(ops);
		for (unsigned r = 0; r < RANKS; r++)
			assert_memory_equal(one[r], all + r * (size_t)part, (size_t)part * sizeof(float));
		for (unsigned r = 0; r < RANKS; r++)
			check(weft_group_broadcast(groups[r], root, &t[r], NULL, &ops[r]));
		end_well(ops);
		for (unsigned r = 0; r < RANKS; r++)
			assert_memory_equal(one[r], one[root], (size_t)part * sizeof(float));
		for (unsigned r = 0; r < RANKS; r++)
			free(one[r]);
		free(all);
	}
}

static void a_barrier_ends_when_the_last_has_come(void **state)
{
	struct weft_op *ops[RANKS];

	(void)state;
	for (unsigned r = 0; r + 1 < RANKS; r++)
		check(weft_barrier(groups[r], NULL, &ops[r]));
	for (unsigned r = 0; r + 1 < RANKS; r++)
		assert_int_equal(weft_wait(ops[r], 20000000), -ETIMEDOUT);
	check(weft_barrier(groups[RANKS - 1], NULL, &ops[RANKS - 1]));
	end_well(ops);
}

static void collectives_that_are_under_way_together_do_not_mix(void **state)
{
	static float numbers[50][RANKS][300];
	static struct weft_op *ops[50][RANKS];
	int64_t count = 300;

	(void)state;
	for (unsigned n = 0; n < 50; n++)
		for (unsigned r = 0; r < RANKS; r++) {
			struct weft_tensor t = tensor_of(numbers[n][r], &count, WEFT_FLOAT, 32);

			for (size_t i = 0; i < (size_t)count; i++)
				numbers[n][r][i] = (float)n;
			check(weft_all_reduce(groups[r], &t, &t, WEFT_SUM, NULL, &ops[n][r]));
		}
	for (unsigned n = 50; n--;)
		end_well(ops[n]);
	for (unsigned n = 0; n < 50; n++)
		for (unsigned r = 0; r < RANKS; r++)
			for (size_t i = 0; i < (size_t)count; i++)
				assert_true(numbers[n][r][i] == 4 * (float)n);
}

/* Parts of many pieces are on their way when the last process begins, and they are not kept in pools. */
static void bodies_larger_than_pools_are_summed_with_a_process_that_is_late(void **state)
{
	static float numbers[3][RANKS][3 << 20];
	struct weft_op *ops[3][RANKS];
	int64_t count = 3 << 20;

	(void)state;
	for (unsigned r = 0; r < RANKS; r++) {
		for (unsigned n = 0; n < 3; n++) {
			struct weft_tensor t = tensor_of(numbers[n][r], &count, WEFT_FLOAT, 32);

			for (size_t i = 0; i < (size_t)count; i++)
				numbers[n][r][i] = value(r, i + n);
			check(n < 2 ? weft_all_reduce(groups[r], &t, &t, WEFT_SUM, NULL, &ops[n][r])
				    : weft_reduce(groups[r], 0, &t, &t, WEFT_SUM, NULL, &ops[n][r]));
		}
		if (r == RANKS - 2)
			assert_int_equal(weft_wait(ops[0][0], 200000000), -ETIMEDOUT);
	}
	for (unsigned n = 0; n < 3; n++)
		end_well(ops[n]);
	for (unsigned n = 0; n < 3; n++)
		for (size_t i = 0; i < (size_t)count; i++)
			assert_true(numbers[n][0][i] == value(0, i + n) + value(1, i + n) +
							value(2, i + n) + value(3, i + n));
}

/* Failures. */

static void ends_with(struct weft_op *op, enum weft_status expected, const char *sentence)
{
	enum weft_status status;

	check(weft_finish(op, &status));
	if (status != expected || !strstr(weft_error(), sentence))
		fail_msg("expected %s and \"%s\": %s: %s", weft_status_name(expected), sentence,
			 weft_status_name(status), weft_error());
}

static void a_rank_that_is_late_fails_the_group_and_is_named(void **state)
{
	struct weft_op_options soon = WEFT_OP_OPTIONS_INIT;
	struct weft_op *ops[RANKS];
	float mine = 1;
	int64_t one = 1;
	struct weft_tensor t = tensor_of(&mine, &one, WEFT_FLOAT, 32);

	(void)state;
	/* All know each other, so that the short barrier waits for rank 0 alone. */
	for (unsigned r = 0; r < RANKS; r++)
		check(weft_barrier(groups[r], NULL, &ops[r]));
	end_well(ops);
	soon.timeout_ns = 300000000;
	for (unsigned r = 1; r < RANKS; r++)
		check(weft_barrier(groups[r], r == 1 ? &soon : NULL, &ops[r]));
	ends_with(ops[1], WEFT_DEADLINE_EXCEEDED, "not all has come from rank 0");
	for (unsigned r = 2; r < RANKS; r++)
		ends_with(ops[r], WEFT_DEADLINE_EXCEEDED, "rank 0");
	/* The late one hears of it, and nothing of this group goes on. */
	check(weft_all_reduce(groups[0], &t, &t, WEFT_SUM, NULL, &ops[0]));
	ends_with(ops[0], WEFT_DEADLINE_EXCEEDED, "rank 0");
	check(weft_barrier(groups[2], NULL, &ops[2]));
	ends_with(ops[2], WEFT_DEADLINE_EXCEEDED, "rank 0");
}

static void ranks_that_do_not_take_what_is_sent_are_named(void **state)
{
	static float numbers[100000];
	struct weft_op_options soon = WEFT_OP_OPTIONS_INIT;
	struct weft_op *op;
	int64_t count = 100000;
	struct weft_tensor t = tensor_of(numbers, &count, WEFT_FLOAT, 32);

	(void)state;
	soon.timeout_ns = 300000000;
	check(weft_group_broadcast(groups[3], 3, &t, &soon, &op));
	ends_with(op, WEFT_DEADLINE_EXCEEDED, "not all that was sent is taken by ranks 0, 1 and 2");
}

static void tensors_of_different_sizes_fail_the_group(void **state)
{
	struct weft_op *ops[RANKS];
	float numbers[RANKS][20] = { { 0 } };
	int64_t count = 20, fewer = 19;
	enum weft_status status;

	(void)state;
	for (unsigned r = 0; r < RANKS; r++) {
		struct weft_tensor t = tensor_of(numbers[r], r == 2 ? &fewer : &count, WEFT_FLOAT, 32);

		check(weft_all_reduce(groups[r], &t, &t, WEFT_SUM, NULL, &ops[r]));
	}
	for (unsigned r = 0; r < RANKS; r++) {
		check(weft_finish(ops[r], &status));
		assert_int_equal(status, WEFT_INVALID_ARGUMENT);
		assert_non_null(strstr(weft_error(), "has begun another collective, or with tensors of "
						     "another size"));
	}
}

/* Rank 3 sends @lie to rank 0 in the place of its part of an all_reduce. */
static void lie_to_rank_0(const struct weft_tensor *lie, unsigned flags)
{
	struct weft_send_options options = WEFT_SEND_OPTIONS_INIT;
	const uint32_t key[] = { 0, 0 };
	struct weft_op *op, *sent;
	struct weft_peer *peer;
	float numbers[5] = { 0 };
	int64_t count = 5;
	struct weft_tensor t = tensor_of(numbers, &count, WEFT_FLOAT, 32);

	options.flags = flags;
	check(weft_group_peer(groups[3], 0, &peer));
	check(weft_send(peer, number, key, sizeof(key), lie, &options, &sent));
	check(weft_all_reduce(groups[0], &t, &t, WEFT_SUM, NULL, &op));
	ends_with(op, WEFT_INVALID_ARGUMENT, "rank 3 has begun another collective, or with tensors of "
					     "another size");
	weft_op_free(sent);
}

static void a_part_of_other_elements_is_refused(void **state)
{
	int64_t shape[] = { 20, 1 };
	float many[20] = { 0 };
	struct weft_tensor lie = tensor_of(many, shape, WEFT_FLOAT, 32);

	(void)state;
	lie.ndim = 2;
	lie_to_rank_0(&lie, 0);
}

static void a_part_that_is_dead_is_refused(void **state)
{
	int64_t shape[] = { 20, 1 };
	struct weft_tensor lie = tensor_of(NULL, shape, WEFT_UINT, 8);

	(void)state;
	lie.ndim = 2;
	lie_to_rank_0(&lie, WEFT_DEAD);
}

static void a_cancel_in_one_process_fails_all(void **state)
{
	struct weft_op *ops[RANKS];

	(void)state;
	for (unsigned r = 1; r < RANKS; r++)
		check(weft_barrier(groups[r], NULL, &ops[r]));
	weft_cancel(ops[3]);
	for (unsigned r = 1; r < RANKS; r++)
		ends_with(ops[r], WEFT_CANCELLED, "it was cancelled");
}

/* A node remembers 4096 aborts, of which those of the group's own step are one. */
static void a_group_that_has_failed_stays_so_when_its_node_forgets_the_abort(void **state)
{
	struct weft_op_options soon = WEFT_OP_OPTIONS_INIT;
	struct weft_op *op;

	(void)state;
	check(weft_barrier(groups[0], NULL, &op));
	weft_cancel(op);
	ends_with(op, WEFT_CANCELLED, "it was cancelled");
	for (uint64_t i = 0; i < 5000; i++)
		check(weft_step_abort(nodes[0], 1000000 + i, WEFT_ABORTED, "another step"));
	soon.timeout_ns = 2000000000;
	check(weft_barrier(groups[0], &soon, &op));
	ends_with(op, WEFT_CANCELLED, "barrier number 0 of 4 processes: it was cancelled");
}

static void a_node_that_closes_fails_the_group(void **state)
{
	struct weft_op *ops[RANKS];
	enum weft_status status;

	(void)state;
	for (unsigned r = 0; r + 1 < RANKS; r++)
		check(weft_barrier(groups[r], NULL, &ops[r]));
	for (unsigned r = 0; r + 1 < RANKS; r++)
		assert_int_equal(weft_wait(ops[r], 100000000), -ETIMEDOUT);
	check(weft_group_close(groups[3]));
	groups[3] = NULL;
	check(weft_node_close(nodes[3]));
	nodes[3] = NULL;
	for (unsigned r = 0; r + 1 < RANKS; r++) {
		check(weft_finish(ops[r], &status));
		assert_int_equal(status, WEFT_UNAVAILABLE);
	}
}

/* Every collective, when one process is missing, or has tensors of another length. */

#define KINDS 9
#define PART 50000 /* floats, too long to be sent whole */

static float parts[RANKS][PART + 1];
static float wholes[RANKS][RANKS * (PART + 1)], exchanged[RANKS][RANKS * (PART + 1)];

/* Begin collective @kind in @rank, whose parts have @length floats; the root is rank 3. */
static struct weft_op *begin(unsigned kind, unsigned rank, int64_t length, uint64_t timeout_ns)
{
	struct weft_op_options o = WEFT_OP_OPTIONS_INIT;
	struct weft_group *g = groups[rank];
	int64_t whole_length = length * RANKS;
	struct weft_tensor part = tensor_of(parts[rank], &length, WEFT_FLOAT, 32);
	struct weft_tensor whole = tensor_of(wholes[rank], &whole_length, WEFT_FLOAT, 32);
	struct weft_tensor other = tensor_of(wholes[rank], &length, WEFT_FLOAT, 32);
	struct weft_tensor spread = tensor_of(exchanged[rank], &whole_length, WEFT_FLOAT, 32);
	struct weft_op *op;
	int err = 0;

	o.timeout_ns = timeout_ns;
	switch (kind) {
	case 0: err = weft_all_reduce(g, &part, &part, WEFT_SUM, &o, &op); break;
	case 1: err = weft_reduce(g, 3, &part, &other, WEFT_SUM, &o, &op); break;
	case 2: err = weft_reduce_scatter(g, &whole, &part, WEFT_SUM, &o, &op); break;
	case 3: err = weft_all_gather(g, &part, &whole, &o, &op); break;
	case 4: err = weft_gather(g, 3, &part, &whole, &o, &op); break;
	case 5: err = weft_scatter(g, 3, &whole, &part, &o, &op); break;
	case 6: err = weft_all_to_all(g, &whole, &spread, &o, &op); break;
	case 7: err = weft_group_broadcast(g, 3, &part, &o, &op); break;
	default: err = weft_barrier(g, &o, &op);
	}
	check(err);
	return op;
}

/*
 * All of @count operations end.  Those that need nothing of the process at fault may end well; at
 * least one fails, and each that does with @expected.
 */
static void some_fail(struct weft_op **ops, unsigned count, enum weft_status expected)
{
	unsigned failed = 0;

	for (unsigned r = 0; r < count; r++) {
		enum weft_status status;

		check(weft_finish(ops[r], &status));
		if (status != WEFT_OK && status != expected)
			fail_msg("rank %u: %s: %s", r, weft_status_name(status), weft_error());
		failed += status != WEFT_OK;
	}
	assert_true(failed);
}

/* Have groups of their own for each kind of collective. */
static void for_every_collective(void (*try)(unsigned kind))
{
	for (unsigned kind = 0; kind < KINDS; kind++) {
		open_groups(NULL);
		try(kind);
		close_groups(NULL);
	}
}

/* Rank 3 is gone for those who know it: all have met. */
static void begin_and_close_rank_3(unsigned kind)
{
	struct weft_op *ops[RANKS];

	for (unsigned r = 0; r < RANKS; r++)
		ops[r] = begin(6, r, PART, 0);
	end_well(ops);
	for (unsigned r = 0; r < RANKS - 1; r++)
		ops[r] = begin(kind, r, PART, 0);
	check(weft_group_close(groups[3]));
	groups[3] = NULL;
	check(weft_node_close(nodes[3]));
	nodes[3] = NULL;
	some_fail(ops, RANKS - 1, WEFT_UNAVAILABLE);
}

static void every_collective_fails_when_a_process_leaves(void **state)
{
	(void)state;
	for_every_collective(begin_and_close_rank_3);
}

static void begin_without_rank_3(unsigned kind)
{
	struct weft_op *ops[RANKS - 1];

	for (unsigned r = 0; r < RANKS - 1; r++)
		ops[r] = begin(kind, r, PART, 300000000);
	some_fail(ops, RANKS - 1, WEFT_DEADLINE_EXCEEDED);
}

static void every_collective_fails_when_a_process_is_late(void **state)
{
	(void)state;
	for_every_collective(begin_without_rank_3);
}

static void begin_with_other_tensors_in_rank_3(unsigned kind)
{
	struct weft_op *ops[RANKS];

	if (kind == KINDS - 1) /* a barrier has no tensors */
		return;
	for (unsigned r = 0; r < RANKS; r++)
		ops[r] = begin(kind, r, r == 3 ? PART + 1 : PART, 0);
	some_fail(ops, RANKS, WEFT_INVALID_ARGUMENT);
}

static void every_collective_fails_when_one_process_has_tensors_of_another_length(void **state)
{
	(void)state;
	for_every_collective(begin_with_other_tensors_in_rank_3);
}

static void a_collective_keeps_the_terms_it_was_given(void **state)
{
	struct weft_op_options strict = WEFT_OP_OPTIONS_INIT;
	float numbers[RANKS] = { 0 };
	int64_t one = 1;
	struct weft_op *ops[RANKS];

	(void)state;
	strict.provider = "none";
	for (unsigned r = 0; r < RANKS; r++) {
		struct weft_tensor t = tensor_of(&numbers[r], &one, WEFT_FLOAT, 32);

		check(weft_all_reduce(groups[r], &t, &t, WEFT_SUM, &strict, &ops[r]));
	}
	some_fail(ops, RANKS, WEFT_FAILED_PRECONDITION);
}

static void tensors_that_can_not_be_combined_are_refused(void **state)
{
	float numbers[8] = { 0 };
	int64_t two = 2, eight = 8, stride = 2, most = INT64_MAX;
	struct weft_tensor huge = tensor_of(numbers, &most, WEFT_FLOAT, 32);
	struct weft_tensor small = tensor_of(numbers, &two, WEFT_FLOAT, 32);
	struct weft_tensor large = tensor_of(numbers, &eight, WEFT_FLOAT, 32);
	struct weft_tensor whole = tensor_of(numbers, &two, WEFT_INT, 32);
	struct weft_tensor odd = small, other = small;
	struct weft_op *op;

	(void)state;
	odd.strides = &stride;
	assert_int_equal(weft_all_reduce(groups[0], &small, &large, WEFT_SUM, NULL, &op), -EINVAL);
	assert_int_equal(weft_all_reduce(groups[0], &small, &whole, WEFT_SUM, NULL, &op), -EINVAL);
	assert_int_equal(weft_all_reduce(groups[0], &odd, &odd, WEFT_SUM, NULL, &op), -EINVAL);
	assert_int_equal(weft_all_reduce(groups[0], &huge, &huge, WEFT_SUM, NULL, &op), -EOVERFLOW);
	assert_int_equal(weft_all_reduce(groups[0], &small, &small, WEFT_BIT_OR, NULL, &op), -EINVAL);
	assert_int_equal(weft_all_reduce(groups[0], &whole, &whole, WEFT_AVERAGE, NULL, &op), -EINVAL);
	assert_int_equal(weft_all_reduce(groups[0], &small, &small, (enum weft_reduction)8, NULL, &op),
			 -EINVAL);
	assert_int_equal(weft_reduce_scatter(groups[0], &small, &large, WEFT_SUM, NULL, &op), -EINVAL);
	assert_int_equal(weft_all_gather(groups[0], &large, &small, NULL, &op), -EINVAL);
	assert_int_equal(weft_all_to_all(groups[0], &large, &large, NULL, &op), -EINVAL);
	/* The bytes of two elements would go to four, but no element does. */
	other.data = numbers + 4;
	assert_int_equal(weft_all_to_all(groups[0], &small, &other, NULL, &op), -EINVAL);
	assert_non_null(strstr(weft_error(), "do not go to"));
	assert_int_equal(weft_gather(groups[0], 4, &small, &large, NULL, &op), -EINVAL);
	assert_int_equal(weft_scatter(groups[0], 0, &large, NULL, NULL, &op), -EINVAL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_groups, close_groups)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_reduce_sums_bodies_of_any_length),
		TEST(reduce_scatter_gives_each_rank_its_part_of_the_average),
		TEST(a_collective_keeps_the_terms_it_was_given),
		TEST(all_gather_and_all_to_all_put_parts_by_rank),
		TEST(every_rank_may_be_the_root),
		TEST(a_barrier_ends_when_the_last_has_come),
		TEST(collectives_that_are_under_way_together_do_not_mix),
		cmocka_unit_test_setup_teardown(
			bodies_larger_than_pools_are_summed_with_a_process_that_is_late,
			open_groups_with_small_pools, close_groups),
		TEST(a_rank_that_is_late_fails_the_group_and_is_named),
		TEST(ranks_that_do_not_take_what_is_sent_are_named),
		TEST(tensors_of_different_sizes_fail_the_group),
		TEST(a_part_of_other_elements_is_refused),
		TEST(a_part_that_is_dead_is_refused),
		TEST(a_cancel_in_one_process_fails_all),
		TEST(a_group_that_has_failed_stays_so_when_its_node_forgets_the_abort),
		TEST(a_node_that_closes_fails_the_group),
		cmocka_unit_test(every_collective_fails_when_a_process_leaves),
		cmocka_unit_test(every_collective_fails_when_a_process_is_late),
		cmocka_unit_test(
			every_collective_fails_when_one_process_has_tensors_of_another_length),
		TEST(tensors_that_can_not_be_combined_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
