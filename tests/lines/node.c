/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One of two nodes that may have different libfabrics, for the script `matrix`.
 *
 * usage: node             prints its address and serves until its input ends
 *        node ADDRESS     visits that one: tensors both ways, beside a call, and a line of what
 *                         became of it
 * WEFT_PROVIDER says over what.  Statuses: 0, all was right; 1, something was not; 2, the two
 * have refused each other; 77, there is no such provider here, or weft never uses it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weft/weft.h>

#include "tests/lines/swap.pb-c.h"

#define LIMIT_NS 20000000000ull /* for what takes milliseconds on an idle machine */

#define REFUSED 2
#define ABSENT 77

/* Each provider moves the first in frames, and has the second pulled. */
static const struct {
	uint64_t bytes;
	const char *way;
} sizes[] = { { 1000, "eager" }, { 16 << 20, "pull" } };

static struct weft_node *node;
static char fallback[300]; /* what the log says of a better provider than the one in use */

static void die(const char *what)
{
	printf("failed: %s: %s\n", what, weft_error());
	exit(1);
}

static uint8_t pattern(uint64_t i, uint64_t bytes)
{
	return (uint8_t)(i * 31 + (i >> 8) + (i >> 16) + bytes);
}

static struct weft_op *begin_send(struct weft_peer *peer, const char *key, uint8_t *data,
				  uint64_t bytes)
{
	const struct weft_tensor tensor = {
		.data = data,
		.device = { WEFT_CPU, 0 },
		.ndim = 1,
		.dtype = { WEFT_UINT, 8, 1 },
		.shape = (int64_t[]){ (int64_t)bytes },
	};
	struct weft_op *op;

	for (uint64_t i = 0; i < bytes; i++)
		data[i] = pattern(i, bytes);
	if (weft_send(peer, bytes, key, strlen(key), &tensor, NULL, &op))
		die("a send");
	return op;
}

static struct weft_op *begin_recv(struct weft_peer *peer, const char *key, uint64_t bytes)
{
	struct weft_op *op;

	if (weft_recv(node, peer, bytes, key, strlen(key), NULL, NULL, &op))
		die("a receive");
	return op;
}

/* NULL, or why @op is not as it should be. */
static const char *trouble(struct weft_op *op)
{
	if (weft_wait(op, 2 * LIMIT_NS))
		return "it does not end";
	return weft_op_status(op) == WEFT_OK ? NULL : weft_op_message(op);
}

static const char *trouble_of_recv(struct weft_op *op, uint64_t bytes, const char *way)
{
	const char *why = trouble(op);
	struct weft_path path = { .size = sizeof(path) };
	const struct weft_tensor *got;
	const uint8_t *data;

	if (why)
		return why;
	got = weft_op_tensor(op, NULL);
	if (got->ndim != 1 || (uint64_t)got->shape[0] != bytes)
		return "a tensor of another shape";
	data = (const uint8_t *)got->data + got->byte_offset;
	for (uint64_t i = 0; i < bytes; i++)
		if (data[i] != pattern(i, bytes))
			return "a wrong byte";
	return weft_op_path(op, &path) || strcmp(path.way, way) ? "it went another way" : NULL;
}

static const char *way_of(uint64_t bytes)
{
	return sizes[bytes != sizes[0].bytes].way;
}

/* Tensors of @bytes both ways, and @call (NULL: none) beside them. */
static const char *swap(struct weft_peer *peer, const char *to, const char *from, uint64_t bytes,
			struct weft_op *call)
{
	uint8_t *data = malloc(bytes);
	struct weft_op *send, *recv;
	const char *why;

	if (!data)
		return "no memory";
	recv = begin_recv(peer, from, bytes);
	send = begin_send(peer, to, data, bytes);
	why = call ? trouble(call) : NULL;
	if (!why)
		why = trouble_of_recv(recv, bytes, way_of(bytes));
	if (!why)
		why = trouble(send);
	if (why)
		return why; /* this process ends, or its test */
	weft_op_free(recv);
	weft_op_free(send);
	free(data);
	return NULL;
}

/* The side that serves. */

struct visit {
	uint64_t bytes;
	Swap__Validated_Closure closure;
	void *call;
};

static void *answer(void *arg)
{
	struct visit *v = arg;
	const Swap__Validated done = SWAP__VALIDATED__INIT;
	const char *why = swap(weft_served_peer(v->call), "back", "there", v->bytes, NULL);

	if (why)
		weft_served_fail(v->call, WEFT_DATA_LOSS, why);
	else
		v->closure(&done, v->call);
	free(v);
	return NULL;
}

static void handle_swap(Swap__Swap_Service *service, const Swap__Tensors *request,
			Swap__Validated_Closure closure, void *call)
{
	struct visit *v = malloc(sizeof(*v));
	pthread_t thread;

	(void)service;
	if (!v)
		abort();
	*v = (struct visit){ request->bytes, closure, call };
	weft_served_defer(call);
	if (pthread_create(&thread, NULL, answer, v))
		abort();
	pthread_detach(thread);
}

static void serve(void)
{
	static Swap__Swap_Service service = SWAP__SWAP__INIT(handle_);
	char byte;

	if (weft_serve(node, &service.base))
		die("a service");
	printf("%s\n", weft_node_address(node));
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
}

/* The side that visits. */

static void replied(const Swap__Validated *reply, void *arg)
{
	*(bool *)arg = reply != NULL;
}

static void visit_with(struct weft_peer *peer, struct weft_stub *stub, uint64_t bytes)
{
	Swap__Tensors request = SWAP__TENSORS__INIT;
	ProtobufCService *service;
	struct weft_op *call;
	bool has_reply = false;
	const char *why;

	request.bytes = bytes;
	if (weft_call_open(stub, NULL, &service, &call))
		die("a call");
	swap__swap__swap(service, &request, replied, &has_reply);
	why = swap(peer, "there", "back", bytes, call);
	if (!why && !has_reply)
		why = "no reply";
	if (why) {
		printf("failed: %llu bytes: %s\n", (unsigned long long)bytes, why);
		exit(1);
	}
	weft_op_free(call);
}

/* What carries the link: of the ping, which went over it. */
static void meet(struct weft_peer *peer)
{
	struct weft_op *ping;
	const char *why;

	if (weft_ping(peer, NULL, &ping))
		die("a ping");
	why = trouble(ping);
	if (why) {
		bool refused = weft_op_status(ping) == WEFT_UNAVAILABLE;

		printf("%s: %s\n", refused ? "refused" : "failed", why);
		exit(refused ? REFUSED : 1);
	}
	weft_op_free(ping);
}

static void visit(const char *address)
{
	struct weft_stub *stub;
	struct weft_peer *peer;

	if (weft_peer_open(node, address, &peer) ||
	    weft_stub_open(peer, &swap__swap__descriptor, &stub))
		die("a peer");
	meet(peer);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		visit_with(peer, stub, sizes[i].bytes);
	weft_stub_close(stub);
	weft_peer_close(peer);
	printf("ok%s%s\n", *fallback ? ", " : "", fallback);
}

static void log_line(void *arg, int level, const char *line)
{
	const char *by = strstr(line, ": by ");

	(void)arg;
	(void)level;
	if (by)
		snprintf(fallback, sizeof(fallback), "%s", by + 2);
}

int main(int argc, char **argv)
{
	const struct weft_node_options options = {
		.size = sizeof(options),
		.timeout_ns = LIMIT_NS,
		.log = log_line,
	};
	int err = weft_node_open(&options, &node);

	if (err) {
		printf("absent: %s\n", weft_error());
		return err == -ENODATA || err == -EINVAL ? ABSENT : 1;
	}
	if (argc == 2)
		visit(argv[1]);
	else
		serve();
	if (weft_node_close(node))
		die("the node's end");
	return 0;
}
