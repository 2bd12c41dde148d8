/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mesh: -n servers and -w workers, each a process with one node, every worker linked
 * with every server.  How long until all nodes are open, until all links are up, and
 * until a tensor of -s bytes has gone over each of them; and what a peer takes of memory
 * and descriptors at a server and at a worker before that, and after it.
 *
 * All begin at the same time.  Memory is what is private and written to; it, descriptors
 * and processor time are of one server or worker, on the average.
 */
#include "tests/bench/must.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <weft/weft.h>

#define ADDRESS_BYTES 64
#define PROCESSES_MAX 1024u
#define SETTLE_US     2000000u /* acknowledgements and what waited for them */

enum order { ORDER_OPEN, ORDER_LINK, ORDER_LOOK, ORDER_MOVE };

/* What a process says of itself; of several, the average. */
struct state {
	double bytes, descriptors, processor_s;
};

static void end(struct weft_op *op, const char *what)
{
	must(weft_wait(op, WEFT_FOREVER), "weft_wait");
	if (weft_op_status(op) != WEFT_OK)
		bench_die("%s: %s", what, weft_op_message(op));
	weft_op_free(op);
}

/* One process. */

struct member {
	struct weft_node *node;
	struct weft_peer *servers[PROCESSES_MAX]; /* a worker's */
	struct weft_op *ops[PROCESSES_MAX];
	char *body;
	uint64_t number; /* among the workers */
};

static void open_node(struct member *m, int to, const struct bench_options *o)
{
	const struct weft_node_options options = { .size = sizeof(options),
						   .provider = o->provider };
	char address[ADDRESS_BYTES] = { 0 };

	must(weft_node_open(&options, &m->node), "weft_node_open");
	snprintf(address, sizeof(address), "%s", weft_node_address(m->node));
	bench_tell(to, address, sizeof(address));
}

static void link_all(struct member *m, int to, const struct bench_options *o)
{
	char address[ADDRESS_BYTES], word = 0;

	for (unsigned i = 0; i < o->servers; i++) {
		bench_hear(to, address, sizeof(address));
		must(weft_peer_open(m->node, address, &m->servers[i]), "weft_peer_open");
	}
	for (unsigned i = 0; i < o->servers; i++)
		must(weft_ping(m->servers[i], NULL, &m->ops[i]), "weft_ping");
	for (unsigned i = 0; i < o->servers; i++)
		end(m->ops[i], "no link");
	bench_tell(to, &word, 1);
}

/* A worker sends one to each server, a server gets one from each worker. */
static void move(struct member *m, int to, const struct bench_options *o)
{
	const struct weft_send_options options = { .size = sizeof(options) };
	int64_t shape = (int64_t)o->bytes;
	struct weft_tensor tensor = {
		.data = m->body, .device = { .type = WEFT_CPU }, .ndim = 1,
		.dtype = { .code = WEFT_UINT, .bits = 8, .lanes = 1 }, .shape = &shape,
	};
	bool sends = m->servers[0];
	unsigned count = sends ? o->servers : o->window;
	char word = 0;

	for (unsigned i = 0; i < count; i++)
		must(sends ? weft_send(m->servers[i], m->number, "k", 1, &tensor, &options,
				       &m->ops[i])
			   : weft_recv(m->node, NULL, i, "k", 1, NULL, NULL, &m->ops[i]),
		     "a tensor");
	for (unsigned i = 0; i < count; i++)
		end(m->ops[i], "a tensor");
	bench_tell(to, &word, 1);
}

static double seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static void look(int to)
{
	struct state state = { bench_private_bytes(), bench_descriptors(), 0 };
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	state.processor_s = seconds(&used.ru_utime) + seconds(&used.ru_stime);
	bench_tell(to, &state, sizeof(state));
}

static void run(struct member *m, int to, const struct bench_options *o)
{
	char word;

	m->body = bench_memory(o->bytes);
	while (recv(to, &word, 1, 0) == 1) {
		if (word == ORDER_OPEN)
			open_node(m, to, o);
		else if (word == ORDER_LINK)
			link_all(m, to, o);
		else if (word == ORDER_LOOK)
			look(to);
		else
			move(m, to, o);
	}
	/* What is open goes with the process. */
	_exit(0);
}

/* The one that gives the orders. */

static int ends[PROCESSES_MAX]; /* servers first */
static char addresses[PROCESSES_MAX][ADDRESS_BYTES];

static void start(const struct bench_options *o)
{
	static struct member member;

	for (unsigned i = 0; i < o->servers + o->window; i++) {
		if (bench_fork(&ends[i]))
			continue;
		for (unsigned j = 0; j < i; j++)
			close(ends[j]);
		member.number = i - o->servers;
		run(&member, ends[i], o);
	}
}

static void order(unsigned first, unsigned count, char word)
{
	for (unsigned i = first; i < first + count; i++)
		bench_tell(ends[i], &word, 1);
}

static void await(unsigned first, unsigned count)
{
	char word;

	for (unsigned i = first; i < first + count; i++)
		bench_hear(ends[i], &word, 1);
}

static struct state look_at(unsigned first, unsigned count)
{
	struct state one, all = { 0 };

	order(first, count, ORDER_LOOK);
	for (unsigned i = first; i < first + count; i++) {
		bench_hear(ends[i], &one, sizeof(one));
		all.bytes += one.bytes / count;
		all.descriptors += one.descriptors / count;
		all.processor_s += one.processor_s / count;
	}
	return all;
}

/* Seconds until every node is open. */
static double open_all(const struct bench_options *o)
{
	unsigned count = o->servers + o->window;
	double began = bench_now();

	order(0, count, ORDER_OPEN);
	for (unsigned i = 0; i < count; i++)
		bench_hear(ends[i], addresses[i], ADDRESS_BYTES);
	return bench_now() - began;
}

/* Seconds until every link is up. */
static double link_up(const struct bench_options *o)
{
	double began = bench_now();

	for (unsigned i = 0; i < o->window; i++) {
		order(o->servers + i, 1, ORDER_LINK);
		for (unsigned j = 0; j < o->servers; j++)
			bench_tell(ends[o->servers + i], addresses[j], ADDRESS_BYTES);
	}
	await(o->servers, o->window);
	return bench_now() - began;
}

/* Seconds until a tensor has gone over every link. */
static double move_all(const struct bench_options *o)
{
	double began = bench_now();

	order(0, o->servers + o->window, ORDER_MOVE);
	await(0, o->servers + o->window);
	return bench_now() - began;
}

static void print_side(const char *side, unsigned peers, const struct state *alone,
		       const struct state *idle, const struct state *active)
{
	printf(",\"%s\":{\"bytes\":%.0f,\"descriptors\":%.0f,\"idle_peer_bytes\":%.0f,"
	       "\"active_peer_bytes\":%.0f,\"peer_descriptors\":%.2f,\"open_processor_s\":%.3f,"
	       "\"up_processor_s\":%.3f,\"move_processor_s\":%.3f}",
	       side, alone->bytes, alone->descriptors, (idle->bytes - alone->bytes) / peers,
	       (active->bytes - alone->bytes) / peers,
	       (active->descriptors - alone->descriptors) / peers, alone->processor_s,
	       idle->processor_s - alone->processor_s, active->processor_s - idle->processor_s);
}

int main(int argc, char **argv)
{
	struct bench_options o = { .provider = "tcp", .endpoint = "", .bytes = 4096, .seconds = 1,
				   .window = 200, .servers = 10 };
	struct state servers[3], workers[3];
	double open_s, up_s, move_s;

	bench_options(&o, argc, argv, "mesh [-p PROVIDER] [-n SERVERS] [-w WORKERS] [-s BYTES]");
	if (!o.servers || o.servers + o.window > PROCESSES_MAX)
		bench_die("1 server at least, and %u processes at most", PROCESSES_MAX);
	start(&o);
	open_s = open_all(&o);
	servers[0] = look_at(0, o.servers);
	workers[0] = look_at(o.servers, o.window);
	up_s = link_up(&o);
	usleep(SETTLE_US);
	servers[1] = look_at(0, o.servers);
	workers[1] = look_at(o.servers, o.window);
	move_s = move_all(&o);
	usleep(SETTLE_US);
	servers[2] = look_at(0, o.servers);
	workers[2] = look_at(o.servers, o.window);
	printf("{\"test\":\"mesh\",\"provider\":\"%s\",\"servers\":%u,\"workers\":%u,"
	       "\"links\":%u,\"bytes\":%zu,\"open_s\":%.2f,\"up_s\":%.2f,\"move_s\":%.2f",
	       o.provider, o.servers, o.window, o.servers * o.window, o.bytes, open_s, up_s,
	       move_s);
	print_side("server", o.window, &servers[0], &servers[1], &servers[2]);
	print_side("worker", o.servers, &workers[0], &workers[1], &workers[2]);
	puts("}");
	return 0;
}
