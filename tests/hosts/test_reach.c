/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts that reach each other: by which addresses, ports, cards and detours.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crossing.h"

#define HOSTS 9 /* as many others as there can be beside a test */
#define NETWORKS 2
#define BODY ((size_t)4 * 1024 * 1024)
#define LONG_BODY (8 * BODY)
#define BODIES_MAX 100
#define LITTLE ((uint64_t)BODY / 8) /* all that goes beside a body */

/* A body that comes here. */
static void receive_body(struct pair *pair, size_t bytes)
{
	pair_do(&pair->other, "send 3 body %zu 4", bytes);
	pair_received(pair_recv(pair->node, pair->peer, 3, "body"), bytes, 4);
	pair_do(&pair->other, "finish");
}

static void many_hosts_reach_one(void **state)
{
	struct pair_other others[HOSTS - 2];
	const char *provider;
	struct pair pair;

	(void)state;
	for (provider = pair_first(); provider; provider = pair_next()) {
		crossing_open(&pair, provider, 1);
		for (unsigned i = 0; i < PAIR_COUNT(others); i++)
			crossing_start(&others[i], provider, 2 + i, NULL, pair.node);
		pair_exchange(&pair, &pair.other);
		for (unsigned i = 0; i < PAIR_COUNT(others); i++)
			pair_exchange(&pair, &others[i]);
		for (unsigned i = 0; i < PAIR_COUNT(others); i++)
			crossing_end(&others[i]);
		crossing_close(&pair);
	}
}

static void a_receive_that_stays_hears_many_hosts(void **state)
{
	struct weft_recv_options options = { .size = sizeof(options), .flags = WEFT_RECV_MANY };
	struct pair_other others[4];
	struct weft_queue *queue;
	const char *provider;
	struct pair pair;
	struct weft_op *op;

	(void)state;
	options.op.size = sizeof(options.op);
	for (provider = pair_first(); provider; provider = pair_next()) {
		uint64_t sum = 0;

		crossing_open(&pair, provider, 1);
		need(!weft_queue_open(pair.node, &queue));
		options.op.queue = queue;
		need(!weft_recv(pair.node, NULL, 3, "many", 4, NULL, &options, NULL));
		for (unsigned i = 0; i < PAIR_COUNT(others); i++)
			crossing_start(&others[i], provider, 2 + i, NULL, pair.node);
		/* Each sends a short one and a long one, and all send at once. */
		for (unsigned i = 0; i < PAIR_COUNT(others); i++) {
			pair_do(&others[i], "send 3 many %u 1", 100 + i);
			pair_do(&others[i], "send 3 many %zu 1", BODY + i);
		}
		for (unsigned n = 0; n < 2 * PAIR_COUNT(others); n++) {
			need(weft_queue_next(queue, &op, 1, PAIR_LIMIT_NS) == 1);
			need(weft_op_status(op) == WEFT_OK);
			sum += (uint64_t)weft_op_tensor(op, NULL)->shape[0];
			pair_received(op, (size_t)weft_op_tensor(op, NULL)->shape[0], 1);
		}
		need(sum == 4 * (100 + BODY) + 2 * (0 + 1 + 2 + 3));
		for (unsigned i = 0; i < PAIR_COUNT(others); i++) {
			pair_do(&others[i], "finish");
			crossing_end(&others[i]);
		}
		weft_queue_close(queue);
		crossing_close(&pair);
	}
}

static void hosts_use_the_network_between_them(void **state)
{
	struct pair pair;

	(void)state;
	pair_any();
	crossing_open(&pair, "shm,tcp", 1);
	receive_body(&pair, BODY);
	need(strstr(crossing_dump(pair.node), "on tcp"));
	crossing_close(&pair);
}

static void processes_that_share_memory_use_it_whatever_their_network(void **state)
{
	struct weft_node_options options = pair_options("shm,tcp");
	struct pair pair = { .provider = options.provider };
	char listen[40];

	(void)state;
	pair_any();
	need(!weft_node_open(&options, &pair.node));
	hosts_start_on(1, true);
	snprintf(listen, sizeof(listen), "%s:0", hosts_address(1, 0));
	pair_start(&pair.other, pair.provider, listen, pair.node);
	pair.peer = pair.other.peer;
	receive_body(&pair, BODY);
	need(strstr(crossing_dump(pair.node), "on shm"));
	crossing_close(&pair);
}

static void nodes_reach_each_other_by_ipv6(void **state)
{
	const char *provider;
	char address[40], other[40];
	struct pair pair;

	(void)state;
	snprintf(address, sizeof(address), "[%s]:0", hosts_address6(0, 0));
	snprintf(other, sizeof(other), "[%s]:0", hosts_address6(1, 0));
	crossing_set("WEFT_LISTEN", address);
	for (provider = pair_first(); provider; provider = pair_next()) {
		struct weft_node_options options = pair_options(provider);

		pair = (struct pair){ .provider = provider };
		need(!weft_node_open(&options, &pair.node));
		crossing_start(&pair.other, provider, 1, other, pair.node);
		pair.peer = pair.other.peer;
		receive_body(&pair, BODY);
		crossing_close(&pair);
	}
}

static void a_node_is_reached_where_it_says(void **state)
{
	struct weft_node_options options;
	const char *provider;
	struct weft_node *node;
	struct pair pair;

	(void)state;
	for (provider = pair_first(); provider; provider = pair_next()) {
		options = pair_options(provider);
		options.listen = "0.0.0.0:0";
		need(weft_node_open(&options, &node) == -EINVAL);
		need(strstr(weft_error(), "WEFT_ADVERTISE") != NULL);

		options.listen = NULL;
		pair = (struct pair){ .provider = provider };
		need(!weft_node_open(&options, &pair.node));
		setenv("WEFT_ADVERTISE", "10.77.1.2:0", 1);
		crossing_start(&pair.other, provider, 1, "0.0.0.0:0", pair.node);
		unsetenv("WEFT_ADVERTISE");
		pair.peer = pair.other.peer;
		need(!strncmp(pair.other.address, "10.77.1.2:", 10));
		receive_body(&pair, BODY);
		crossing_close(&pair);
	}
}

#define FIREWALL \
	"nft 'add table inet fire; " \
	"add chain inet fire in { type filter hook input priority 0; }; " \
	"add rule inet fire in iifname \"eth*\" tcp flags & (syn|ack) == syn " \
	"tcp dport != { 4000, 5000-5009 } drop' 2>/dev/null"

static void ping_ends(struct pair *pair, enum weft_status status, uint64_t timeout_ns)
{
	struct weft_op_options options = { .size = sizeof(options), .timeout_ns = timeout_ns };
	struct weft_op *op;

	need(!weft_ping(pair->peer, &options, &op));
	pair_ended(op, status);
	weft_op_free(op);
}

static void rails_keep_to_their_ports(void **state)
{
	const char *provider;
	char listen[40];
	struct pair pair;

	(void)state;
	crossing_skip_unless(hosts_do(1, FIREWALL), "a firewall by nft (Debian: nftables)");
	snprintf(listen, sizeof(listen), "%s:4000", hosts_address(1, 0));
	for (provider = pair_first(); provider; provider = pair_next()) {
		for (int within = 1; within >= 0; within--) {
			struct weft_node_options options = pair_options(provider);

			pair = (struct pair){ .provider = provider };
			need(!weft_node_open(&options, &pair.node));
			if (within)
				setenv("WEFT_PORTS", "5000-5009", 1);
			crossing_start(&pair.other, provider, 1, listen, pair.node);
			unsetenv("WEFT_PORTS");
			pair.peer = pair.other.peer;
			if (within)
				receive_body(&pair, BODY);
			else
				ping_ends(&pair, WEFT_DEADLINE_EXCEEDED, 3000 * PAIR_MS);
			crossing_close(&pair);
		}
	}
}

/* Who can't be dialled is answered as the peer that a tensor of its came from. */
static void answer_who_came(struct pair *pair)
{
	struct weft_op *came = pair_recv(pair->node, NULL, 4, "here-I-am");
	struct pair_send send;

	pair_do(&pair->other, "send 4 here-I-am 300000 1");
	pair_ended(came, WEFT_OK);
	pair_do(&pair->other, "recv 5 there 300000 2");
	send = pair_send(weft_op_peer(came), 5, "there", 300000, 2);
	pair_sent(&send);
	pair_do(&pair->other, "finish");
	pair_received(came, 300000, 1);
}

/* Network 1 is behind host 1, and nobody there can be dialled from here. */
static void a_node_behind_a_router_dials_out(void **state)
{
	char reason[HOSTS_REASON_BYTES], listen[40];
	const char *provider;
	struct pair pair;

	(void)state;
	crossing_skip_unless(hosts_translate(1, 1, 0, reason), reason);
	need(hosts_do(0, "ip link set eth1 down"));
	need(hosts_do(2, "ip link set eth0 down && ip route add default via %s",
		      hosts_address(1, 1)));
	snprintf(listen, sizeof(listen), "%s:0", hosts_address(2, 1));
	for (provider = pair_first(); provider; provider = pair_next()) {
		struct weft_node_options options = pair_options(provider);

		if (!strcmp(provider, "sockets")) /* both sides dial each other's rails */
			continue;
		pair = (struct pair){ .provider = provider };
		need(!weft_node_open(&options, &pair.node));
		crossing_start(&pair.other, provider, 2, listen, pair.node);
		pair.peer = pair.other.peer;
		pair_do(&pair.other, "ping");
		answer_who_came(&pair);
		crossing_close(&pair);
	}
}

static void a_name_is_reached_at_whichever_of_its_addresses_lives(void **state)
{
	static const char *const names =
		"10.77.0.99 many\nfd77::99 many\n%s many\n%s many\n";
	const char *provider = pair_any();
	struct weft_node_options options = pair_options(provider);
	struct pair pair = { .provider = provider };
	FILE *file = fopen("/etc/hosts", "w");
	char listen[40];

	(void)state;
	/* Nobody, nobody, somebody who does not listen, and who is meant. */
	need(file && fprintf(file, names, hosts_address(2, 0), hosts_address(1, 0)) > 0);
	fclose(file);
	need(!weft_node_open(&options, &pair.node));
	snprintf(listen, sizeof(listen), "%s:4000", hosts_address(1, 0));
	crossing_start(&pair.other, provider, 1, listen, NULL);
	need(!weft_peer_open(pair.node, "many:4000", &pair.peer));
	pair_ping(pair.peer);
	crossing_close(&pair);
}

/* In both hosts, those of network 1. */
static void choose_cards(const char *mine, const char *its)
{
	const char *provider;
	char here[40], there[40];
	struct pair pair;
	uint64_t before[NETWORKS];

	snprintf(here, sizeof(here), "%s:0", hosts_address(0, 1));
	snprintf(there, sizeof(there), "%s:0", hosts_address(1, 1));
	for (provider = pair_first(); provider; provider = pair_next()) {
		struct weft_node_options options = pair_options(provider);

		crossing_set("WEFT_DEVICE", mine);
		pair = (struct pair){ .provider = provider };
		options.listen = here;
		need(!weft_node_open(&options, &pair.node));
		crossing_set("WEFT_DEVICE", its);
		crossing_start(&pair.other, provider, 1, there, pair.node);
		pair.peer = pair.other.peer;
		for (unsigned n = 0; n < NETWORKS; n++)
			before[n] = crossing_bytes(n);
		receive_body(&pair, BODY);
		need(crossing_bytes(1) - before[1] > BODY);
		need(crossing_bytes(0) - before[0] < LITTLE);
		crossing_close(&pair);
	}
}

/* Receive a long body.  Has each card carried an eighth of it? */
static bool comes_by_each(struct pair *pair)
{
	uint64_t before[NETWORKS];
	bool each = true;

	for (unsigned n = 0; n < NETWORKS; n++)
		before[n] = crossing_bytes(n);
	receive_body(pair, LONG_BODY);
	for (unsigned n = 0; n < NETWORKS; n++)
		each = each && crossing_bytes(n) - before[n] > LONG_BODY / 8;
	return each;
}

/* Bodies go over all that are named, and doors are on one. */
static void two_cards_carry_a_body_together(void **state)
{
	const char *provider;
	unsigned bodies;
	struct pair pair;

	(void)state;
	for (provider = pair_first(); provider; provider = pair_next()) {
		struct weft_node_options options = pair_options(provider);

		/* Where one endpoint serves all peers there is one card. */
		if (!strcmp(provider, "sockets"))
			continue;
		crossing_set("WEFT_DEVICE", "eth0,eth1");
		pair = (struct pair){ .provider = provider };
		need(!weft_node_open(&options, &pair.node));
		crossing_start(&pair.other, provider, 1, NULL, pair.node);
		pair.peer = pair.other.peer;
		/*
		 * The first may be over before the second card is there; how much of each a card
		 * gets depends on how busy the machine is just then.
		 */
		for (bodies = 1; !comes_by_each(&pair); bodies++)
			need(bodies < BODIES_MAX);
		crossing_close(&pair);
	}
}

static void a_card_is_chosen_by_its_name(void **state)
{
	(void)state;
	choose_cards("eth1", "eth1");
}

static void a_card_is_chosen_by_its_address(void **state)
{
	(void)state;
	choose_cards(hosts_address(0, 1), hosts_address(1, 1));
}

int main(int argc, char **argv)
{
	static const struct hosts_plan plan = { .count = HOSTS, .networks = NETWORKS };
	const struct CMUnitTest tests[] = {
		crossing_test(many_hosts_reach_one),
		crossing_test(a_receive_that_stays_hears_many_hosts),
		crossing_test(hosts_use_the_network_between_them),
		crossing_test(processes_that_share_memory_use_it_whatever_their_network),
		crossing_test(nodes_reach_each_other_by_ipv6),
		crossing_test(a_node_is_reached_where_it_says),
		crossing_test(rails_keep_to_their_ports),
		crossing_test(a_node_behind_a_router_dials_out),
		crossing_test(a_name_is_reached_at_whichever_of_its_addresses_lives),
		crossing_test(a_card_is_chosen_by_its_name),
		crossing_test(two_cards_carry_a_body_together),
		crossing_test(a_card_is_chosen_by_its_address),
	};
	int status;

	if (!crossing_begin(argc, argv, &plan, NULL, &status))
		return status;
	return cmocka_run_group_tests(tests, NULL, pair_group_teardown);
}
