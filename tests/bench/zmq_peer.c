/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * zmq_peer: messages in one direction by ZeroMQ, PUSH to PULL over TCP, as its
 * own guide has it.
 *
 * The queues are ZeroMQ's own of 1000 messages at both ends, fewer where that
 * would be more than 64 MiB.  The time is from the first message to the
 * receiver's word that the last has come.
 */
#include "tests/bench/bench.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#define QUEUE_COUNT 1000
#define QUEUE_BYTES (64u << 20)
#define NAME_BYTES  64u

enum kind { KIND_BODY = 0, KIND_LAST = 1, KIND_END = 2 };

static void must(int result, const char *what)
{
	if (result < 0)
		bench_die("%s: %s", what, zmq_strerror(zmq_errno()));
}

/* Messages that may be queued at either end; at least two, so that one may follow the other. */
static int queue_count(size_t bytes)
{
	size_t fit = QUEUE_BYTES / bytes;

	return fit < 2 ? 2 : fit > QUEUE_COUNT ? QUEUE_COUNT : (int)fit;
}

/* The receiver: a word for each last message, until it is told to end. */
static int serve(int to, const struct bench_options *o)
{
	void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_PULL);
	char name[NAME_BYTES] = { 0 }, kind = KIND_BODY;
	size_t length = sizeof(name);
	int most = queue_count(o->bytes);
	zmq_msg_t message;

	must(zmq_setsockopt(socket, ZMQ_RCVHWM, &most, sizeof(most)), "zmq_setsockopt");
	must(zmq_bind(socket, "tcp://127.0.0.1:*"), "zmq_bind");
	must(zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, name, &length), "zmq_getsockopt");
	bench_tell(to, name, sizeof(name));
	while (kind != KIND_END) {
		must(zmq_msg_init(&message), "zmq_msg_init");
		must(zmq_msg_recv(&message, socket, 0), "zmq_msg_recv");
		kind = *(char *)zmq_msg_data(&message);
		if (kind == KIND_LAST)
			bench_tell(to, &kind, 1);
		zmq_msg_close(&message);
	}
	zmq_close(socket);
	zmq_ctx_term(context);
	return 0;
}

static void put(void *socket, char *body, size_t bytes, enum kind kind)
{
	body[0] = (char)kind;
	must(zmq_send(socket, body, bytes, 0), "zmq_send");
}

static void last(void *socket, char *body, size_t bytes, int to)
{
	char word;

	put(socket, body, bytes, KIND_LAST);
	bench_hear(to, &word, 1);
}

int main(int argc, char **argv)
{
	struct bench_options o = {
		.provider = "", .endpoint = "", .bytes = 8, .seconds = 1, .window = 1
	};
	char name[NAME_BYTES], *body;
	double start, seconds, us;
	uint64_t count = 0;
	void *context, *socket;
	int to, most;
	pid_t pid;

	bench_options(&o, argc, argv, "zmq_peer [-s BYTES] [-t SECONDS]");
	body = bench_memory(o.bytes);
	to = bench_pair(serve, &o, &pid);
	context = zmq_ctx_new();
	socket = zmq_socket(context, ZMQ_PUSH);
	bench_hear(to, name, sizeof(name));
	most = queue_count(o.bytes);
	must(zmq_setsockopt(socket, ZMQ_SNDHWM, &most, sizeof(most)), "zmq_setsockopt");
	must(zmq_connect(socket, name), "zmq_connect");

	for (int i = 0; i < most; i++)
		put(socket, body, o.bytes, KIND_BODY);
	last(socket, body, o.bytes, to);
	start = bench_now();
	do {
		for (unsigned i = 0; i < 64 && (i == 0 || o.bytes < 65536); i++, count++)
			put(socket, body, o.bytes, KIND_BODY);
	} while (bench_now() - start < o.seconds);
	last(socket, body, o.bytes, to);
	seconds = bench_now() - start;
	us = seconds * 1e6 / (double)count;
	bench_print("zmq_peer", &o, &us, 1, count, seconds);

	put(socket, body, o.bytes, KIND_END);
	bench_pair_end(pid);
	zmq_close(socket);
	zmq_ctx_term(context);
	close(to);
	free(body);
	return 0;
}
