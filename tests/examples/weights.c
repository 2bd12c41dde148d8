/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Weights of a model for many followers, which come when they like, pass the weights on to each
 * other, and may die meanwhile.
 *
 *   weights lead COUNT            prints its address, and ends when COUNT followers came
 *   weights follow ADDRESS        gets the weights
 *   weights follow ADDRESS die    ends when it has half of them
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>

#define BYTES ((size_t)16 << 20)
#define VERSION 1 /* the step of the weights; the next version is the next step */
#define WEIGHTS "weights", 7
#define HELLO "hello", 5

static void check(int err)
{
	if (err) {
		fprintf(stderr, "weights: %s\n", weft_error());
		exit(1);
	}
}

/* Part @i of the weights, which a model would have learned. */
static uint32_t weight(size_t i)
{
	return (uint32_t)i * 2654435761u;
}

static uint32_t *make_room(void)
{
	uint32_t *room = malloc(BYTES);

	if (!room) {
		fprintf(stderr, "weights: no memory\n");
		exit(1);
	}
	return room;
}

static struct weft_tensor tensor_of(void *data, int64_t *count)
{
	return (struct weft_tensor){ .data = data,
				     .device = { WEFT_CPU, 0 },
				     .ndim = 1,
				     .dtype = { WEFT_UINT, 32, 1 },
				     .shape = count };
}

/* The leader */

/* Wait for the next follower that says hello. */
static struct weft_peer *next_follower(struct weft_node *node)
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;
	struct weft_peer *follower;
	struct weft_op *op;

	options.op.timeout_ns = WEFT_FOREVER;
	check(weft_recv(node, NULL, VERSION, HELLO, NULL, &options, &op));
	check(weft_wait(op, WEFT_FOREVER));
	follower = weft_op_peer(op);
	weft_op_free(op);
	return follower;
}

/* Wait for the end of a broadcast, and count who has the weights.  NULL: there was none. */
static unsigned end(struct weft_op *all)
{
	enum weft_status status;
	const char *why;
	unsigned good = 0;

	if (!all)
		return 0;
	check(weft_wait(all, WEFT_FOREVER));
	for (size_t i = 0; !weft_broadcast_outcome(all, i, &status, &why); i++) {
		good += status == WEFT_OK;
		if (status != WEFT_OK)
			printf("lost a follower: %s\n", why);
	}
	weft_op_free(all);
	return good;
}

static void lead(struct weft_node *node, unsigned count)
{
	int64_t words = BYTES / sizeof(uint32_t);
	uint32_t *data = make_room();
	struct weft_tensor weights = tensor_of(data, &words);
	struct weft_op *all = NULL;
	unsigned good = 0;

	for (size_t i = 0; i < BYTES / sizeof(data[0]); i++)
		data[i] = weight(i);
	printf("%s\n", weft_node_address(node));
	fflush(stdout);
	for (unsigned i = 0; i < count; i++) {
		struct weft_peer *follower = next_follower(node);

		/* Followers that come while others receive join them. */
		if (all && !weft_broadcast_add(all, follower))
			continue;
		good += end(all);
		check(weft_broadcast(&follower, 1, VERSION, WEIGHTS, &weights, NULL, &all));
	}
	good += end(all);
	printf("%u of %u have the weights\n", good, count);
	free(data);
}

/* A follower */

/* Die with half of the weights, while others may be reading them here. */
static void die(void *arg, const struct weft_tensor *tensor, uint64_t bytes)
{
	(void)arg;
	(void)tensor;
	if (bytes >= BYTES / 2)
		_exit(3);
}

static void say_hello(struct weft_peer *leader)
{
	uint32_t word = 0;
	int64_t one = 1;
	struct weft_tensor hello = tensor_of(&word, &one);
	enum weft_status status;
	struct weft_op *op;

	check(weft_send(leader, VERSION, HELLO, &hello, NULL, &op));
	check(weft_finish(op, &status));
}

static void follow(struct weft_node *node, const char *address, int dies)
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;
	int64_t words = BYTES / sizeof(uint32_t);
	uint32_t *data = make_room();
	struct weft_tensor weights = tensor_of(data, &words);
	enum weft_status status;
	struct weft_peer *leader;
	struct weft_op *op;

	check(weft_peer_open(node, address, &leader));
	options.flags = WEFT_RELAY; /* take them from others, and pass them on */
	options.came = dies ? die : NULL;
	check(weft_recv(node, leader, VERSION, WEIGHTS, &weights, &options, &op));
	say_hello(leader);
	check(weft_finish(op, &status));
	if (status != WEFT_OK) {
		fprintf(stderr, "weights: %s\n", weft_error());
		exit(1);
	}
	for (size_t i = 0; i < BYTES / sizeof(data[0]); i++)
		if (data[i] != weight(i)) {
			fprintf(stderr, "weights: part %zu is wrong\n", i);
			exit(1);
		}
	printf("has the weights\n");
	weft_peer_close(leader);
	free(data);
}

int main(int argc, char **argv)
{
	struct weft_node *node;

	check(weft_node_open(NULL, &node));
	if (argc == 3 && !strcmp(argv[1], "lead")) {
		lead(node, (unsigned)strtoul(argv[2], NULL, 10));
	} else if (argc >= 3 && !strcmp(argv[1], "follow")) {
		follow(node, argv[2], argc == 4 && !strcmp(argv[3], "die"));
	} else {
		fprintf(stderr, "usage: weights lead COUNT | weights follow ADDRESS [die]\n");
		return 2;
	}
	check(weft_node_close(node));
	return 0;
}
