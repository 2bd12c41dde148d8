/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends of operations, as threads hear of them: completion queues, and waits for several. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define SOME 8
#define MANY 200
#define TAKERS 4
#define HELD 1000 /* operations that each taker holds when a node closes */

static struct weft_node *here, *there;
static struct weft_peer *peer;
static struct weft_queue *queue;

static void open_nodes(enum weft_mode mode)
{
	struct weft_node_options options = pair_options(pair_within_process(pair_any()));

	assert_int_equal(weft_node_open(&options, &there), 0);
	options.mode = mode;
	assert_int_equal(weft_node_open(&options, &here), 0);
	assert_int_equal(weft_peer_open(here, weft_node_address(there), &peer), 0);
	assert_int_equal(weft_queue_open(here, &queue), 0);
}

static void close_nodes(void)
{
	weft_queue_close(queue);
	weft_peer_close(peer);
	assert_int_equal(weft_node_close(here), 0);
	assert_int_equal(weft_node_close(there), 0);
}

static struct weft_op_options told_by(struct weft_queue *q)
{
	struct weft_op_options options = WEFT_OP_OPTIONS_INIT;

	options.queue = q;
	return options;
}

/* Begin a receive that only a cancel ends; NULL @op: without a handle. */
static void begin(uint64_t step, struct weft_op **op)
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;

	options.op.queue = queue;
	assert_int_equal(weft_recv(here, NULL, step, "", 0, NULL, &options, op), 0);
}

static void ping(struct weft_op **op)
{
	struct weft_op_options options = told_by(queue);

	options.arg = queue;
	assert_int_equal(weft_ping(peer, &options, op), 0);
}

static struct weft_op *next(void)
{
	struct weft_op *op;

	assert_int_equal(weft_queue_next(queue, &op, 1, PAIR_LIMIT_NS), 1);
	assert_true(weft_op_ended(op));
	return op;
}

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void await(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, (int)(PAIR_LIMIT_NS / PAIR_MS)), 1);
}

static void operations_come_out_once_in_the_order_of_their_ends(void **state)
{
	static const unsigned order[] = { 2, 0, 3, 1 };
	struct weft_op *ops[4], *got[SOME];
	int count = 0;

	(void)state;
	open_nodes(WEFT_THREADED);
	for (unsigned i = 0; i < 4; i++)
		begin(i, &ops[i]);
	for (unsigned i = 0; i < 4; i++)
		weft_cancel(ops[order[i]]);
	while (count < 4) {
		int more = weft_queue_next(queue, got + count, SOME, PAIR_LIMIT_NS);

		assert_in_range(more, 1, 4 - count);
		count += more;
	}
	for (unsigned i = 0; i < 4; i++) {
		assert_ptr_equal(got[i], ops[order[i]]);
		assert_int_equal(weft_op_status(got[i]), WEFT_CANCELLED);
		weft_op_free(got[i]);
	}
	assert_int_equal(weft_queue_next(queue, got, SOME, 0), 0);
	close_nodes();
}

static void an_operation_without_a_handle_brings_the_only_one_and_its_argument(void **state)
{
	struct weft_op *op;

	(void)state;
	open_nodes(WEFT_THREADED);
	ping(NULL);
	op = next();
	assert_ptr_equal(weft_op_arg(op), queue);
	assert_int_equal(weft_op_status(op), WEFT_OK);
	weft_op_free(op);
	close_nodes();
}

static void an_operation_that_is_freed_does_not_come_out(void **state)
{
	struct weft_op *early, *late, *op;
	int fd;

	(void)state;
	open_nodes(WEFT_THREADED);
	fd = weft_queue_fd(queue);
	begin(1, &early);
	weft_cancel(early);
	weft_op_free(early); /* which may be before its end */
	ping(&late);
	assert_int_equal(weft_wait(late, PAIR_LIMIT_NS), 0);
	await(fd);
	weft_op_free(late); /* which lies in the queue */
	assert_false(is_readable(fd));
	assert_int_equal(weft_queue_next(queue, &op, 1, 0), 0);
	close_nodes();
}

static struct weft_op *doomed;

static void free_doomed(struct weft_op *op, void *arg)
{
	(void)op;
	(void)arg;
	weft_op_free(doomed);
}

static void an_operation_that_is_freed_as_it_ends_ends_all_the_same(void **state)
{
	struct weft_op_options options = WEFT_OP_OPTIONS_INIT;
	struct weft_recv_options receive = WEFT_RECV_OPTIONS_INIT;
	struct weft_op *first, *op;

	(void)state;
	open_nodes(WEFT_MANUAL);
	options.done = free_doomed;
	receive.op = options;
	assert_int_equal(weft_recv(here, NULL, 1, "", 0, NULL, &receive, &first), 0);
	begin(2, &doomed);
	weft_cancel(first);
	weft_cancel(doomed);
	assert_int_equal(weft_poll(here, 0), 2);
	assert_int_equal(weft_queue_next(queue, &op, 1, 0), 0);
	weft_op_free(first);
	close_nodes();
}

static void a_descriptor_is_ready_while_operations_lie_in_the_queue(void **state)
{
	struct weft_op *ops[SOME];
	int fd;

	(void)state;
	open_nodes(WEFT_THREADED);
	begin(0, NULL);
	fd = weft_queue_fd(queue);
	assert_true(fd >= 0);
	assert_int_equal(weft_queue_fd(queue), fd);
	assert_false(is_readable(fd));
	for (unsigned i = 0; i < SOME; i++)
		ping(&ops[i]);
	assert_int_equal(weft_wait_all(ops, SOME, PAIR_LIMIT_NS), 0);
	for (unsigned i = 0; i < SOME; i++) {
		await(fd);
		weft_op_free(next());
	}
	assert_false(is_readable(fd));
	close_nodes();
}

static void a_descriptor_asked_for_late_knows_of_what_lies_there(void **state)
{
	struct weft_op *op;
	int fd;

	(void)state;
	open_nodes(WEFT_MANUAL);
	ping(&op);
	assert_int_equal(weft_wait(op, PAIR_LIMIT_NS), 0);
	fd = weft_queue_fd(queue);
	assert_true(is_readable(fd));
	assert_ptr_equal(next(), op);
	assert_false(is_readable(fd));
	weft_op_free(op);
	close_nodes();
}

static void nothing_comes_before_its_time_has_passed(void **state)
{
	uint64_t began_ns = pair_now_ns();
	struct weft_op *op, *got;

	(void)state;
	open_nodes(WEFT_THREADED);
	begin(1, &op);
	assert_int_equal(weft_queue_next(queue, &got, 1, 20 * PAIR_MS), 0);
	assert_true(pair_now_ns() - began_ns >= 20 * PAIR_MS);
	weft_cancel(op);
	assert_ptr_equal(next(), op);
	weft_op_free(op);
	close_nodes();
}

static void *take_all(void *arg)
{
	size_t *taken = arg;
	struct weft_op *ops[3];
	int count;

	while ((count = weft_queue_next(queue, ops, 3, PAIR_LIMIT_NS)) > 0)
		for (int i = 0; i < count; i++, (*taken)++)
			weft_op_free(ops[i]);
	return (void *)(intptr_t)count;
}

static void threads_share_a_queue_and_closing_the_node_ends_their_waits(void **state)
{
	size_t taken[TAKERS] = { 0 }, sum = 0;
	pthread_t takers[TAKERS];
	void *rc;

	(void)state;
	open_nodes(WEFT_THREADED);
	for (size_t i = 0; i < TAKERS; i++)
		assert_int_equal(pthread_create(&takers[i], NULL, take_all, &taken[i]), 0);
	for (unsigned i = 0; i < MANY; i++) {
		ping(NULL);
		begin(i, NULL); /* which the closing node ends */
	}
	weft_peer_close(peer);
	assert_int_equal(weft_node_close(here), 0);
	for (size_t i = 0; i < TAKERS; i++) {
		assert_int_equal(pthread_join(takers[i], &rc), 0);
		assert_int_equal((intptr_t)rc, -ECANCELED);
		sum += taken[i];
	}
	assert_int_equal(sum, 2 * MANY);
	weft_queue_close(queue);
	assert_int_equal(weft_node_close(there), 0);
}

/* Open a manual node, and drive it until another thread has closed it. */
static void *drive(void *opened)
{
	struct weft_op *op;

	open_nodes(WEFT_MANUAL);
	begin(0, NULL); /* which the closing node ends */
	pthread_barrier_wait(opened);
	if (weft_queue_next(queue, &op, 1, PAIR_LIMIT_NS) != 1 ||
	    weft_op_status(op) != WEFT_CANCELLED)
		return NULL;
	weft_op_free(op);
	return (void *)(intptr_t)weft_queue_next(queue, &op, 1, PAIR_LIMIT_NS);
}

static void closing_a_manual_node_ends_the_wait_of_the_thread_that_drives_it(void **state)
{
	pthread_barrier_t opened;
	pthread_t driver;
	void *rc;

	(void)state;
	assert_int_equal(pthread_barrier_init(&opened, NULL, 2), 0);
	assert_int_equal(pthread_create(&driver, NULL, drive, &opened), 0);
	pthread_barrier_wait(&opened);
	/* The driver is likely to sleep in its loop by now; the test holds where it does not. */
	pair_sleep_ms(50);
	weft_peer_close(peer);
	assert_int_equal(weft_node_close(here), 0);
	assert_int_equal(pthread_join(driver, &rc), 0);
	assert_int_equal((intptr_t)rc, -ECANCELED);
	weft_queue_close(queue);
	assert_int_equal(weft_node_close(there), 0);
	pthread_barrier_destroy(&opened);
}

/* Operations that have ended, of which one thread holds a part. */
struct holder {
	struct weft_op *ops[HELD];
	pthread_barrier_t *begin;
};

static void *free_all(void *arg)
{
	struct holder *holder = arg;

	pthread_barrier_wait(holder->begin);
	for (size_t i = 0; i < HELD; i++) {
		weft_op_free(holder->ops[i]);
		sched_yield();
	}
	return NULL;
}

/* Each thread frees handles among those of operations that the closing node ends. */
static void threads_free_what_they_hold_while_the_node_closes(void **state)
{
	static struct holder holders[TAKERS];
	pthread_t threads[TAKERS];
	pthread_barrier_t begins;

	(void)state;
	open_nodes(WEFT_THREADED);
	assert_int_equal(pthread_barrier_init(&begins, NULL, TAKERS + 1), 0);
	for (size_t i = 0; i < HELD; i++) {
		for (size_t taker = 0; taker < TAKERS; taker++) {
			begin(i, &holders[taker].ops[i]);
			begin(HELD + i, NULL);
		}
		for (size_t taker = 0; taker < TAKERS; taker++)
			weft_cancel(holders[taker].ops[i]);
	}
	for (size_t taker = 0; taker < TAKERS; taker++) {
		holders[taker].begin = &begins;
		assert_int_equal(weft_wait_all(holders[taker].ops, HELD, PAIR_LIMIT_NS), 0);
		assert_int_equal(pthread_create(&threads[taker], NULL, free_all, &holders[taker]),
				 0);
	}
	weft_peer_close(peer);
	pthread_barrier_wait(&begins);
	assert_int_equal(weft_node_close(here), 0);
	for (size_t taker = 0; taker < TAKERS; taker++)
		assert_int_equal(pthread_join(threads[taker], NULL), 0);
	assert_int_equal(pthread_barrier_destroy(&begins), 0);
	weft_queue_close(queue);
	assert_int_equal(weft_node_close(there), 0);
}

static pthread_t waiter;
static atomic_bool ran_on_waiter;

static void note_thread(struct weft_op *op, void *arg)
{
	(void)op;
	(void)arg;
	if (pthread_equal(waiter, pthread_self()))
		atomic_store(&ran_on_waiter, true);
}

/* The worker's thread may be quicker, but not every time. */
static void a_thread_that_waits_for_a_queue_does_the_work_of_the_worker(void **state)
{
	struct weft_op_options options = WEFT_OP_OPTIONS_INIT;

	(void)state;
	open_nodes(WEFT_THREADED);
	waiter = pthread_self();
	atomic_store(&ran_on_waiter, false);
	options.done = note_thread;
	while (!atomic_load(&ran_on_waiter)) {
		assert_int_equal(weft_ping(peer, &options, NULL), 0);
		ping(NULL);
		weft_op_free(next());
	}
	close_nodes();
}

static void operations_of_a_closed_queue_go_on(void **state)
{
	struct weft_op *kept, *lies, *runs;

	(void)state;
	open_nodes(WEFT_THREADED);
	begin(1, &kept);
	begin(2, NULL);
	ping(&lies);
	assert_int_equal(weft_wait(lies, PAIR_LIMIT_NS), 0);
	ping(NULL); /* whose handle only the queue has */
	begin(3, &runs);
	weft_queue_close(queue);
	weft_op_free(lies);
	weft_cancel(kept);
	assert_int_equal(weft_wait(kept, PAIR_LIMIT_NS), 0);
	weft_op_free(kept);
	assert_false(weft_op_ended(runs));
	queue = NULL;
	close_nodes();
	assert_int_equal(weft_op_status(runs), WEFT_CANCELLED);
	weft_op_free(runs);
}

static void the_owner_of_a_manual_node_drives_it_by_taking(void **state)
{
	struct weft_op *op;

	(void)state;
	open_nodes(WEFT_MANUAL);
	ping(&op);
	assert_ptr_equal(next(), op);
	assert_int_equal(weft_op_status(op), WEFT_OK);
	weft_op_free(op);
	close_nodes();
}

static int in_callback;

static void take_inside(struct weft_op *op, void *arg)
{
	struct weft_op *got;

	(void)op;
	(void)arg;
	in_callback = weft_queue_next(queue, &got, 1, PAIR_LIMIT_NS);
}

static void a_queue_is_refused_where_it_can_not_serve(void **state)
{
	struct weft_op_options options;
	struct weft_queue *other;
	struct weft_op *op;

	(void)state;
	open_nodes(WEFT_THREADED);
	assert_int_equal(weft_queue_open(there, &other), 0);
	options = told_by(other);
	assert_int_equal(weft_ping(peer, &options, &op), -EINVAL);
	assert_non_null(strstr(weft_error(), "of another node"));
	options = told_by(queue);
	options.done = take_inside;
	assert_int_equal(weft_ping(peer, &options, &op), -EINVAL);
	assert_non_null(strstr(weft_error(), "both a queue and a callback"));
	assert_int_equal(weft_queue_next(queue, &op, 0, 0), -EINVAL);
	options.queue = NULL;
	assert_int_equal(weft_ping(peer, &options, &op), 0);
	assert_int_equal(weft_wait(op, PAIR_LIMIT_NS), 0);
	assert_int_equal(in_callback, -EDEADLK);
	weft_op_free(op);
	weft_queue_close(other);
	close_nodes();
}

/* Waits for several. */

static void a_wait_for_any_names_the_one_that_has_ended(void **state)
{
	struct weft_op *ops[4] = { NULL };
	size_t index;

	(void)state;
	for (int mode = WEFT_THREADED; mode <= WEFT_MANUAL; mode++) {
		open_nodes((enum weft_mode)mode);
		assert_int_equal(weft_wait_any(ops, 4, 0, &index), -EINVAL);
		begin(0, &ops[0]);
		begin(3, &ops[3]);
		assert_int_equal(weft_wait_any(ops, 4, PAIR_MS, &index), -ETIMEDOUT);
		ping(&ops[2]);
		assert_int_equal(weft_wait_any(ops, 4, PAIR_LIMIT_NS, &index), 0);
		assert_int_equal(index, 2);
		assert_int_equal(weft_wait_all(ops, 4, PAIR_MS), -ETIMEDOUT);
		weft_cancel(ops[0]);
		weft_cancel(ops[3]);
		assert_int_equal(weft_wait_all(ops, 4, PAIR_LIMIT_NS), 0);
		for (unsigned i = 0; i < 4; i++)
			weft_op_free(ops[i]);
		memset(ops, 0, sizeof(ops));
		close_nodes();
	}
}

static void a_wait_for_any_of_two_nodes_is_refused(void **state)
{
	struct weft_op *ops[2];
	size_t index;

	(void)state;
	open_nodes(WEFT_THREADED);
	begin(1, &ops[0]);
	assert_int_equal(weft_recv(there, NULL, 1, "", 0, NULL, NULL, &ops[1]), 0);
	assert_int_equal(weft_wait_any(ops, 2, PAIR_LIMIT_NS, &index), -EINVAL);
	weft_op_free(ops[0]);
	weft_op_free(ops[1]);
	close_nodes();
}

static void finishing_waits_tells_and_frees(void **state)
{
	enum weft_status status;
	struct weft_op *op;

	(void)state;
	open_nodes(WEFT_THREADED);
	ping(&op);
	assert_int_equal(weft_finish(op, &status), 0);
	assert_int_equal(status, WEFT_OK);
	begin(1, &op);
	weft_cancel(op);
	assert_int_equal(weft_finish(op, &status), 0);
	assert_int_equal(status, WEFT_CANCELLED);
	assert_string_equal(weft_error(), "it was cancelled");
	assert_int_equal(weft_queue_next(queue, &op, 1, 0), 0);
	close_nodes();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations_come_out_once_in_the_order_of_their_ends),
		cmocka_unit_test(an_operation_without_a_handle_brings_the_only_one_and_its_argument),
		cmocka_unit_test(an_operation_that_is_freed_does_not_come_out),
		cmocka_unit_test(an_operation_that_is_freed_as_it_ends_ends_all_the_same),
		cmocka_unit_test(a_descriptor_is_ready_while_operations_lie_in_the_queue),
		cmocka_unit_test(a_descriptor_asked_for_late_knows_of_what_lies_there),
		cmocka_unit_test(nothing_comes_before_its_time_has_passed),
		cmocka_unit_test(threads_share_a_queue_and_closing_the_node_ends_their_waits),
		cmocka_unit_test(closing_a_manual_node_ends_the_wait_of_the_thread_that_drives_it),
		cmocka_unit_test(threads_free_what_they_hold_while_the_node_closes),
		cmocka_unit_test(a_thread_that_waits_for_a_queue_does_the_work_of_the_worker),
		cmocka_unit_test(operations_of_a_closed_queue_go_on),
		cmocka_unit_test(the_owner_of_a_manual_node_drives_it_by_taking),
		cmocka_unit_test(a_queue_is_refused_where_it_can_not_serve),
		cmocka_unit_test(a_wait_for_any_names_the_one_that_has_ended),
		cmocka_unit_test(a_wait_for_any_of_two_nodes_is_refused),
		cmocka_unit_test(finishing_waits_tells_and_frees),
	};

	(void)argc;
	(void)argv;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
