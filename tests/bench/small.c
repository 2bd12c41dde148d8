/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * small: tensors of -s bytes between two processes, received into the pool:
 *
 *   -e manual    there and back; each process drives its node by weft_wait()
 *   -e threaded  there and back; the nodes have threads of their own, and programs wait
 *   -e threads   the same by -w threads of each process at the same time
 *   -e stays     one way, -w on the way, into a receive that stays (WEFT_RECV_MANY)
 */
#include "tests/bench/must.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <weft/weft.h>

#define SAMPLES_MAX 4000000u
#define WARM_COUNT  1000u
#define ADDRESS_BYTES 64
#define THERE 1 /* steps */
#define BACK 2

static bool is(const struct bench_options *o, const char *what)
{
	return !strcmp(o->endpoint, what);
}

/* Open a node, and the other process's as its peer. */
static struct weft_node *join(int to, const struct bench_options *o, struct weft_peer **peer)
{
	struct weft_node_options options = WEFT_NODE_OPTIONS_INIT;
	char address[ADDRESS_BYTES] = "";
	struct weft_node *node;

	options.mode = is(o, "threaded") || is(o, "threads") ? WEFT_THREADED : WEFT_MANUAL;
	options.provider = o->provider;
	must(weft_node_open(&options, &node), "weft_node_open");
	strncpy(address, weft_node_address(node), sizeof(address) - 1);
	bench_tell(to, address, sizeof(address));
	bench_hear(to, address, sizeof(address));
	must(weft_peer_open(node, address, peer), "weft_peer_open");
	return node;
}

static struct weft_op *send(struct weft_peer *peer, uint64_t step, void *bytes, size_t count)
{
	int64_t shape = (int64_t)count;
	struct weft_tensor t = { .data = bytes, .device = { WEFT_CPU, 0 }, .ndim = 1,
				 .dtype = { WEFT_UINT, 8, 1 }, .shape = &shape };
	struct weft_op *op;

	must(weft_send(peer, step, "", 0, &t, NULL, &op), "weft_send");
	return op;
}

static void finish(struct weft_op *op)
{
	enum weft_status status;

	must(weft_finish(op, &status), "weft_finish");
	if (status != WEFT_OK)
		bench_die("an operation failed: %s", weft_error());
}

static struct weft_op *receive(struct weft_node *node, struct weft_peer *peer, uint64_t step)
{
	struct weft_op *op;

	must(weft_recv(node, peer, step, "", 0, NULL, NULL, &op), "weft_recv");
	return op;
}

/* There and back: receive first, so that the answer finds a receive. */
static void go_round(struct weft_node *node, struct weft_peer *peer, void *bytes, size_t count)
{
	struct weft_op *back = receive(node, peer, BACK);

	finish(send(peer, THERE, bytes, count));
	finish(back);
}

static int echo(int to, const struct bench_options *o)
{
	void *bytes = bench_memory(o->bytes);
	struct weft_peer *peer;
	struct weft_node *node;
	struct weft_op *next;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	node = join(to, o, &peer);
	next = receive(node, peer, THERE);
	for (;;) {
		struct weft_op *there = next;

		next = receive(node, peer, THERE);
		finish(there);
		finish(send(peer, BACK, bytes, o->bytes));
	}
	return 0;
}

/* One of o->window threads of a process, and the one of the other process that answers it. */
struct party {
	pthread_t thread;
	const struct bench_options *options;
	struct weft_node *node;
	struct weft_peer *peer;
	uint64_t there, back; /* steps */
	double *us;
	size_t count, samples_max;
};

static void *ask(void *arg)
{
	struct party *p = arg;
	void *bytes = bench_memory(p->options->bytes);
	double start = bench_now(), last = start;

	do {
		struct weft_op *back = receive(p->node, p->peer, p->back);
		double now;

		finish(send(p->peer, p->there, bytes, p->options->bytes));
		finish(back);
		now = bench_now();
		p->us[p->count++] = (now - last) * 1e6;
		last = now;
	} while (last - start < p->options->seconds && p->count < p->samples_max);
	return NULL;
}

static void *answer(void *arg)
{
	struct party *p = arg;
	void *bytes = bench_memory(p->options->bytes);

	for (;;) {
		finish(receive(p->node, p->peer, p->there));
		finish(send(p->peer, p->back, bytes, p->options->bytes));
	}
	return NULL;
}

/* Have @run done by o->window threads until all have returned.  Returns them, with samples in @us. */
static struct party *meet(void *(*run)(void *arg), int to, const struct bench_options *o,
			  double *us)
{
	struct party *parties = calloc(o->window, sizeof(*parties));
	size_t samples_max = SAMPLES_MAX / o->window;
	struct weft_peer *peer;
	struct weft_node *node = join(to, o, &peer);

	if (!parties)
		bench_die("no memory");
	for (unsigned i = 0; i < o->window; i++) {
		parties[i] = (struct party){
			.options = o, .node = node, .peer = peer, .there = 2 * i + 1,
			.back = 2 * i + 2, .us = us + i * samples_max, .samples_max = samples_max,
		};
		if (pthread_create(&parties[i].thread, NULL, run, &parties[i]))
			bench_die("no thread");
	}
	for (unsigned i = 0; i < o->window; i++)
		pthread_join(parties[i].thread, NULL);
	return parties;
}

static int answer_all(int to, const struct bench_options *o)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	free(meet(answer, to, o, NULL));
	return 0;
}

/* Print what the threads of this process have measured, with samples in @us. */
static void ask_all(int to, const struct bench_options *o, double *us)
{
	struct party *parties = meet(ask, to, o, us);
	size_t count = 0;

	for (unsigned i = 0; i < o->window; i++) {
		memmove(us + count, parties[i].us, parties[i].count * sizeof(*us));
		count += parties[i].count;
	}
	free(parties);
	bench_print("small", o, us, count, count, o->seconds);
}

/* Keep o->window sends on the way. */
static int pour(int to, const struct bench_options *o)
{
	struct weft_op **ops = calloc(o->window, sizeof(*ops));
	void *bytes = bench_memory(o->bytes);
	struct weft_peer *peer;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)join(to, o, &peer);
	for (unsigned i = 0;; i = (i + 1) % o->window) {
		if (ops[i])
			finish(ops[i]);
		ops[i] = send(peer, THERE, bytes, o->bytes);
	}
	return 0;
}

static void count_one(struct weft_op *op, void *arg)
{
	uint64_t *count = arg;

	if (weft_op_status(op) != WEFT_OK)
		bench_die("a receive failed: %s", weft_op_message(op));
	++*count;
	weft_op_free(op);
}

static uint64_t count_all(struct weft_node *node, struct weft_peer *peer, double seconds)
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;
	uint64_t count = 0, warm;
	struct weft_op *op;
	double start;

	options.flags = WEFT_RECV_MANY;
	options.op.done = count_one;
	options.op.arg = &count;
	must(weft_recv(node, peer, THERE, "", 0, NULL, &options, &op), "weft_recv");
	while (count < WARM_COUNT)
		(void)weft_poll(node, 0);
	warm = count;
	start = bench_now();
	while (bench_now() - start < seconds)
		(void)weft_poll(node, 0);
	return count - warm;
}

int main(int argc, char **argv)
{
	struct bench_options o = {
		.provider = "tcp", .endpoint = "manual", .bytes = 8, .seconds = 1, .window = 1024
	};
	struct weft_peer *peer;
	struct weft_node *node;
	double *us, start, last, now;
	uint64_t count = 0;
	size_t samples = 0;
	void *bytes;
	pid_t pid;
	int to;

	bench_options(&o, argc, argv, "small [-e manual|threaded|threads|stays] [-p PROVIDER] [-s BYTES] "
		      "[-w WINDOW] [-t SECONDS]");
	us = bench_memory(SAMPLES_MAX * sizeof(*us));
	bytes = bench_memory(o.bytes);
	to = bench_pair(is(&o, "stays") ? pour : is(&o, "threads") ? answer_all : echo, &o, &pid);
	if (is(&o, "threads")) {
		ask_all(to, &o, us);
		kill(pid, SIGKILL);
		return 0;
	}
	node = join(to, &o, &peer);
	if (is(&o, "stays")) {
		count = count_all(node, peer, o.seconds);
		now = o.seconds;
		start = 0;
		us[samples++] = 1e6 * o.seconds / (double)count;
	} else {
		for (unsigned i = 0; i < WARM_COUNT; i++)
			go_round(node, peer, bytes, o.bytes);
		start = last = bench_now();
		do {
			go_round(node, peer, bytes, o.bytes);
			now = bench_now();
			us[samples++] = (now - last) * 1e6;
			last = now;
		} while (now - start < o.seconds && samples < SAMPLES_MAX);
		count = samples;
	}
	bench_print("small", &o, us, samples, count, now - start);
	kill(pid, SIGKILL);
	return 0;
}
