/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pool of threads that share the tensors of many senders: whichever thread is free takes the
 * next from one completion queue.
 *
 *   threads collect SENDERS      prints its address, adds up what so many senders send, and ends
 *   threads send ADDRESS FIRST   sends 100 rows of numbers, which count up from FIRST
 *
 * The collector does not know a sender before its first tensor comes.  It waits for each to say
 * that it is done; weft_peer_on_change(3) would tell of one that dies before.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

#define THREADS 4
#define ROWS 100
#define ROW_NUMBERS 4096
#define STEP 0
#define KEY "rows"
#define OUT_MAX 8 /* tensors that a receive has out: beyond it senders wait, not memory here */

static void check(int err)
{
	if (err) {
		fprintf(stderr, "threads: %s\n", weft_error());
		exit(1);
	}
}

static struct weft_tensor row_of(int64_t *numbers, int64_t *count)
{
	return (struct weft_tensor){
		.data = numbers,
		.device = { WEFT_CPU, 0 },
		.ndim = 1,
		.dtype = { WEFT_INT, 64, 1 },
		.shape = count,
	};
}

/* The collector. */

struct pool {
	struct weft_queue *queue;
	struct weft_op *receives[THREADS];
	atomic_int senders, rows;
	atomic_llong sum;
};

/* The last sender is done: every receive ends, after the last of its tensors. */
static void sender_is_done(struct pool *pool)
{
	if (atomic_fetch_sub(&pool->senders, 1) > 1)
		return;
	for (int i = 0; i < THREADS; i++)
		weft_cancel(pool->receives[i]);
}

/* Work of a thread on a tensor that is its alone; other threads have others meanwhile. */
static void add_up(struct pool *pool, const struct weft_tensor *row)
{
	const int64_t *numbers = row->data;
	long long sum = 0;

	for (int64_t i = 0; i < row->shape[0]; i++)
		sum += numbers[i];
	atomic_fetch_add(&pool->sum, sum);
	atomic_fetch_add(&pool->rows, 1);
}

/* Returns whether @op was a tensor; else it was a receive, which has no more. */
static int process(struct pool *pool, struct weft_op *op)
{
	unsigned flags;
	const struct weft_tensor *row = weft_op_tensor(op, &flags);

	for (int i = 0; i < THREADS; i++)
		if (op == pool->receives[i])
			return 0;
	if (!row)
		fprintf(stderr, "threads: a row from %s is lost: %s\n",
			weft_peer_name(weft_op_peer(op)), weft_op_message(op));
	else if (flags & WEFT_DEAD)
		sender_is_done(pool);
	else
		add_up(pool, row);
	return 1;
}

static void *work(void *arg)
{
	struct pool *pool = arg;
	struct weft_op *op;
	int goes_on = 1;

	/* There are as many receives as threads, so a thread leaves when it has taken one's end. */
	while (goes_on && weft_queue_next(pool->queue, &op, 1, WEFT_FOREVER) == 1) {
		goes_on = process(pool, op);
		weft_op_free(op); /* gives the tensor's memory back, and its place to the next */
	}
	return NULL;
}

static void collect(struct weft_node *node, int senders)
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;
	struct pool pool = { .senders = senders };
	pthread_t threads[THREADS];

	check(weft_queue_open(node, &pool.queue));
	options.op.queue = pool.queue;
	options.flags = WEFT_RECV_MANY;
	options.many_max = OUT_MAX;
	for (int i = 0; i < THREADS; i++)
		check(weft_recv(node, NULL, STEP, KEY, strlen(KEY), NULL, &options,
				&pool.receives[i]));
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, &pool))
			abort();
	printf("%s\n", weft_node_address(node));
	fflush(stdout);

	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%d rows, sum %lld\n", atomic_load(&pool.rows), (long long)atomic_load(&pool.sum));
	weft_queue_close(pool.queue);
}

/* A sender. */

static int64_t numbers[ROWS][ROW_NUMBERS];

static void finish(struct weft_op *op)
{
	enum weft_status status;

	check(weft_finish(op, &status));
	check(status != WEFT_OK);
}

static void send_rows(struct weft_node *node, const char *address, int64_t first)
{
	struct weft_send_options dead = WEFT_SEND_OPTIONS_INIT;
	int64_t count = ROW_NUMBERS, none = 0;
	struct weft_tensor row = row_of(NULL, &none);
	struct weft_op *ops[ROWS], *op;
	struct weft_peer *peer;

	check(weft_peer_open(node, address, &peer));
	for (int64_t i = 0; i < ROWS * ROW_NUMBERS; i++)
		numbers[i / ROW_NUMBERS][i % ROW_NUMBERS] = first + i;
	for (int i = 0; i < ROWS; i++) {
		row = row_of(numbers[i], &count);
		check(weft_send(peer, STEP, KEY, strlen(KEY), &row, NULL, &ops[i]));
	}
	for (int i = 0; i < ROWS; i++)
		finish(ops[i]);
	/* A tensor without content says that there are no more: it is behind all that have ended. */
	row = row_of(NULL, &none);
	dead.flags = WEFT_DEAD;
	check(weft_send(peer, STEP, KEY, strlen(KEY), &row, &dead, &op));
	finish(op);
	weft_peer_close(peer);
}

int main(int argc, char **argv)
{
	struct weft_node *node;

	check(weft_node_open(NULL, &node));
	if (argc == 3 && !strcmp(argv[1], "collect")) {
		collect(node, atoi(argv[2]));
	} else if (argc == 4 && !strcmp(argv[1], "send")) {
		send_rows(node, argv[2], atoll(argv[3]));
	} else {
		fprintf(stderr, "usage: threads collect SENDERS | threads send ADDRESS FIRST\n");
		return 2;
	}
	check(weft_node_close(node));
	return 0;
}
