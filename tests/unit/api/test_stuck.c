/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker that does not turn: stuck inside a call of its provider, inside a callback, or
 * driven by nobody.  weft_dump and weft_wait return all the same, and say where it is.
 *
 * Over the fake fabric, on the real clock: a queue whose read blocks takes the place of one
 * of the fake's.
 */
#include "core/op.h"
#include "core/worker.h"
#include "fabric/internal.h"
#include "tests/fake/fabric.h"
#include "util/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define PATIENCE_NS (20 * S) /* for what takes a second on a machine that is not busy */

/* A place where a thread of the library waits until it is let go. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool closed, someone;
} gate = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void close_gate(void)
{
	pthread_mutex_lock(&gate.lock);
	gate.closed = true;
	gate.someone = false;
	pthread_mutex_unlock(&gate.lock);
}

static void open_gate(void)
{
	pthread_mutex_lock(&gate.lock);
	gate.closed = false;
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
}

static void pass_gate(void)
{
	pthread_mutex_lock(&gate.lock);
	while (gate.closed) {
		gate.someone = true;
		pthread_cond_broadcast(&gate.changed);
		pthread_cond_wait(&gate.changed, &gate.lock);
	}
	pthread_mutex_unlock(&gate.lock);
}

static void until_someone_is_at_the_gate(void)
{
	pthread_mutex_lock(&gate.lock);
	while (!gate.someone)
		pthread_cond_wait(&gate.changed, &gate.lock);
	pthread_mutex_unlock(&gate.lock);
}

/* What the log was told, under a lock of the test's own. */
static struct {
	pthread_mutex_t lock;
	char text[16384];
	bool at_gate; /* who logs goes through the gate */
	atomic_uint inside;
} heard = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void hear(void *arg, int level, const char *line)
{
	size_t used;

	(void)arg;
	(void)level;
	assert_int_equal(atomic_fetch_add(&heard.inside, 1), 0);
	if (heard.at_gate)
		pass_gate();
	pthread_mutex_lock(&heard.lock);
	used = strlen(heard.text);
	(void)snprintf(heard.text + used, sizeof(heard.text) - used, "%s\n", line);
	pthread_mutex_unlock(&heard.lock);
	atomic_fetch_sub(&heard.inside, 1);
}

static bool was_heard(const char *part)
{
	bool found;

	pthread_mutex_lock(&heard.lock);
	found = strstr(heard.text, part) != NULL;
	pthread_mutex_unlock(&heard.lock);
	return found;
}

static struct weft_node *open_node(enum weft_mode mode)
{
	const struct wf_fake calm = { .seed = 1 };
	struct weft_node_options options = {
		.size = sizeof(options), .mode = mode, .name = "n", .log = hear,
	};
	struct weft_node *node;

	assert_int_equal(setenv("WEFT_PROVIDER", "efa", 1), 0);
	assert_int_equal(setenv("WEFT_STALL", "200ms", 1), 0);
	heard.text[0] = '\0';
	heard.at_gate = false;
	wf_fake_open(&calm);
	assert_int_equal(weft_node_open(&options, &node), 0);
	return node;
}

static void close_node(struct weft_node *node)
{
	assert_int_equal(weft_node_close(node), 0);
	assert_int_equal(wf_fake_close(), 0);
}

static struct weft_op *receive(struct weft_node *node)
{
	struct weft_op *op;

	assert_int_equal(weft_recv(node, NULL, 7, "key", 3, NULL, NULL, &op), 0);
	return op;
}

static void check(const char *text, const char *part, bool wanted)
{
	if ((strstr(text, part) != NULL) != wanted)
		fail_msg("%s: %s\n%s", wanted ? "missing" : "there", part, text);
}

/* What a dump says; the caller's to free. */
static char *dump(struct weft_node *node)
{
	uint64_t began_ns = wf_clock_now();
	size_t bytes;
	char *text;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(out);
	assert_int_equal(weft_dump(node, out), 0);
	assert_int_equal(fclose(out), 0);
	assert_true(wf_clock_now() - began_ns < PATIENCE_NS);
	return text;
}

/* The provider whose queue is never done. */

static struct fi_ops_cq stuck_ops;
static const struct fi_ops_cq *true_ops;

static ssize_t read_at_gate(struct fid_cq *cq, void *buffer, size_t count)
{
	pass_gate();
	return true_ops->read(cq, buffer, count);
}

struct swap {
	struct wf_loop_task task;
	struct wf_engine *engine;
	bool back;
};

/* On the worker, whose queue it is. */
static void swap(struct wf_loop_task *task)
{
	struct swap *s = WF_CONTAINER(task, struct swap, task);
	struct fid_cq *cq = s->engine->rails[0].rail->queues.cq.fid;

	if (s->back) {
		cq->ops = (struct fi_ops_cq *)(uintptr_t)true_ops;
		return;
	}
	true_ops = cq->ops;
	stuck_ops = *true_ops;
	stuck_ops.read = read_at_gate;
	cq->ops = &stuck_ops;
}

static void a_worker_stuck_in_its_provider_is_named_with_the_call(void **state)
{
	struct weft_node *node = open_node(WEFT_THREADED);
	struct swap in = { .task.run = swap, .engine = &node->workers[0].engine };
	struct swap back = { .task.run = swap, .engine = &node->workers[0].engine, .back = true };
	struct weft_op *op = receive(node);
	uint64_t until_ns = wf_clock_now() + PATIENCE_NS;
	char *text = dump(node);

	(void)state;
	check(text, "recv step 7 key \"key\" from any peer", true);
	check(text, ": no peer has sent it\n", true);
	check(text, "does not answer", false);
	free(text);

	close_gate();
	wf_loop_submit(&node->workers[0].engine.loop, &in.task);
	until_someone_is_at_the_gate();
	text = dump(node);
	check(text, "node n at 127.0.0.1:", true);
	check(text, "\nthe worker does not answer, and its links can't be shown: for ", true);
	check(text, " s it is inside fi_cq_read of efa\n", true);
	check(text, "\noperation 1: recv step 7 key \"key\" from any peer, begun ", true);
	check(text, "operation 1 begins: a receive of step 7\n", true);
	free(text);

	/* Who waits is not kept, and says so in the log. */
	while (!was_heard(" s it is inside fi_cq_read of efa\n") && wf_clock_now() < until_ns)
		assert_int_equal(weft_wait(op, 300 * MS), -ETIMEDOUT);
	assert_true(was_heard("the worker of this node does not turn: for "));

	/* It comes back, and writes the dumps that nobody waits for any more. */
	wf_loop_submit(&node->workers[0].engine.loop, &back.task);
	open_gate();
	text = dump(node);
	check(text, ": no peer has sent it\n", true);
	free(text);
	weft_cancel(op);
	assert_int_equal(weft_wait(op, PATIENCE_NS), 0);
	assert_int_equal(weft_op_status(op), WEFT_CANCELLED);
	weft_op_free(op);
	close_node(node);
}

static void stop_at_gate(struct weft_op *op, void *arg)
{
	(void)op;
	(void)arg;
	pass_gate();
}

static void a_worker_stuck_in_a_callback_is_named_with_that(void **state)
{
	struct weft_recv_options options = {
		.size = sizeof(options),
		.op = { .size = sizeof(options.op), .timeout_ns = MS, .done = stop_at_gate },
	};
	struct weft_node *node = open_node(WEFT_THREADED);
	struct weft_op *op;
	char *text;

	(void)state;
	close_gate();
	assert_int_equal(weft_recv(node, NULL, 7, "key", 3, NULL, &options, &op), 0);
	until_someone_is_at_the_gate();
	text = dump(node);
	check(text, " s it is inside a callback of the program\n", true);
	free(text);
	open_gate();
	assert_int_equal(weft_wait(op, PATIENCE_NS), 0);
	weft_op_free(op);
	close_node(node);
}

static void a_log_that_never_returns_keeps_no_waiter(void **state)
{
	struct weft_node *node = open_node(WEFT_THREADED);
	struct weft_op *op;

	(void)state;
	heard.at_gate = true;
	close_gate();
	op = receive(node);
	/* The line about the receive, which stands still. */
	until_someone_is_at_the_gate();
	assert_int_equal(weft_wait(op, S), -ETIMEDOUT);
	open_gate();
	weft_cancel(op);
	assert_int_equal(weft_wait(op, PATIENCE_NS), 0);
	weft_op_free(op);
	close_node(node);
	assert_true(was_heard("recv step 7 key \"key\" from any peer stands still for 0."));
}

static void *dump_elsewhere(void *node)
{
	return dump(node);
}

static void a_manual_node_that_nobody_drives_is_dumped_by_another_thread(void **state)
{
	struct weft_node *node = open_node(WEFT_MANUAL);
	struct weft_op *op = receive(node);
	pthread_t thread;
	void *text;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, dump_elsewhere, node), 0);
	assert_int_equal(pthread_join(thread, &text), 0);
	check(text, "its owner has not driven it for ", true);
	check(text, "recv step 7 key \"key\" from any peer", true);
	free(text);

	/* By the owner it is whole. */
	text = dump(node);
	check(text, ": no peer has sent it\n", true);
	free(text);
	weft_op_free(op);
	close_node(node);
}

#define MANY 1000 /* more operations than a turn describes */

static atomic_bool dumped;

static void *dump_and_say(void *node)
{
	char *text = dump(node);

	atomic_store(&dumped, true);
	return text;
}

static void a_dump_of_many_operations_takes_many_turns_and_has_them_all(void **state)
{
	struct weft_node *node = open_node(WEFT_MANUAL);
	static struct weft_op *ops[MANY];
	int turns = 0, lines = 0;
	pthread_t thread;
	void *text;

	(void)state;
	for (size_t i = 0; i < MANY; i++)
		ops[i] = receive(node);
	while (weft_poll(node, 0))
		;
	atomic_store(&dumped, false);
	assert_int_equal(pthread_create(&thread, NULL, dump_and_say, node), 0);
	while (!atomic_load(&dumped)) {
		weft_poll(node, 0);
		/* The rest of the dump waits for the next turn. */
		turns += !wf_inbox_empty(&node->workers[0].engine.loop.inbox);
	}
	assert_int_equal(pthread_join(thread, &text), 0);
	assert_true(turns >= 10);
	for (const char *at = text; (at = strstr(at, ": no peer has sent it\n")); at++)
		lines++;
	assert_int_equal(lines, MANY);
	free(text);
	for (size_t i = 0; i < MANY; i++)
		weft_op_free(ops[i]);
	close_node(node);
}

/* An operation that another thread describes while it ends. */
static struct {
	struct weft_node *node;
	pthread_t describer;
	struct wf_op_class class;
	atomic_bool described, told, freed;
	bool too_early; /* freed while it was described */
} ending;

static void describe_until_told(const struct weft_op *op, char *text)
{
	uint64_t until_ns = wf_clock_now() + PATIENCE_NS;

	atomic_store(&ending.described, true);
	while (!atomic_load(&ending.told) && wf_clock_now() < until_ns)
		usleep(1000);
	/* A worker that does not wait for this thread frees the operation at once. */
	usleep(100000);
	ending.too_early = atomic_load(&ending.freed);
	if (!ending.too_early)
		wf_recv_class.describe(op, text);
}

static void note_told(struct weft_op *op)
{
	(void)op;
	atomic_store(&ending.told, true);
}

static void note_freed(struct weft_op *op)
{
	atomic_store(&ending.freed, true);
	wf_recv_class.free(op);
}

/* A callback behind which the other operation ends in the same turn. */
static void have_it_described(struct weft_op *op, void *arg)
{
	uint64_t until_ns = wf_clock_now() + PATIENCE_NS;

	(void)op;
	(void)arg;
	assert_int_equal(pthread_create(&ending.describer, NULL, dump_elsewhere, ending.node), 0);
	while (!atomic_load(&ending.described) && wf_clock_now() < until_ns)
		usleep(1000);
}

static void an_operation_that_ends_while_it_is_described_is_freed_later(void **state)
{
	struct weft_recv_options options = {
		.size = sizeof(options),
		.op = { .size = sizeof(options.op), .done = have_it_described },
	};
	struct weft_node *node = open_node(WEFT_MANUAL);
	struct weft_op *first, *second;
	void *text;

	(void)state;
	ending.node = node;
	ending.class = wf_recv_class;
	ending.class.describe = describe_until_told;
	ending.class.tell = note_told;
	ending.class.free = note_freed;
	assert_int_equal(weft_recv(node, NULL, 6, "key", 3, NULL, &options, &first), 0);
	second = receive(node);
	second->class = &ending.class;
	weft_cancel(first);
	weft_cancel(second);
	weft_op_free(second);

	assert_int_equal(weft_poll(node, 0), 2);

	assert_true(atomic_load(&ending.described));
	assert_int_equal(pthread_join(ending.describer, &text), 0);
	assert_false(ending.too_early);
	assert_true(atomic_load(&ending.freed));
	check(text, "operation 2: recv step 7 key \"key\" from any peer, begun ", true);
	free(text);
	weft_op_free(first);
	close_node(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_worker_stuck_in_its_provider_is_named_with_the_call),
		cmocka_unit_test(a_worker_stuck_in_a_callback_is_named_with_that),
		cmocka_unit_test(a_log_that_never_returns_keeps_no_waiter),
		cmocka_unit_test(a_manual_node_that_nobody_drives_is_dumped_by_another_thread),
		cmocka_unit_test(a_dump_of_many_operations_takes_many_turns_and_has_them_all),
		cmocka_unit_test(an_operation_that_ends_while_it_is_described_is_freed_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
