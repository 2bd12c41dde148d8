/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arena: how often two nodes register memory for -w sends of -s bytes from one to the other, each
 * out of a piece of its own of one range of memory, and into a piece of another:
 *
 *   -e registered  both ranges were registered before, by weft_register()
 *   -e plain       neither was
 *
 * A few sends come before those that count, so that frames and the connection have what they need.
 * The bytes are compared in the end.
 */
#include "tests/bench/must.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

#define ADDRESS_BYTES 64
#define IN_FLIGHT     16u /* sends on the way at once, and those before the count */
#define SENT          0x5a

struct side {
	const struct bench_options *o;
	struct weft_node *node;
	struct weft_peer *peer;
	struct weft_region *region; /* NULL: the memory is not registered */
	char *memory;
	bool receives;
};

/* Open a node with its memory, and the other process's node as its peer. */
static void join(struct side *s, int to)
{
	struct weft_node_options options = WEFT_NODE_OPTIONS_INIT;
	size_t bytes = s->o->bytes * s->o->window;
	char address[ADDRESS_BYTES] = "";

	options.provider = s->o->provider;
	must(weft_node_open(&options, &s->node), "weft_node_open");
	s->memory = bench_memory(bytes);
	if (!strcmp(s->o->endpoint, "registered"))
		must(weft_register(s->node, s->memory, bytes, &s->region), "weft_register");
	strncpy(address, weft_node_address(s->node), sizeof(address) - 1);
	bench_tell(to, address, sizeof(address));
	bench_hear(to, address, sizeof(address));
	must(weft_peer_open(s->node, address, &s->peer), "weft_peer_open");
}

static void leave(struct side *s)
{
	must(weft_unregister(s->region), "weft_unregister");
	must(weft_node_close(s->node), "weft_node_close");
	free(s->memory);
}

/* Begin the send numbered @number, or its receive. */
static struct weft_op *begin(struct side *s, uint64_t number)
{
	int64_t shape = (int64_t)s->o->bytes;
	struct weft_tensor t = {
		.data = s->memory + number % s->o->window * s->o->bytes, .device = { WEFT_CPU, 0 },
		.ndim = 1, .dtype = { WEFT_UINT, 8, 1 }, .shape = &shape,
	};
	struct weft_op *op;

	if (s->receives)
		must(weft_recv(s->node, s->peer, number, "", 0, &t, NULL, &op), "weft_recv");
	else
		must(weft_send(s->peer, number, "", 0, &t, NULL, &op), "weft_send");
	return op;
}

static void finish(struct weft_op *op)
{
	enum weft_status status;

	if (!op)
		return;
	must(weft_finish(op, &status), "weft_finish");
	if (status != WEFT_OK)
		bench_die("an operation failed: %s", weft_error());
}

/* Make the sends from @first to before @end, or their receives. */
static void move(struct side *s, uint64_t first, uint64_t end)
{
	struct weft_op *ops[IN_FLIGHT] = { NULL };

	for (uint64_t i = first; i < end; i++) {
		finish(ops[i % IN_FLIGHT]);
		ops[i % IN_FLIGHT] = begin(s, i);
	}
	for (uint64_t i = end; i < end + IN_FLIGHT; i++)
		finish(ops[i % IN_FLIGHT]);
}

/* Make all sends.  Returns what those that count took of the node's counters. */
static struct weft_counters counted(struct side *s)
{
	struct weft_counters before = WEFT_COUNTERS_INIT, after = WEFT_COUNTERS_INIT;

	move(s, 0, IN_FLIGHT);
	must(weft_node_counters(s->node, &before), "weft_node_counters");
	move(s, IN_FLIGHT, IN_FLIGHT + s->o->window);
	must(weft_node_counters(s->node, &after), "weft_node_counters");
	after.registrations -= before.registrations;
	after.registration_hits -= before.registration_hits;
	return after;
}

static int send_all(int to, const struct bench_options *o)
{
	struct side s = { .o = o };
	struct weft_counters counters;
	char over;

	join(&s, to);
	memset(s.memory, SENT, o->bytes * o->window);
	counters = counted(&s);
	bench_tell(to, &counters, sizeof(counters));
	bench_hear(to, &over, 1);
	leave(&s);
	return 0;
}

int main(int argc, char **argv)
{
	struct bench_options o = {
		.provider = "tcp;ofi_rxm", .endpoint = "registered", .bytes = 64u << 10, .seconds = 1,
		.window = 1000
	};
	struct side s = { .o = &o, .receives = true };
	struct weft_counters ours, theirs;
	char over = 0;
	pid_t pid;
	int to;

	bench_options(&o, argc, argv, "arena [-e registered|plain] [-p PROVIDER] [-s BYTES] "
		      "[-w SENDS]");
	to = bench_pair(send_all, &o, &pid);
	join(&s, to);
	ours = counted(&s);
	bench_hear(to, &theirs, sizeof(theirs));
	for (size_t i = 0; i < o.bytes * o.window; i++)
		if (s.memory[i] != SENT)
			bench_die("byte %zu is wrong", i);
	printf("{\"test\":\"arena\",\"provider\":\"%s\",\"memory\":\"%s\",\"bytes\":%zu,\"sends\":%u,"
	       "\"registrations\":%llu,\"registration_hits\":%llu}\n",
	       o.provider, o.endpoint, o.bytes, o.window,
	       (unsigned long long)(ours.registrations + theirs.registrations),
	       (unsigned long long)(ours.registration_hits + theirs.registration_hits));
	bench_tell(to, &over, 1);
	leave(&s);
	bench_pair_end(pid);
	return 0;
}
