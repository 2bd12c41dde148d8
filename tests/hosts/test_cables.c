/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cables that are cut, mended and slow, between two hosts with two networks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crossing.h"

#define MIB ((size_t)1024 * 1024)
#define BODY (16 * MIB)

/* Shorter than the defaults of 1 s and 3 s. */
#define HEARTBEAT "250ms"
#define LOST "1s"
/* As weft(7) has it: the limit, and one heartbeat more; and weft_op(3): 2 s until buffers
 * of a shared rail are quiet.  The rest is for a busy machine. */
#define CUT_NS ((1000 + 250 + 2000 + 2000) * PAIR_MS)

/* What waits for the other side when the cable is cut. */

struct waiting {
	struct weft_op *ops[4];
	struct pair_send send;
	unsigned char *into;
	int64_t count;
};

static void no_tensor(struct weft_op *op, void *arg)
{
	(void)op;
	(void)arg;
}

static void begin_waiting(struct waiting *w, struct pair *pair)
{
	struct weft_recv_options options = { .size = sizeof(options) };
	struct weft_recv_options many = { .size = sizeof(many), .flags = WEFT_RECV_MANY };
	struct weft_tensor into;

	many.op.size = sizeof(many.op);
	many.op.done = no_tensor;
	w->count = BODY;
	w->into = malloc(BODY);
	need(w->into != NULL);
	memset(w->into, 0x55, BODY);
	into = pair_tensor(w->into, &w->count);
	w->send = pair_send(pair->peer, 1, "never", MIB, 1);
	w->ops[0] = w->send.op;
	w->ops[1] = pair_recv(pair->node, pair->peer, 2, "never");
	need(!weft_recv(pair->node, pair->peer, 2, "never of many", 13, NULL, &many, &w->ops[3]));
	pair_do(&pair->other, "send 3 body %zu 4", BODY);
	need(!weft_recv(pair->node, pair->peer, 3, "body", 4, &into, &options, &w->ops[2]));
	/* In the middle of the body. */
	for (uint64_t until = pair_now_ns() + PAIR_LIMIT_NS;
	     pair_peek(w->into) == 0x55 && pair_now_ns() < until;)
		pair_sleep_ms(1);
	need(pair_peek(w->into + BODY - 1) == 0x55);
}

/* Who was met is dialled once for each operation: the first may come before the network is back. */
static void reach(struct pair *pair)
{
	uint64_t until = pair_now_ns() + PAIR_LIMIT_NS;
	enum weft_status status;
	struct weft_op *op;

	do {
		need(!weft_ping(pair->peer, NULL, &op));
		need(!weft_wait(op, PAIR_LIMIT_NS));
		status = weft_op_status(op);
		weft_op_free(op);
	} while (status == WEFT_UNAVAILABLE && pair_now_ns() < until);
	need(status == WEFT_OK);
}

/* In time, and why. */
static void end_waiting(struct waiting *w, uint64_t cut_ns)
{
	for (unsigned i = 0; i < PAIR_COUNT(w->ops); i++) {
		pair_ended(w->ops[i], WEFT_UNAVAILABLE);
		weft_op_free(w->ops[i]);
	}
	need(pair_now_ns() - cut_ns < CUT_NS);
	free(w->send.bytes);
	free(w->into);
}

static void operations_end_in_time_when_the_cable_is_cut(void **state)
{
	const char *provider;
	struct waiting waiting;
	struct pair pair;
	uint64_t cut_ns;

	(void)state;
	crossing_set("WEFT_HEARTBEAT", HEARTBEAT);
	crossing_set("WEFT_LOST", LOST);
	for (provider = pair_first(); provider; provider = pair_next()) {
		hosts_limit(1, 0, 10); /* the body takes 13 s, however late the cut is */
		crossing_open(&pair, provider, 1);
		pair_ping(pair.peer);
		begin_waiting(&waiting, &pair);
		cut_ns = pair_now_ns();
		hosts_cut(1, 0);
		end_waiting(&waiting, cut_ns);
		hosts_mend(1, 0);
		reach(&pair);
		hosts_restore();
		pair_do(&pair.other, "recv 5 here 300000 1");
		waiting.send = pair_send(pair.peer, 5, "here", 300000, 1);
		pair_sent(&waiting.send);
		weft_peer_close(pair.peer);
		pair.other.peer = NULL;
		need(!weft_node_close(pair.node));
		pair_kill(&pair.other, SIGKILL);
	}
}

static void a_cut_shorter_than_the_limit_fails_nothing(void **state)
{
	struct weft_counters counters = { .size = sizeof(counters) };
	const char *provider;
	struct weft_op *op;
	struct pair pair;

	(void)state;
	for (provider = pair_first(); provider; provider = pair_next()) {
		hosts_limit(1, 0, 100); /* the body takes 1.3 s */
		crossing_open(&pair, provider, 1);
		pair_ping(pair.peer);
		pair_do(&pair.other, "send 3 body %zu 4", BODY);
		op = pair_recv(pair.node, pair.peer, 3, "body");
		for (unsigned i = 0; i < 3; i++) {
			pair_sleep_ms(300);
			hosts_cut(1, 0);
			pair_sleep_ms(100 + 100 * i);
			hosts_mend(1, 0);
		}
		pair_received(op, BODY, 4);
		pair_do(&pair.other, "finish");
		pair_ping(pair.peer);
		need(!weft_node_counters(pair.node, &counters));
		need(!counters.peers_lost);
		crossing_close(&pair);
	}
}

/* Each way of each cable by itself. */
static void a_limit_of_one_network_is_not_anothers(void **state)
{
	const char *provider = pair_any();
	struct weft_node_options options = pair_options(provider);
	char here[40], there[40];
	struct pair pair = { .provider = provider };
	uint64_t took_ns[2];

	(void)state;
	hosts_limit(1, 0, 100);
	for (unsigned n = 0; n < 2; n++) {
		snprintf(here, sizeof(here), "%s:0", hosts_address(0, n));
		snprintf(there, sizeof(there), "%s:0", hosts_address(1, n));
		options.listen = here;
		need(!weft_node_open(&options, &pair.node));
		crossing_start(&pair.other, provider, 1, there, pair.node);
		pair.peer = pair.other.peer;
		pair_ping(pair.peer);
		took_ns[n] = pair_now_ns();
		pair_do(&pair.other, "send 3 body %zu 4", BODY);
		pair_received(pair_recv(pair.node, pair.peer, 3, "body"), BODY, 4);
		took_ns[n] = pair_now_ns() - took_ns[n];
		pair_do(&pair.other, "finish");
		crossing_close(&pair);
	}
	print_message("%zu MiB took %.2f s at 100 Mbit/s, and %.2f s without a limit\n",
		      BODY / MIB, (double)took_ns[0] / 1e9, (double)took_ns[1] / 1e9);
	/* 10 ns a bit, less what a bucket holds. */
	need(took_ns[0] > (uint64_t)BODY * 8 * 10 * 9 / 10);
	need(took_ns[1] < took_ns[0]);
}

int main(int argc, char **argv)
{
	static const struct hosts_plan plan = { .count = 2, .networks = 2 };
	const struct CMUnitTest tests[] = {
		crossing_test(operations_end_in_time_when_the_cable_is_cut),
		crossing_test(a_cut_shorter_than_the_limit_fails_nothing),
		crossing_test(a_limit_of_one_network_is_not_anothers),
	};
	int status;

	if (!crossing_begin(argc, argv, &plan, NULL, &status))
		return status;
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
