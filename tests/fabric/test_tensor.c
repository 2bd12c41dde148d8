/* SPDX-License-Identifier: BSD-2-Clause */
/* Tensors between processes, over every provider that this host has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "pair.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

/* Matching. */

static void either_side_may_come_first(void **state)
{
	/* One that travels in a frame, and one that is fetched. */
	static const size_t counts[] = { 1000, 1000 * 1000 };
	struct weft_op *op;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		for (size_t i = 0; i < PAIR_COUNT(counts); i++) {
			pair_do(&pair.other, "send 1 k %zu 7", counts[i]);
			pair_do(&pair.other, "ping");
			op = pair_recv(pair.node, NULL, 1, "k");
			pair_received(op, counts[i], 7);
			pair_do(&pair.other, "finish");

			op = pair_recv(pair.node, NULL, 2, "k");
			pair_ping(pair.peer);
			assert_false(weft_op_ended(op));
			pair_do(&pair.other, "send 2 k %zu 8", counts[i]);
			pair_received(op, counts[i], 8);
			pair_do(&pair.other, "finish");
		}
		pair_close(&pair);
	}
}

static void a_receive_may_name_its_peer(void **state)
{
	static const size_t counts[] = { 100, 300 * 1000 };
	struct pair_other second;
	struct weft_op *named, *any;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		pair_start(&second, at, NULL, pair.node);
		pair_ping(pair.peer);
		for (size_t i = 0; i < PAIR_COUNT(counts); i++) {
			pair_do(&pair.other, "send 1 k %zu 1", counts[i]);
			pair_do(&pair.other, "ping");
			named = pair_recv(pair.node, second.peer, 1, "k");
			any = pair_recv(pair.node, NULL, 1, "k");
			pair_ended(any, WEFT_OK);
			assert_ptr_equal(weft_op_peer(any), pair.peer);
			pair_received(any, counts[i], 1);
			assert_false(weft_op_ended(named));

			pair_do(&second, "send 1 k %zu 2", counts[i]);
			pair_ended(named, WEFT_OK);
			assert_ptr_equal(weft_op_peer(named), second.peer);
			pair_received(named, counts[i], 2);
			pair_do(&pair.other, "finish");
			pair_do(&second, "finish");
		}
		pair_end(&second);
		pair_close(&pair);
	}
}

static void a_peer_may_be_named_before_it_exists(void **state)
{
	struct weft_node_options options;
	struct pair_other other;
	struct weft_node *node;
	struct weft_peer *peer;
	struct pair_send send;
	struct weft_op *recv;
	char address[32];

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		options = pair_options(at);
		assert_int_equal(weft_node_open(&options, &node), 0);
		pair_free_address(address);
		assert_int_equal(weft_peer_open(node, address, &peer), 0);
		assert_string_equal(weft_peer_name(peer), address);
		recv = pair_recv(node, peer, 1, "there");
		send = pair_send(peer, 1, "here", 100 * 1000, 2);
		pair_sleep_ms(50);
		assert_false(weft_op_ended(recv) || weft_op_ended(send.op));

		pair_start(&other, at, address, node);
		assert_ptr_equal(other.peer, peer);
		pair_do(&other, "recv 1 here 100000 2");
		pair_do(&other, "send 1 there 1000 1");
		pair_received(recv, 1000, 1);
		pair_sent(&send);
		pair_do(&other, "finish");
		assert_string_not_equal(weft_peer_name(peer), address);
		weft_peer_close(peer);
		pair_end(&other);
		assert_int_equal(weft_node_close(node), 0);
	}
}

/* Sizes that go by every way, the large ones where the small could overtake them. */
static size_t mixed(unsigned i)
{
	static const size_t counts[] = { 200000, 8, 30000, 0, 5000, 100000, 1, 66000 };

	return counts[i % PAIR_COUNT(counts)];
}

static void a_channel_keeps_its_order(void **state)
{
	enum { COUNT = 64 };
	struct weft_op *ops[COUNT];
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		pair_ping(pair.peer);
		for (unsigned i = 0; i < COUNT / 2; i++)
			ops[i] = pair_recv(pair.node, NULL, 1, "fifo");
		for (unsigned i = 0; i < COUNT; i++)
			pair_do(&pair.other, "send 1 fifo %zu %u", mixed(i), i);
		for (unsigned i = COUNT / 2; i < COUNT; i++)
			ops[i] = pair_recv(pair.node, i % 2 ? pair.peer : NULL, 1, "fifo");
		for (unsigned i = 0; i < COUNT; i++)
			pair_received(ops[i], mixed(i), i);
		pair_do(&pair.other, "finish");
		pair_close(&pair);
	}
}

static void steps_and_keys_do_not_mix(void **state)
{
	static const uint64_t steps[] = { 0, 1, 256, UINT64_MAX };
	static const char *const keys[] = { "w", "w/b", "w/", "b" };
	struct weft_op *ops[PAIR_COUNT(steps)][PAIR_COUNT(keys)];
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		for (size_t s = 0; s < PAIR_COUNT(steps); s++)
			for (size_t k = 0; k < PAIR_COUNT(keys); k += 2)
				ops[s][k] = pair_recv(pair.node, NULL, steps[s], keys[k]);
		for (size_t k = 0; k < PAIR_COUNT(keys); k++)
			for (size_t s = PAIR_COUNT(steps); s-- > 0;)
				pair_do(&pair.other, "send %" PRIu64 " %s %zu %zu", steps[s],
					keys[k], mixed((unsigned)(s + k)), s * 10 + k);
		for (size_t s = 0; s < PAIR_COUNT(steps); s++)
			for (size_t k = 1; k < PAIR_COUNT(keys); k += 2)
				ops[s][k] = pair_recv(pair.node, NULL, steps[s], keys[k]);
		for (size_t s = 0; s < PAIR_COUNT(steps); s++)
			for (size_t k = 0; k < PAIR_COUNT(keys); k++)
				pair_received(ops[s][k], mixed((unsigned)(s + k)), s * 10 + k);
		pair_do(&pair.other, "finish");
		pair_close(&pair);
	}
}

static void do_long_key(struct pair *side, char *arguments)
{
	int64_t count = 10;
	char *key = malloc(WEFT_KEY_BYTES_MAX + 1), bytes[10];
	struct weft_tensor tensor = pair_tensor(bytes, &count);
	struct weft_op *op;

	(void)arguments;
	pair_fill(bytes, sizeof(bytes), 3);
	pair_fill(key, WEFT_KEY_BYTES_MAX + 1, 4);
	need(weft_send(side->peer, 1, key, WEFT_KEY_BYTES_MAX + 1, &tensor, NULL, &op) == -EINVAL);
	need(!weft_send(side->peer, 1, key, WEFT_KEY_BYTES_MAX, &tensor, NULL, &op));
	pair_ended(op, WEFT_OK);
	weft_op_free(op);
	free(key);
}

static void a_key_may_have_65535_bytes_of_any_value(void **state)
{
	struct weft_op *op, *other;
	struct pair pair;
	char *key;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		key = malloc(WEFT_KEY_BYTES_MAX + 1);
		pair_fill(key, WEFT_KEY_BYTES_MAX, 4);
		assert_int_equal(weft_recv(pair.node, NULL, 1, key, WEFT_KEY_BYTES_MAX + 1, NULL,
					   NULL, &op),
				 -EINVAL);
		key[WEFT_KEY_BYTES_MAX - 1] ^= 1;
		assert_int_equal(weft_recv(pair.node, NULL, 1, key, WEFT_KEY_BYTES_MAX, NULL, NULL,
					   &other),
				 0);
		key[WEFT_KEY_BYTES_MAX - 1] ^= 1;
		assert_int_equal(weft_recv(pair.node, NULL, 1, key, WEFT_KEY_BYTES_MAX, NULL, NULL,
					   &op),
				 0);
		free(key);
		pair_do(&pair.other, "long_key");
		pair_received(op, 10, 3);
		assert_false(weft_op_ended(other));
		weft_cancel(other);
		pair_ended(other, WEFT_CANCELLED);
		weft_op_free(other);
		pair_close(&pair);
	}
}

/* What travels. */

static void every_size_arrives_bit_exact(void **state)
{
	/* Around a byte, the frames, the eager limits, and chunks of a pull. */
	static const size_t counts[] = { 0, 1, 63, 3900, 4000, 4095, 4096, 4097, 8192, 16200,
					 16383, 16384, 16385, 32768, 65535, 65536, 65537,
					 MIB - 1, MIB, MIB + 1, 4 * MIB + 4096, 33 * MIB };
	struct weft_op *op;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		for (size_t i = 0; i < PAIR_COUNT(counts); i++) {
			pair_do(&pair.other, "send 5 k %zu %zu", counts[i], i);
			op = pair_recv(pair.node, NULL, 5, "k");
			pair_received(op, counts[i], i);
			pair_do(&pair.other, "finish");
		}
		pair_close(&pair);
	}
}

static const struct weft_dtype dtypes[] = {
	{ WEFT_FLOAT, 32, 1 }, { WEFT_INT, 8, 1 },      { WEFT_BFLOAT, 16, 1 },
	{ WEFT_BOOL, 8, 1 },   { WEFT_COMPLEX, 128, 1 }, { WEFT_FLOAT, 32, 4 },
	{ WEFT_UINT, 64, 1 },
};

/* Rank @rank, up to 2^6 elements, and the places of the long dimensions differ. */
static struct weft_tensor make_shape(int rank, int64_t shape[WEFT_RANK_MAX])
{
	for (int d = 0; d < rank; d++)
		shape[d] = (d + rank) % 11 == 0 ? 2 : 1;
	return (struct weft_tensor){ .device = { WEFT_CPU, 0 },
				     .ndim = rank,
				     .dtype = dtypes[(size_t)rank % PAIR_COUNT(dtypes)],
				     .shape = rank ? shape : NULL };
}

static void do_shapes(struct pair *side, char *arguments)
{
	int64_t shape[WEFT_RANK_MAX];
	struct weft_op *op;
	char data[4096];

	(void)arguments;
	for (int rank = 0; rank <= WEFT_RANK_MAX; rank++) {
		struct weft_tensor tensor = make_shape(rank, shape);

		tensor.data = data;
		pair_fill(data, sizeof(data), (uint64_t)rank);
		need(!weft_send(side->peer, 1, "shape", 5, &tensor, NULL, &op));
		pair_ended(op, WEFT_OK);
		weft_op_free(op);
	}
}

static void dtype_and_shape_of_every_rank_travel(void **state)
{
	int64_t shape[WEFT_RANK_MAX];
	const struct weft_tensor *got;
	struct weft_op *op;
	struct pair pair;
	uint64_t bytes;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		pair_say(&pair.other, "shapes");
		for (int rank = 0; rank <= WEFT_RANK_MAX; rank++) {
			struct weft_tensor sent = make_shape(rank, shape);

			op = pair_recv(pair.node, NULL, 1, "shape");
			pair_ended(op, WEFT_OK);
			got = weft_op_tensor(op, NULL);
			assert_non_null(got);
			assert_int_equal(got->ndim, rank);
			assert_memory_equal(&got->dtype, &sent.dtype, sizeof(sent.dtype));
			assert_null(got->strides);
			assert_int_equal(got->device.type, WEFT_CPU);
			if (rank)
				assert_memory_equal(got->shape, shape,
						    (size_t)rank * sizeof(shape[0]));
			assert_int_equal(weft_tensor_bytes(got, &bytes), 0);
			assert_true(pair_matches((char *)got->data + got->byte_offset, bytes,
						 (uint64_t)rank));
			weft_op_free(op);
		}
		pair_hear(&pair.other);
		pair_close(&pair);
	}
}

static void do_empty(struct pair *side, char *arguments)
{
	int64_t shape[3] = { 3, 0, 5 }, four[1] = { 4 }, big[1] = { 200000 };
	char *bytes = calloc(1, 200000);
	const struct {
		struct weft_tensor tensor;
		unsigned flags;
	} rows[] = {
		{ { .ndim = 3, .dtype = { WEFT_FLOAT, 64, 1 }, .shape = shape }, 0 },
		{ { .data = bytes, .ndim = 1, .dtype = { WEFT_INT, 32, 1 }, .shape = four },
		  WEFT_DEAD },
		{ { .data = bytes, .ndim = 1, .dtype = { WEFT_UINT, 8, 1 }, .shape = four },
		  WEFT_OPAQUE },
		{ { .data = bytes, .ndim = 1, .dtype = { WEFT_UINT, 8, 1 }, .shape = big },
		  WEFT_OPAQUE },
	};
	struct weft_op *op;

	(void)arguments;
	memcpy(bytes, "abcd", 4);
	for (size_t i = 0; i < PAIR_COUNT(rows); i++) {
		struct weft_send_options options = { .size = sizeof(options),
						     .flags = rows[i].flags };
		struct weft_tensor tensor = rows[i].tensor;

		tensor.device.type = WEFT_CPU;
		need(!weft_send(side->peer, 1, "empty", 5, &tensor, &options, &op));
		pair_ended(op, WEFT_OK);
		weft_op_free(op);
	}
	free(bytes);
}

static void empty_and_dead_tensors_arrive(void **state)
{
	const struct weft_tensor *got;
	struct weft_op *ops[4];
	struct pair pair;
	unsigned flags;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		for (size_t i = 0; i < 4; i++)
			ops[i] = pair_recv(pair.node, NULL, 1, "empty");
		pair_do(&pair.other, "empty");

		pair_ended(ops[0], WEFT_OK);
		got = weft_op_tensor(ops[0], &flags);
		assert_int_equal(flags, 0);
		assert_null(got->data);
		assert_int_equal(got->ndim, 3);
		assert_int_equal(got->shape[0] * 100 + got->shape[1] * 10 + got->shape[2], 305);
		assert_int_equal(got->dtype.bits, 64);

		pair_ended(ops[1], WEFT_OK);
		got = weft_op_tensor(ops[1], &flags);
		assert_int_equal(flags, WEFT_DEAD);
		assert_null(got->data);

		pair_ended(ops[2], WEFT_OK);
		got = weft_op_tensor(ops[2], &flags);
		assert_int_equal(flags, WEFT_OPAQUE);
		assert_memory_equal(got->data, "abcd", 4);

		pair_ended(ops[3], WEFT_OK);
		got = weft_op_tensor(ops[3], &flags);
		assert_int_equal(flags, WEFT_OPAQUE);
		assert_int_equal(got->shape[0], 200000);
		assert_memory_equal(got->data, "abcd\0\0", 6);
		for (size_t i = 0; i < 4; i++)
			weft_op_free(ops[i]);
		pair_close(&pair);
	}
}

#define ROWS 300
#define COLUMNS 200

static void do_strided(struct pair *side, char *arguments)
{
	int64_t small[2] = { 2, 3 }, shape[2] = { COLUMNS, ROWS }, zero[2] = { 0, 1 },
		across[2] = { 1, COLUMNS }, back[2] = { -3, 1 };
	int32_t *values = malloc(sizeof(*values) * ROWS * COLUMNS);
	struct weft_tensor tensors[] = {
		/* A matrix seen the other way round, and a corner of it. */
		{ .shape = shape, .strides = across },
		{ .shape = small, .strides = across },
		/* The second row before the first; one row twice. */
		{ .shape = small, .strides = back, .byte_offset = 3 * sizeof(*values) },
		{ .shape = small, .strides = zero },
	};
	struct weft_op *op;

	(void)arguments;
	for (int i = 0; i < ROWS * COLUMNS; i++)
		values[i] = i;
	for (size_t i = 0; i < PAIR_COUNT(tensors); i++) {
		tensors[i].data = values;
		tensors[i].device.type = WEFT_CPU;
		tensors[i].ndim = 2;
		tensors[i].dtype = (struct weft_dtype){ WEFT_INT, 32, 1 };
		need(!weft_send(side->peer, 1, "strided", 7, &tensors[i], NULL, &op));
		pair_ended(op, WEFT_OK);
		weft_op_free(op);
	}
	free(values);
}

static const int32_t *take_ints(struct weft_op *op, int64_t rows, int64_t columns)
{
	const struct weft_tensor *got;

	pair_ended(op, WEFT_OK);
	got = weft_op_tensor(op, NULL);
	need(got && got->ndim == 2 && got->shape[0] == rows && got->shape[1] == columns);
	need(!got->strides);
	return got->data;
}

static void a_tensor_that_is_not_contiguous_is_gathered(void **state)
{
	const int32_t *values;
	struct weft_op *ops[4];
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		for (size_t i = 0; i < 4; i++)
			ops[i] = pair_recv(pair.node, NULL, 1, "strided");
		pair_do(&pair.other, "strided");

		values = take_ints(ops[0], COLUMNS, ROWS);
		for (int c = 0; c < COLUMNS; c++)
			for (int r = 0; r < ROWS; r++)
				if (values[c * ROWS + r] != r * COLUMNS + c)
					fail_msg("column %d, row %d", c, r);
		values = take_ints(ops[1], 2, 3);
		assert_memory_equal(values, ((int32_t[]){ 0, 200, 400, 1, 201, 401 }), 24);
		values = take_ints(ops[2], 2, 3);
		assert_memory_equal(values, ((int32_t[]){ 3, 4, 5, 0, 1, 2 }), 24);
		values = take_ints(ops[3], 2, 3);
		assert_memory_equal(values, ((int32_t[]){ 0, 1, 2, 0, 1, 2 }), 24);
		for (size_t i = 0; i < 4; i++)
			weft_op_free(ops[i]);
		pair_close(&pair);
	}
}

static void a_snapshot_lets_its_buffer_change_at_once(void **state)
{
	static const size_t counts[] = { 100, 50000, 2 * MIB };
	struct weft_send_options options = { .size = sizeof(options), .flags = WEFT_SNAPSHOT };
	struct weft_op *op;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		for (size_t i = 0; i < PAIR_COUNT(counts); i++) {
			int64_t count = (int64_t)counts[i];
			char *bytes = malloc(counts[i]);
			struct weft_tensor tensor = pair_tensor(bytes, &count);

			pair_fill(bytes, counts[i], 9);
			assert_int_equal(weft_send(pair.peer, i, "k", 1, &tensor, &options, &op), 0);
			memset(bytes, 0, counts[i]);
			free(bytes);
			pair_do(&pair.other, "recv %zu k %zu 9", i, counts[i]);
			pair_ended(op, WEFT_OK);
			weft_op_free(op);
			pair_do(&pair.other, "finish");
		}
		pair_close(&pair);
	}
}

/* Where it arrives. */

struct allocating {
	char *bytes;
	uint64_t asked;
	int64_t first;
	bool had_data, refuses;
};

static void *allocate(void *arg, const struct weft_tensor *want, uint64_t bytes)
{
	struct allocating *a = arg;

	a->asked = bytes;
	a->first = want->ndim == 1 ? want->shape[0] : -1;
	a->had_data = want->data != NULL;
	return a->refuses ? NULL : a->bytes;
}

static void the_receiver_says_where_it_arrives(void **state)
{
	static const size_t counts[] = { 10, 20000, 3 * MIB };
	struct weft_op *op;
	struct pair pair;
	void *taken;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		for (size_t i = 0; i < PAIR_COUNT(counts); i++) {
			int64_t count = (int64_t)counts[i];
			char *bytes = malloc(counts[i]);
			struct weft_tensor into = pair_tensor(bytes, &count);
			struct allocating a = { .bytes = bytes };
			struct weft_recv_options options = { .size = sizeof(options),
							     .alloc = allocate,
							     .alloc_arg = &a };

			for (unsigned round = 0; round < 3; round++)
				pair_do(&pair.other, "send %zu k %zu %u", i, counts[i], round);

			/* A buffer. */
			assert_int_equal(weft_recv(pair.node, NULL, i, "k", 1, &into, NULL, &op), 0);
			pair_ended(op, WEFT_OK);
			assert_ptr_equal(weft_op_tensor(op, NULL)->data, bytes);
			assert_null(weft_op_take(op));
			pair_received(op, counts[i], 0);

			/* A callback. */
			memset(bytes, 0, counts[i]);
			assert_int_equal(weft_recv(pair.node, NULL, i, "k", 1, NULL, &options, &op),
					 0);
			pair_ended(op, WEFT_OK);
			assert_ptr_equal(weft_op_tensor(op, NULL)->data, bytes);
			assert_true(a.asked == counts[i] && a.first == count && !a.had_data);
			assert_null(weft_op_take(op));
			pair_received(op, counts[i], 1);

			/* Nothing: memory of the pool, which may outlive the operation. */
			op = pair_recv(pair.node, NULL, i, "k");
			pair_ended(op, WEFT_OK);
			taken = weft_op_take(op);
			assert_non_null(taken);
			assert_null(weft_op_take(op));
			weft_op_free(op);
			assert_true(pair_matches(taken, counts[i], 2));
			weft_free(pair.node, taken);
			free(bytes);
			pair_do(&pair.other, "finish");
		}
		pair_close(&pair);
	}
}

/* A send that may end as it likes; says how. */
static void do_any_end(struct pair *side, char *arguments)
{
	struct pair_send send = pair_send(side->peer, 1, "k", (size_t)atol(arguments), 1);

	need(!weft_wait(send.op, PAIR_LIMIT_NS));
	snprintf(side->reply, sizeof(side->reply), "%s", weft_status_name(weft_op_status(send.op)));
	weft_op_free(send.op);
	free(send.bytes);
}

static void a_callback_may_refuse_and_the_next_is_served(void **state)
{
	static const size_t counts[] = { 10, 3 * MIB };
	struct allocating a = { .refuses = true };
	struct weft_recv_options options = { .size = sizeof(options),
					     .alloc = allocate,
					     .alloc_arg = &a };
	struct weft_op *op;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		for (size_t i = 0; i < PAIR_COUNT(counts); i++) {
			assert_int_equal(weft_recv(pair.node, NULL, 1, "k", 1, NULL, &options, &op),
					 0);
			assert_string_equal(pair_do(&pair.other, "any_end %zu", counts[i]), "OK");
			pair_ended(op, WEFT_RESOURCE_EXHAUSTED);
			assert_null(weft_op_tensor(op, NULL));
			weft_op_free(op);
			pair_do(&pair.other, "send 1 k %zu 2", counts[i]);
			pair_received(pair_recv(pair.node, NULL, 1, "k"), counts[i], 2);
			pair_do(&pair.other, "finish");
		}
		pair_close(&pair);
	}
}

/* Begin a receive into @into that a tensor of @count bytes can't meet. */
static struct weft_op *recv_wrong(struct pair *pair, struct weft_tensor *into, size_t count,
				  unsigned flags)
{
	struct weft_recv_options options = { .size = sizeof(options), .flags = flags };
	struct weft_op *op;

	need(!weft_recv(pair->node, NULL, 1, "k", 1, into, &options, &op));
	pair_do(&pair->other, "send 1 k %zu 1", count);
	pair_ended(op, WEFT_FAILED_PRECONDITION);
	need(!weft_op_tensor(op, NULL));
	return op;
}

static void a_tensor_that_does_not_fit_is_refused_with_both_sides_facts(void **state)
{
	static const size_t counts[] = { 1000, 3000000 };
	struct weft_recv_options any = { .size = sizeof(any), .flags = WEFT_ANY_SHAPE };
	struct weft_op *op;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		for (size_t i = 0; i < PAIR_COUNT(counts); i++) {
			int64_t less = (int64_t)counts[i] - 1, fits = (int64_t)counts[i],
				quarter = (int64_t)counts[i] / 4, two[2] = { 2, (int64_t)counts[i] / 2 };
			char *bytes = malloc(counts[i]), has[16], wants[16];
			struct weft_tensor into = pair_tensor(bytes, &less);

			snprintf(has, sizeof(has), "%zu", counts[i]);
			snprintf(wants, sizeof(wants), "%zu", counts[i] - 1);
			memset(bytes, 'x', counts[i]);
			/* Too small, by shape and by memory alone. */
			op = recv_wrong(&pair, &into, counts[i], 0);
			assert_non_null(strstr(weft_op_message(op), has));
			assert_non_null(strstr(weft_op_message(op), wants));
			weft_op_free(op);
			op = recv_wrong(&pair, &into, counts[i], WEFT_ANY_SHAPE);
			assert_non_null(strstr(weft_op_message(op), has));
			assert_non_null(strstr(weft_op_message(op), wants));
			weft_op_free(op);

			/* The same number of bytes, but another dtype or rank. */
			into.shape = &quarter;
			into.dtype = (struct weft_dtype){ WEFT_FLOAT, 32, 1 };
			op = recv_wrong(&pair, &into, counts[i], 0);
			assert_non_null(strstr(weft_op_message(op), "float32"));
			assert_non_null(strstr(weft_op_message(op), "uint8"));
			weft_op_free(op);
			into.ndim = 2;
			into.shape = two;
			into.dtype = (struct weft_dtype){ WEFT_UINT, 8, 1 };
			op = recv_wrong(&pair, &into, counts[i], 0);
			weft_op_free(op);

			/* Nothing was written, and the channel goes on: any shape that fits. */
			for (size_t b = 0; b < counts[i]; b++)
				if (bytes[b] != 'x')
					fail_msg("byte %zu was written", b);
			pair_do(&pair.other, "send 1 k %zu 2", counts[i] - 7);
			into = pair_tensor(bytes, &fits);
			assert_int_equal(weft_recv(pair.node, NULL, 1, "k", 1, &into, &any, &op), 0);
			pair_received(op, counts[i] - 7, 2);
			free(bytes);
			pair_do(&pair.other, "finish");
		}
		pair_close(&pair);
	}
}

static void an_operation_tells_its_path(void **state)
{
	struct weft_path path = { .size = sizeof(path) };
	struct pair_send send;
	struct weft_op *op;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		op = pair_recv(pair.node, NULL, 1, "k");
		assert_int_equal(weft_op_path(op, &path), -EAGAIN);
		pair_do(&pair.other, "send 1 k 8 1");
		pair_ended(op, WEFT_OK);
		assert_int_equal(weft_op_path(op, &path), 0);
		assert_string_equal(path.provider, at);
		assert_string_equal(path.way, "eager");
		assert_int_equal(path.bytes, 8);
		pair_received(op, 8, 1);

		op = pair_recv(pair.node, NULL, 1, "k");
		pair_do(&pair.other, "send 1 k 1000000 1");
		pair_ended(op, WEFT_OK);
		assert_int_equal(weft_op_path(op, &path), 0);
		assert_string_equal(path.provider, at);
		assert_string_equal(path.way, "pull");
		assert_int_equal(path.bytes, 1000000);
		assert_int_equal(path.copies, 0);
		pair_received(op, 1000000, 1);

		pair_do(&pair.other, "recv 1 k 1000000 2");
		send = pair_send(pair.peer, 1, "k", 1000000, 2);
		pair_ended(send.op, WEFT_OK);
		assert_int_equal(weft_op_path(send.op, &path), 0);
		assert_string_equal(path.provider, at);
		assert_string_equal(path.way, "pull");
		assert_int_equal(path.registered, 1);
		pair_sent(&send);
		pair_do(&pair.other, "finish");
		pair_close(&pair);
	}
}

/* What the node's second thread is for, where reads are copies of another process's memory. */
static void two_threads_read_a_large_body(void **state)
{
	static const size_t count = 16 * MIB;
	struct weft_path path = { .size = sizeof(path) };
	cpu_set_t processors;
	struct weft_op *op;
	struct pair pair;
	bool helps;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(processors), &processors), 0);
	helps = CPU_COUNT(&processors) > 1;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		for (unsigned seed = 1; seed <= 3; seed++) {
			op = pair_recv(pair.node, NULL, 1, "k");
			pair_do(&pair.other, "send 1 k %zu %u", count, seed);
			pair_ended(op, WEFT_OK);
			assert_int_equal(weft_op_path(op, &path), 0);
			assert_int_equal(path.bytes, count);
			assert_true(path.helped < path.chunks);
			assert_int_equal(path.helped > 0, helps && !strcmp(at, "shm"));
			pair_received(op, count, seed);
			pair_do(&pair.other, "finish");
		}
		pair_close(&pair);
	}
}

/* Many at once. */

static void do_many(struct pair *side, char *arguments)
{
	unsigned count, seed;
	struct pair_send sends[256];

	need(sscanf(arguments, "%u %u", &count, &seed) == 2 && count <= PAIR_COUNT(sends));
	for (unsigned i = 0; i < count; i++)
		sends[i] = pair_send(side->peer, 1, "many", mixed(i), seed + i);
	for (unsigned i = 0; i < count; i++)
		pair_sent(&sends[i]);
}

static void three_peers_send_to_one(void **state)
{
	enum { PEERS = 3, EACH = 40 };
	struct pair_other others[PEERS];
	struct weft_node_options options;
	unsigned heard[PEERS];
	struct weft_node *node;
	struct weft_op *op;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		options = pair_options(at);
		assert_int_equal(weft_node_open(&options, &node), 0);
		for (unsigned p = 0; p < PEERS; p++) {
			pair_start(&others[p], at, NULL, node);
			pair_ping(others[p].peer);
			heard[p] = 0;
		}
		for (unsigned p = 0; p < PEERS; p++)
			pair_say(&others[p], "many %d %u", EACH, p * 1000);
		for (unsigned i = 0; i < PEERS * EACH; i++) {
			unsigned p = 0;

			op = pair_recv(node, NULL, 1, "many");
			pair_ended(op, WEFT_OK);
			while (p < PEERS && others[p].peer != weft_op_peer(op))
				p++;
			assert_true(p < PEERS);
			pair_received(op, mixed(heard[p]), p * 1000 + heard[p]);
			heard[p]++;
		}
		for (unsigned p = 0; p < PEERS; p++) {
			assert_int_equal(heard[p], EACH);
			pair_hear(&others[p]);
			pair_end(&others[p]);
		}
		assert_int_equal(weft_node_close(node), 0);
	}
}

static void do_exchange(struct pair *side, char *arguments)
{
	enum { COUNT = 100 };
	struct pair_send sends[COUNT];
	struct weft_op *ops[COUNT];

	(void)arguments;
	/* Until it is reached by its address, what it sends is a stranger's. */
	pair_ping(side->peer);
	for (unsigned i = 0; i < COUNT; i++) {
		ops[i] = pair_recv(side->node, i % 3 ? side->peer : NULL, 2, "both");
		sends[i] = pair_send(side->peer, 2, "both", mixed(i), i);
	}
	for (unsigned i = 0; i < COUNT; i++) {
		pair_received(ops[i], mixed(i), i);
		pair_sent(&sends[i]);
	}
}

static void two_nodes_send_to_each_other_at_once(void **state)
{
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		for (unsigned round = 0; round < 3; round++) {
			pair_say(&pair.other, "exchange");
			do_exchange(&pair, NULL);
			pair_hear(&pair.other);
		}
		pair_close(&pair);
	}
}

static void do_cross(struct pair *side, char *arguments)
{
	struct pair_send send = pair_send(side->peer, 1, "cross", 5000, 1);
	struct weft_op *op = pair_recv(side->node, side->peer, 1, "cross");

	(void)arguments;
	pair_received(op, 5000, 1);
	pair_sent(&send);
	pair_ping(side->peer);
}

static void two_nodes_may_dial_each_other_at_once(void **state)
{
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		for (unsigned round = 0; round < 20; round++) {
			/* New nodes, so that nobody is connected. */
			pair_open(&pair, at, NULL);
			pair_say(&pair.other, "cross");
			/* Sometimes this side is first, sometimes the other. */
			if (round % 4)
				usleep(50 * (round % 4));
			do_cross(&pair, NULL);
			pair_hear(&pair.other);
			pair_close(&pair);
		}
	}
}

static void do_drain(struct pair *side, char *arguments)
{
	unsigned count = (unsigned)atoi(arguments);
	struct weft_op **ops = calloc(count, sizeof(struct weft_op *));

	for (unsigned i = 0; i < count; i++)
		ops[i] = pair_recv(side->node, NULL, 3, "small");
	for (unsigned i = 0; i < count; i++)
		pair_received(ops[i], 64, i);
	free(ops);
}

static void thousands_of_small_sends_may_be_outstanding(void **state)
{
	enum { COUNT = 4000 };
	struct pair_send *sends;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		sends = calloc(COUNT, sizeof(*sends));
		for (unsigned i = 0; i < COUNT; i++)
			sends[i] = pair_send(pair.peer, 3, "small", 64, i);
		pair_do(&pair.other, "drain %d", COUNT);
		for (unsigned i = 0; i < COUNT; i++)
			pair_sent(&sends[i]);
		free(sends);
		pair_close(&pair);
	}
}

/* Early ends. */

static void a_deadline_ends_what_the_peer_never_answers(void **state)
{
	struct weft_send_options late = { .size = sizeof(late),
					  .op = { .size = sizeof(late.op),
						  .timeout_ns = 200 * PAIR_MS } };
	struct weft_recv_options never = { .size = sizeof(never), .op = late.op };
	int64_t count = MIB;
	char *bytes = malloc(MIB);
	struct weft_tensor tensor = pair_tensor(bytes, &count);
	struct weft_op *send, *recv;
	struct pair pair;
	uint64_t began;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		pair_ping(pair.peer);
		pair_fill(bytes, MIB, 1);
		began = pair_now_ns();
		assert_int_equal(weft_send(pair.peer, 1, "k", 1, &tensor, &late, &send), 0);
		assert_int_equal(weft_recv(pair.node, NULL, 1, "k", 1, &tensor, &never, &recv), 0);
		assert_int_equal(weft_wait(recv, 0), -ETIMEDOUT);
		pair_ended(recv, WEFT_DEADLINE_EXCEEDED);
		pair_ended(send, WEFT_DEADLINE_EXCEEDED);
		assert_true(pair_now_ns() - began >= 200 * PAIR_MS);
		/* The stated bound is 2 s; the rest is for a busy machine. */
		assert_true(pair_now_ns() - began < 5000 * PAIR_MS);
		assert_int_not_equal(weft_op_executed(send), WEFT_EXECUTED_YES);
		weft_op_free(send);
		weft_op_free(recv);

		/* What came too late is not delivered, and the channel goes on. */
		pair_do(&pair.other, "recv 1 k 500000 2");
		struct pair_send next = pair_send(pair.peer, 1, "k", 500000, 2);
		pair_sent(&next);
		pair_do(&pair.other, "finish");
		pair_close(&pair);
	}
	free(bytes);
}

static void a_queued_or_offered_send_can_be_cancelled(void **state)
{
	struct weft_peer *nobody;
	struct pair_send send;
	struct weft_op *recv;
	char address[32];
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		/* Not even connected. */
		pair_free_address(address);
		assert_int_equal(weft_peer_open(pair.node, address, &nobody), 0);
		send = pair_send(nobody, 1, "k", 1000, 1);
		weft_cancel(send.op);
		weft_cancel(send.op);
		pair_ended(send.op, WEFT_CANCELLED);
		assert_int_equal(weft_op_executed(send.op), WEFT_EXECUTED_NO);
		weft_op_free(send.op);
		free(send.bytes);
		weft_peer_close(nobody);

		/* Offered, and nobody receives it. */
		send = pair_send(pair.peer, 1, "k", MIB, 1);
		pair_ping(pair.peer);
		assert_false(weft_op_ended(send.op));
		weft_cancel(send.op);
		pair_ended(send.op, WEFT_CANCELLED);
		weft_op_free(send.op);
		free(send.bytes);

		/* A receive that nothing came for. */
		recv = pair_recv(pair.node, pair.peer, 1, "k");
		weft_cancel(recv);
		pair_ended(recv, WEFT_CANCELLED);
		weft_op_free(recv);

		pair_do(&pair.other, "recv 1 k 1000 2");
		pair_do(&pair.other, "send 1 k 1000 3");
		send = pair_send(pair.peer, 1, "k", 1000, 2);
		pair_sent(&send);
		pair_received(pair_recv(pair.node, NULL, 1, "k"), 1000, 3);
		pair_do(&pair.other, "finish");
		pair_close(&pair);
	}
}

/* Wait until a byte of @bytes is no longer @old: a pull has begun. */
static void wait_for_change(const char *bytes, size_t count, char old)
{
	uint64_t until = pair_now_ns() + PAIR_LIMIT_NS;

	for (;;) {
		for (size_t i = 0; i < count; i += 64 * KIB)
			if (pair_peek(bytes + i) != old)
				return;
		need(pair_now_ns() < until);
	}
}

static void a_cancelled_pull_leaves_its_buffer_alone(void **state)
{
	size_t bytes_count = 64 * MIB;
	int64_t count = (int64_t)bytes_count;
	/* No byte of the pattern's places that are looked at is the mark: see the fill. */
	char *bytes = malloc(bytes_count), *sent = malloc(bytes_count);
	struct weft_tensor into = pair_tensor(bytes, &count);
	struct weft_op *op;
	struct pair pair;

	(void)state;
	pair_fill(sent, bytes_count, 1);
	free(sent);
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		memset(bytes, 0x55, bytes_count);
		assert_int_equal(weft_recv(pair.node, NULL, 1, "k", 1, &into, NULL, &op), 0);
		pair_say(&pair.other, "any_end %zu", bytes_count);
		wait_for_change(bytes, bytes_count, 0x55);
		weft_cancel(op);
		assert_int_equal(weft_wait(op, PAIR_LIMIT_NS), 0);
		/* Success is allowed; whatever it was, nothing is written any more. */
		memset(bytes, 0x55, bytes_count);
		if (weft_op_status(op) != WEFT_OK)
			assert_int_equal(weft_op_status(op), WEFT_CANCELLED);
		pair_sleep_ms(50);
		for (size_t i = 0; i < bytes_count; i += 64)
			if (bytes[i] != 0x55)
				fail_msg("byte %zu was written after the end", i);
		/* What it did not get is there for the next. */
		if (weft_op_status(op) != WEFT_OK)
			pair_received(pair_recv(pair.node, NULL, 1, "k"), bytes_count, 1);
		weft_op_free(op);
		assert_string_equal(pair_hear(&pair.other), "OK");

		pair_do(&pair.other, "send 1 k 2000000 5");
		pair_received(pair_recv(pair.node, NULL, 1, "k"), 2000000, 5);
		pair_do(&pair.other, "finish");
		pair_close(&pair);
	}
	free(bytes);
}

static void a_send_cancelled_while_it_is_pulled_ends_once(void **state)
{
	struct weft_counters before = { .size = sizeof(before) };
	struct weft_counters counters = { .size = sizeof(counters) };
	struct pair_send send;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		/* Some providers keep the pool's memory registered. */
		pair_exchange(&pair, &pair.other);
		assert_int_equal(weft_node_counters(pair.node, &before), 0);
		send = pair_send(pair.peer, 1, "k", 64 * MIB, 1);
		pair_say(&pair.other, "swallow 500");
		pair_sleep_ms(5);
		weft_cancel(send.op);
		assert_int_equal(weft_wait(send.op, PAIR_LIMIT_NS), 0);
		/* The receiver's outcome goes with the sender's. */
		if (weft_op_status(send.op) == WEFT_OK)
			assert_string_equal(pair_hear(&pair.other), "OK");
		else
			assert_string_not_equal(pair_hear(&pair.other), "OK");
		weft_op_free(send.op);
		free(send.bytes);

		/* Where all is slow, what is left of the first may come later than its receive. */
		pair_do(&pair.other, "recv 1 next 100000 2");
		send = pair_send(pair.peer, 1, "next", 100000, 2);
		pair_sent(&send);
		pair_do(&pair.other, "finish");
		assert_int_equal(weft_node_counters(pair.node, &counters), 0);
		assert_int_equal(counters.registered_bytes, before.registered_bytes);
		pair_close(&pair);
	}
}

/* A receive that may end as it likes, within so many ms. */
static void do_swallow(struct pair *side, char *arguments)
{
	struct weft_recv_options options = { .size = sizeof(options),
					     .op = { .size = sizeof(options.op),
						     .timeout_ns = strtoull(arguments, NULL, 10) *
								   PAIR_MS } };
	struct weft_op *op;

	need(!weft_recv(side->node, side->peer, 1, "k", 1, NULL, &options, &op));
	need(!weft_wait(op, PAIR_LIMIT_NS));
	snprintf(side->reply, sizeof(side->reply), "%s", weft_status_name(weft_op_status(op)));
	weft_op_free(op);
}

/* Steps. */

/* A receive and a send of step 5 that nobody meets; how they end. */
static void do_lonely(struct pair *side, char *arguments)
{
	struct pair_send send = pair_send(side->peer, 5, "lonely send", 3 * MIB, 1);
	struct weft_op *recv = pair_recv(side->node, NULL, 5, "lonely receive");

	(void)arguments;
	need(!weft_wait(recv, PAIR_LIMIT_NS));
	need(!weft_wait(send.op, PAIR_LIMIT_NS));
	need(!strcmp(weft_op_message(recv), weft_op_message(send.op)));
	snprintf(side->reply, sizeof(side->reply), "%s %s: %s",
		 weft_status_name(weft_op_status(recv)), weft_status_name(weft_op_status(send.op)),
		 weft_op_message(recv));
	weft_op_free(recv);
	weft_op_free(send.op);
	free(send.bytes);
}

static void an_abort_ends_a_step_on_both_sides(void **state)
{
	struct pair_send send;
	struct weft_op *recv;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		pair_ping(pair.peer);
		recv = pair_recv(pair.node, pair.peer, 5, "k");
		send = pair_send(pair.peer, 5, "k", 3 * MIB, 1);
		pair_say(&pair.other, "lonely");
		pair_sleep_ms(20); /* what is begun later ends so, too */
		assert_int_equal(weft_step_abort(pair.node, 5, WEFT_DATA_LOSS, "nan"), 0);
		pair_ended(recv, WEFT_DATA_LOSS);
		pair_ended(send.op, WEFT_DATA_LOSS);
		assert_string_equal(weft_op_message(send.op), "step 5 was aborted: nan");
		assert_string_equal(pair_hear(&pair.other),
				    "DATA_LOSS DATA_LOSS: step 5 was aborted: nan");
		weft_op_free(recv);
		weft_op_free(send.op);
		free(send.bytes);

		/* In the middle of a pull. */
		send = pair_send(pair.peer, 1, "k", 64 * MIB, 1);
		pair_say(&pair.other, "swallow 15000");
		pair_sleep_ms(5);
		assert_int_equal(weft_step_abort(pair.node, 1, WEFT_DATA_LOSS, "nan"), 0);
		assert_int_equal(weft_wait(send.op, PAIR_LIMIT_NS), 0);
		/* Success is allowed, but then it is both sides'. */
		if (weft_op_status(send.op) != WEFT_OK)
			assert_int_equal(weft_op_status(send.op), WEFT_DATA_LOSS);
		assert_string_equal(pair_hear(&pair.other),
				    weft_status_name(weft_op_status(send.op)));
		weft_op_free(send.op);
		free(send.bytes);

		pair_do(&pair.other, "send 2 k 2000000 5");
		pair_received(pair_recv(pair.node, NULL, 2, "k"), 2000000, 5);
		pair_do(&pair.other, "finish");
		pair_close(&pair);
	}
}

static void an_ended_step_takes_nothing_more(void **state)
{
	struct weft_counters counters = { .size = sizeof(counters) };
	struct pair pair;
	uint64_t before;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		pair_do(&pair.other, "send 1 k 1000 1");
		pair_do(&pair.other, "finish");
		pair_do(&pair.other, "ping");
		assert_int_equal(weft_node_counters(pair.node, &counters), 0);
		before = counters.late_dropped;
		assert_int_equal(weft_step_end(pair.node, 1), 0);
		assert_string_equal(pair_do(&pair.other, "any_end %zu", 3 * MIB), "OK");
		assert_int_equal(weft_node_counters(pair.node, &counters), 0);
		assert_int_equal(counters.late_dropped, before + 2);

		pair_do(&pair.other, "send 2 k 2000000 5");
		pair_received(pair_recv(pair.node, NULL, 2, "k"), 2000000, 5);
		pair_do(&pair.other, "finish");
		pair_close(&pair);
	}
}

/* Memory. */

static void receives_wait_for_memory_of_the_pool(void **state)
{
	enum { COUNT = 6, WAIT_MS = 300 };
	struct weft_counters counters = { .size = sizeof(counters) };
	struct weft_node_options options;
	struct weft_op *ops[COUNT];
	struct pair pair;
	uint64_t until;
	unsigned ended;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		options = pair_options(at);
		options.pool_bytes = 2 * MIB;
		pair_open(&pair, at, &options);
		for (unsigned i = 0; i < COUNT; i++) {
			ops[i] = pair_recv(pair.node, NULL, 1, "k");
			pair_do(&pair.other, "send 1 k %zu %u", MIB, i);
		}
		pair_ended(ops[0], WEFT_OK);
		until = pair_now_ns() + PAIR_LIMIT_NS;
		do
			assert_int_equal(weft_node_counters(pair.node, &counters), 0);
		while (!counters.pool_waits && pair_now_ns() < until);
		pair_sleep_ms(WAIT_MS);
		for (ended = 0; ended < COUNT && weft_op_ended(ops[ended]); ended++)
			;
		assert_in_range(ended, 1, 2);
		assert_int_equal(weft_node_counters(pair.node, &counters), 0);
		assert_true(counters.pool_bytes_used >= MIB && counters.pool_bytes <= 2 * MIB);
		assert_true(counters.pool_waits > 0);

		/* Each that is freed lets another go on. */
		for (unsigned i = 0; i < COUNT; i++)
			pair_received(ops[i], MIB, i);
		pair_do(&pair.other, "finish");
		/* The library lets go of an operation a moment after the user was told. */
		until = pair_now_ns() + PAIR_LIMIT_NS;
		do
			assert_int_equal(weft_node_counters(pair.node, &counters), 0);
		while (counters.pool_bytes_used && pair_now_ns() < until);
		assert_int_equal(counters.pool_bytes_used, 0);
		pair_close(&pair);
	}
}

static void a_tensor_larger_than_the_pool_names_the_setting(void **state)
{
	struct weft_node_options options;
	struct weft_op *op;
	struct pair pair;
	void *memory;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		options = pair_options(at);
		options.pool_bytes = 2 * MIB;
		pair_open(&pair, at, &options);
		op = pair_recv(pair.node, NULL, 1, "k");
		assert_string_equal(pair_do(&pair.other, "any_end %zu", 3 * MIB), "OK");
		pair_ended(op, WEFT_RESOURCE_EXHAUSTED);
		assert_non_null(strstr(weft_op_message(op), "WEFT_POOL_BYTES"));
		weft_op_free(op);

		assert_int_equal(weft_alloc(pair.node, 3 * MIB, &memory), -ENOBUFS);
		assert_non_null(strstr(weft_error(), "WEFT_POOL_BYTES"));
		assert_int_equal(weft_alloc(pair.node, 1000, &memory), 0);
		assert_int_equal((uintptr_t)memory % 64, 0);
		weft_free(pair.node, memory);
		weft_free(pair.node, NULL);

		pair_do(&pair.other, "send 1 k 100000 2");
		pair_received(pair_recv(pair.node, NULL, 1, "k"), 100000, 2);
		pair_do(&pair.other, "finish");
		pair_close(&pair);
	}
}

/* Driving a node. */

static void an_event_loop_may_drive_a_node(void **state)
{
	struct weft_node_options options;
	struct epoll_event event = { .events = EPOLLIN };
	struct pair_send send;
	struct weft_op *op;
	struct pair pair;
	uint64_t timeout, until;
	int epoll, err;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		options = pair_options(at);
		options.mode = WEFT_MANUAL;
		pair_open(&pair, at, &options);
		epoll = epoll_create1(EPOLL_CLOEXEC);
		assert_true(weft_fd(pair.node) >= 0);
		assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, weft_fd(pair.node), &event), 0);
		for (unsigned i = 0; i < 20; i++) {
			op = pair_recv(pair.node, NULL, i, "there");
			send = pair_send(pair.peer, i, "here", mixed(i), i);
			pair_do(&pair.other, "recv %u here %zu %u", i, mixed(i), i);
			pair_do(&pair.other, "send %u there %zu %u", i, mixed(i + 1), i);
			until = pair_now_ns() + PAIR_LIMIT_NS;
			while (!weft_op_ended(op) || !weft_op_ended(send.op)) {
				assert_true(pair_now_ns() < until);
				err = weft_arm(pair.node, &timeout);
				assert_true(err == 0 || err == -EAGAIN);
				if (!err && timeout)
					epoll_wait(epoll, &event, 1,
						   (int)(timeout / PAIR_MS < 1000 ?
								 timeout / PAIR_MS + 1 : 1000));
				assert_true(weft_poll(pair.node, 0) >= 0);
			}
			pair_received(op, mixed(i + 1), i);
			pair_sent(&send);
		}
		close(epoll);
		/* Commands are read while this node is not driven: let it answer. */
		pair_say(&pair.other, "finish");
		until = pair_now_ns() + PAIR_LIMIT_NS;
		while (!pair_has_spoken(&pair.other) && pair_now_ns() < until)
			weft_poll(pair.node, PAIR_MS);
		pair_hear(&pair.other);
		pair_close(&pair);
	}
}

static void waiting_drives_a_manual_node(void **state)
{
	struct weft_node_options options;
	struct pair_send send;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		options = pair_options(at);
		options.mode = WEFT_MANUAL;
		pair_open(&pair, at, &options);
		pair_ping(pair.peer);
		for (unsigned i = 0; i < 8; i++) {
			pair_do(&pair.other, "recv %u here %zu %u", i, mixed(i), i);
			send = pair_send(pair.peer, i, "here", mixed(i), i);
			pair_sent(&send);
			pair_do(&pair.other, "send %u there %zu %u", i, mixed(i), i);
			pair_received(pair_recv(pair.node, pair.peer, i, "there"), mixed(i), i);
		}
		/* The other's sends may await this side's word. */
		pair_say(&pair.other, "finish");
		pair_ping(pair.peer);
		pair_hear(&pair.other);
		assert_int_equal(weft_poll(pair.node, 0), 0);
		pair_close(&pair);
	}
}

/* Callbacks. */

struct told {
	struct pair *pair;
	atomic_int count;
	int wait, close, poll; /* what those calls gave inside */
	enum weft_status status;
	int ended;
};

static void tell(struct weft_op *op, void *arg)
{
	struct told *told = arg;

	told->ended = weft_op_ended(op);
	told->status = weft_op_status(op);
	told->wait = weft_wait(op, 0);
	told->close = weft_node_close(told->pair->node);
	told->poll = weft_poll(told->pair->node, 0);
	atomic_fetch_add(&told->count, 1);
}

static void a_callback_comes_once_and_may_not_block(void **state)
{
	struct weft_op *op, *pending;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		struct told told = { .pair = &pair, .wait = 1 };
		struct weft_recv_options options = {
			.size = sizeof(options),
			.op = { .size = sizeof(options.op), .done = tell, .arg = &told }
		};

		pair_open(&pair, at, NULL);
		pending = pair_recv(pair.node, NULL, 2, "k");
		assert_int_equal(weft_recv(pair.node, NULL, 1, "k", 1, NULL, &options, &op), 0);
		assert_int_equal(weft_poll(pair.node, 0), -EINVAL);
		pair_do(&pair.other, "send 1 k 1000 1");
		pair_received(op, 1000, 1);
		assert_int_equal(atomic_load(&told.count), 1);
		assert_int_equal(told.status, WEFT_OK);
		assert_true(told.ended);
		assert_int_equal(told.close, -EDEADLK);
		pair_do(&pair.other, "send 2 k 1000 1");
		pair_received(pending, 1000, 1);
		pair_do(&pair.other, "finish");
		assert_int_equal(atomic_load(&told.count), 1);
		pair_close(&pair);
		assert_int_equal(atomic_load(&told.count), 1);
	}
}

struct blocked {
	struct weft_op *pending;
	int wait;
};

static void wait_inside(struct weft_op *op, void *arg)
{
	struct blocked *blocked = arg;

	(void)op;
	blocked->wait = weft_wait(blocked->pending, PAIR_LIMIT_NS);
}

static void waiting_inside_a_callback_is_refused(void **state)
{
	struct blocked blocked = { 0 };
	struct weft_op_options options = { .size = sizeof(options),
					   .done = wait_inside,
					   .arg = &blocked };
	struct weft_op *ping;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		pair_open(&pair, at, NULL);
		blocked.wait = 0;
		blocked.pending = pair_recv(pair.node, NULL, 1, "k");
		assert_int_equal(weft_ping(pair.peer, &options, &ping), 0);
		pair_ended(ping, WEFT_OK);
		weft_op_free(ping);
		assert_int_equal(blocked.wait, -EDEADLK);
		weft_cancel(blocked.pending);
		pair_ended(blocked.pending, WEFT_CANCELLED);
		weft_op_free(blocked.pending);
		pair_close(&pair);
	}
}

/* A chain of receives, each begun in the callback of the one before. */
struct chain {
	struct weft_node *node;
	atomic_int left;
	bool inside, nested, good;
	unsigned round;
};

static void link_on(struct weft_op *op, void *arg);

static int link_begin(struct chain *chain)
{
	struct weft_recv_options options = {
		.size = sizeof(options),
		.op = { .size = sizeof(options.op), .done = link_on, .arg = chain }
	};
	struct weft_op *op;

	return weft_recv(chain->node, NULL, 1, "chain", 5, NULL, &options, &op);
}

static void link_on(struct weft_op *op, void *arg)
{
	const struct weft_tensor *got = weft_op_tensor(op, NULL);
	struct chain *chain = arg;

	/* Even when what it starts ends at once. */
	chain->nested |= chain->inside;
	chain->inside = true;
	chain->good &= got && got->shape[0] == 100 && pair_matches(got->data, 100, chain->round++);
	weft_op_free(op);
	if (atomic_load(&chain->left) > 1)
		chain->good &= !link_begin(chain);
	chain->inside = false;
	atomic_fetch_sub(&chain->left, 1);
}

static void a_callback_may_begin_the_next_and_free_itself(void **state)
{
	enum { COUNT = 50 };
	struct pair pair;
	uint64_t until;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		struct chain chain = { .left = COUNT, .good = true };

		pair_open(&pair, at, NULL);
		chain.node = pair.node;
		/* Half of them are there before the first receive. */
		for (unsigned i = 0; i < COUNT / 2; i++)
			pair_do(&pair.other, "send 1 chain 100 %u", i);
		pair_do(&pair.other, "ping");
		assert_int_equal(link_begin(&chain), 0);
		for (unsigned i = COUNT / 2; i < COUNT; i++)
			pair_do(&pair.other, "send 1 chain 100 %u", i);
		until = pair_now_ns() + PAIR_LIMIT_NS;
		while (atomic_load(&chain.left) && pair_now_ns() < until)
			pair_sleep_ms(1);
		assert_int_equal(atomic_load(&chain.left), 0);
		assert_true(chain.good && !chain.nested);
		pair_do(&pair.other, "finish");
		pair_close(&pair);
	}
}

static void count_up(struct weft_op *op, void *arg)
{
	(void)op;
	atomic_fetch_add((atomic_int *)arg, 1);
}

static void a_callback_never_comes_inside_the_call(void **state)
{
	struct weft_node_options options;
	atomic_int count;
	struct weft_recv_options recv = {
		.size = sizeof(recv),
		.op = { .size = sizeof(recv.op), .done = count_up, .arg = &count }
	};
	struct weft_op *op;
	struct pair pair;
	uint64_t until;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		options = pair_options(at);
		options.mode = WEFT_MANUAL;
		pair_open(&pair, at, &options);
		atomic_init(&count, 0);
		/* All is there already, so the receive could end at once. */
		pair_say(&pair.other, "send 1 k 100 1");
		pair_ping(pair.peer);
		pair_hear(&pair.other);
		pair_say(&pair.other, "ping");
		until = pair_now_ns() + PAIR_LIMIT_NS;
		while (!pair_has_spoken(&pair.other) && pair_now_ns() < until)
			weft_poll(pair.node, 5 * PAIR_MS);
		pair_hear(&pair.other);
		assert_int_equal(weft_recv(pair.node, NULL, 1, "k", 1, NULL, &recv, &op), 0);
		assert_int_equal(atomic_load(&count), 0);
		pair_received(op, 100, 1);
		assert_int_equal(atomic_load(&count), 1);
		pair_say(&pair.other, "finish");
		pair_ping(pair.peer);
		pair_hear(&pair.other);
		pair_close(&pair);
	}
}

static void a_freed_operation_goes_on_detached(void **state)
{
	atomic_int count;
	int64_t small = 1000, large = 3 * MIB;
	char *bytes = malloc((size_t)large);
	struct weft_recv_options recv = {
		.size = sizeof(recv),
		.op = { .size = sizeof(recv.op), .done = count_up, .arg = &count }
	};
	struct weft_send_options send = { .size = sizeof(send), .op = recv.op };
	uint64_t until;
	struct weft_op *op;
	struct pair pair;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		int64_t *counts[] = { &small, &large };

		pair_open(&pair, at, NULL);
		for (size_t i = 0; i < PAIR_COUNT(counts); i++) {
			size_t n = (size_t)*counts[i];
			struct weft_tensor tensor = pair_tensor(bytes, counts[i]);

			atomic_init(&count, 0);
			memset(bytes, 0, n);
			assert_int_equal(weft_recv(pair.node, NULL, 1, "k", 1, &tensor, &recv, &op),
					 0);
			weft_op_free(op);
			pair_do(&pair.other, "send 1 k %zu 1", n);
			pair_do(&pair.other, "finish");
			until = pair_now_ns() + PAIR_LIMIT_NS;
			while (!atomic_load(&count) && pair_now_ns() < until)
				pair_sleep_ms(1);
			assert_true(pair_matches(bytes, n, 1));

			assert_int_equal(weft_send(pair.peer, 1, "k", 1, &tensor, &send, &op), 0);
			weft_op_free(op);
			pair_do(&pair.other, "recv 1 k %zu 1", n);
			pair_do(&pair.other, "finish");
			while (atomic_load(&count) < 2 && pair_now_ns() < until)
				pair_sleep_ms(1);
			assert_int_equal(atomic_load(&count), 2);
		}
		weft_op_free(NULL);
		pair_close(&pair);
	}
	free(bytes);
}

static void closing_a_node_cancels_what_is_pending(void **state)
{
	struct weft_node_options options;
	atomic_int count;
	struct weft_recv_options recv = {
		.size = sizeof(recv),
		.op = { .size = sizeof(recv.op), .done = count_up, .arg = &count }
	};
	struct weft_op *pending, *freed, *got;
	struct pair_send offered, small;
	struct pair_other other;
	struct weft_node *node;

	(void)state;
	for (const char *at = pair_first(); at; at = pair_next()) {
		options = pair_options(at);
		atomic_init(&count, 0);
		assert_int_equal(weft_node_open(&options, &node), 0);
		pair_start(&other, at, NULL, node);
		pair_do(&other, "send 1 got 1000 1");
		got = pair_recv(node, NULL, 1, "got");
		pair_ended(got, WEFT_OK);
		assert_int_equal(weft_recv(node, NULL, 1, "k", 1, NULL, &recv, &pending), 0);
		assert_int_equal(weft_recv(node, NULL, 1, "k", 1, NULL, &recv, &freed), 0);
		weft_op_free(freed);
		small = pair_send(other.peer, 1, "k", 10, 1);
		offered = pair_send(other.peer, 1, "k", 2 * MIB, 1);
		pair_sent(&small);
		weft_peer_close(other.peer);
		other.peer = NULL;
		assert_non_null(weft_op_tensor(got, NULL));
		assert_non_null(weft_op_peer(got));
		assert_non_null(weft_op_peer(offered.op));
		assert_int_equal(weft_node_close(node), 0);

		/* The pool and the peers are gone. */
		assert_null(weft_op_tensor(got, NULL));
		assert_null(weft_op_peer(got));
		assert_null(weft_op_peer(offered.op));
		assert_int_equal(atomic_load(&count), 2);
		assert_int_equal(weft_op_status(pending), WEFT_CANCELLED);
		assert_int_equal(weft_op_status(offered.op), WEFT_CANCELLED);
		assert_int_equal(weft_op_status(got), WEFT_OK);
		weft_op_free(pending);
		weft_op_free(offered.op);
		weft_op_free(got);
		free(offered.bytes);
		pair_end(&other);
	}
}

/* What is wrong with a call, which no provider has a say in. */
static void a_wrong_call_is_refused_with_a_sentence(void **state)
{
	int64_t shape[WEFT_RANK_MAX + 1], count = 8, minus = -1, huge[2] = { INT64_MAX, 4 };
	struct weft_node_options options;
	struct weft_send_options flags = { .size = sizeof(flags), .flags = 1u << 20 };
	struct weft_tensor tensor, good;
	struct weft_peer *peer, *same;
	struct weft_node *node;
	uint64_t bytes;
	struct weft_op *op;
	char data[8] = "";

	(void)state;
	options = pair_options(NULL);
	assert_int_equal(weft_node_open(&options, &node), 0);
	assert_int_equal(weft_peer_open(node, "nonsense", &peer), -EINVAL);
	assert_int_not_equal(weft_error()[0], '\0');
	assert_int_equal(weft_peer_open(node, "127.0.0.1:99999", &peer), -EINVAL);
	assert_int_equal(weft_peer_open(node, "127.0.0.1:9", &peer), 0);
	assert_int_equal(weft_peer_open(node, "127.0.0.1:9", &same), 0);
	assert_ptr_equal(peer, same);
	weft_peer_close(same);

	good = pair_tensor(data, &count);
	for (int i = 0; i <= WEFT_RANK_MAX; i++)
		shape[i] = 1;
	tensor = good;
	tensor.ndim = WEFT_RANK_MAX + 1;
	tensor.shape = shape;
	assert_int_equal(weft_send(peer, 1, "k", 1, &tensor, NULL, &op), -EINVAL);
	assert_int_not_equal(weft_error()[0], '\0');
	tensor.ndim = -1;
	assert_int_equal(weft_send(peer, 1, "k", 1, &tensor, NULL, &op), -EINVAL);
	tensor = good;
	tensor.dtype.bits = 0;
	assert_int_equal(weft_send(peer, 1, "k", 1, &tensor, NULL, &op), -EINVAL);
	tensor = good;
	tensor.dtype.lanes = 0;
	assert_int_equal(weft_send(peer, 1, "k", 1, &tensor, NULL, &op), -EINVAL);
	tensor = good;
	tensor.shape = &minus;
	assert_int_equal(weft_send(peer, 1, "k", 1, &tensor, NULL, &op), -EINVAL);
	assert_int_equal(weft_send(peer, 1, "k", 1, &good, &flags, &op), -EINVAL);
	flags.flags = WEFT_OPAQUE;
	tensor = good;
	tensor.dtype = (struct weft_dtype){ WEFT_FLOAT, 64, 1 };
	count = 1;
	assert_int_equal(weft_send(peer, 1, "k", 1, &tensor, &flags, &op), -EINVAL);
	tensor = good;
	tensor.device.type = 10;
	assert_int_equal(weft_send(peer, 1, "k", 1, &tensor, NULL, &op), -ENOTSUP);

	tensor = good;
	tensor.ndim = 2;
	tensor.shape = huge;
	assert_int_equal(weft_tensor_bytes(&tensor, &bytes), -EOVERFLOW);
	tensor.ndim = 0;
	tensor.shape = NULL;
	assert_int_equal(weft_tensor_bytes(&tensor, &bytes), 0);
	assert_int_equal(bytes, 1);
	weft_peer_close(peer);
	assert_int_equal(weft_node_close(node), 0);
	assert_int_equal(weft_node_close(NULL), 0);
}

static const struct pair_command commands[] = {
	{ "long_key", do_long_key }, { "shapes", do_shapes },	{ "empty", do_empty },
	{ "strided", do_strided },   { "many", do_many },	{ "exchange", do_exchange },
	{ "cross", do_cross },	     { "drain", do_drain },
	{ "swallow", do_swallow },   { "any_end", do_any_end }, { "lonely", do_lonely }, { NULL, NULL },
};

#define TEST(name) cmocka_unit_test_teardown(name, pair_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(pair_name_the_missing),
		TEST(either_side_may_come_first),
		TEST(a_receive_may_name_its_peer),
		TEST(a_peer_may_be_named_before_it_exists),
		TEST(a_channel_keeps_its_order),
		TEST(steps_and_keys_do_not_mix),
		TEST(a_key_may_have_65535_bytes_of_any_value),
		TEST(every_size_arrives_bit_exact),
		TEST(dtype_and_shape_of_every_rank_travel),
		TEST(empty_and_dead_tensors_arrive),
		TEST(a_tensor_that_is_not_contiguous_is_gathered),
		TEST(a_snapshot_lets_its_buffer_change_at_once),
		TEST(the_receiver_says_where_it_arrives),
		TEST(a_callback_may_refuse_and_the_next_is_served),
		TEST(a_tensor_that_does_not_fit_is_refused_with_both_sides_facts),
		TEST(an_operation_tells_its_path),
		TEST(two_threads_read_a_large_body),
		TEST(three_peers_send_to_one),
		TEST(two_nodes_send_to_each_other_at_once),
		TEST(two_nodes_may_dial_each_other_at_once),
		TEST(thousands_of_small_sends_may_be_outstanding),
		TEST(a_deadline_ends_what_the_peer_never_answers),
		TEST(a_queued_or_offered_send_can_be_cancelled),
		TEST(a_cancelled_pull_leaves_its_buffer_alone),
		TEST(a_send_cancelled_while_it_is_pulled_ends_once),
		TEST(an_abort_ends_a_step_on_both_sides),
		TEST(an_ended_step_takes_nothing_more),
		TEST(receives_wait_for_memory_of_the_pool),
		TEST(a_tensor_larger_than_the_pool_names_the_setting),
		TEST(an_event_loop_may_drive_a_node),
		TEST(waiting_drives_a_manual_node),
		TEST(a_callback_comes_once_and_may_not_block),
		TEST(waiting_inside_a_callback_is_refused),
		TEST(a_callback_may_begin_the_next_and_free_itself),
		TEST(a_callback_never_comes_inside_the_call),
		TEST(a_freed_operation_goes_on_detached),
		TEST(closing_a_node_cancels_what_is_pending),
		TEST(a_wrong_call_is_refused_with_a_sentence),
	};

	if (pair_is_other(argc, argv, commands))
		return 0;
	cmocka_set_test_filter(argv[1]); /* a test's name, or all */
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
