/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call and a tensor from one process to another.
 *
 *   hello              prints its address and waits
 *   hello ADDRESS      calls the one at that address and sends it numbers
 */
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

#include "hello.pb-c.h"

static void check(int err)
{
	if (err) {
		fprintf(stderr, "hello: %s\n", weft_error());
		exit(1);
	}
}

/* Wait for the outcome; anything but success ends the program. */
static void finish(struct weft_op *op)
{
	check(weft_wait(op, WEFT_FOREVER)); /* operations have a deadline */
	if (weft_op_status(op) != WEFT_OK) {
		fprintf(stderr, "hello: %s\n", weft_op_message(op));
		exit(1);
	}
}

/* The server's side of the call: on weft's thread, so it must not block. */
static void greet(Hello__Greeter_Service *service, const Hello__Name *name,
		  Hello__Greeting_Closure reply, void *call)
{
	Hello__Greeting greeting = HELLO__GREETING__INIT;
	char text[100];

	(void)service;
	snprintf(text, sizeof(text), "hello, %.80s", name->name);
	greeting.text = text;
	reply(&greeting, call);
}

/* The client's side of it. */
static void greeted(const Hello__Greeting *greeting, void *unused)
{
	(void)unused;
	if (greeting) /* NULL: the call failed, and its operation says why */
		printf("%s\n", greeting->text);
}

static void serve(struct weft_node *node)
{
	static Hello__Greeter_Service service = HELLO__GREETER__INIT(); /* until the node is closed */
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;
	const struct weft_tensor *numbers;
	struct weft_op *op;

	service.greet = greet;
	check(weft_serve(node, &service.base));
	printf("%s\n", weft_node_address(node));
	fflush(stdout);

	/* From anybody, of any type and shape: the tensor says what it is. */
	options.op.timeout_ns = WEFT_FOREVER;
	check(weft_recv(node, NULL, 1, "numbers", 7, NULL, &options, &op));
	finish(op);
	numbers = weft_op_tensor(op, NULL);
	if (numbers->dtype.code != WEFT_FLOAT || numbers->dtype.bits != 64 ||
	    numbers->ndim != 1 || numbers->shape[0] < 1) {
		fprintf(stderr, "hello: no list of doubles\n");
		exit(1);
	}
	printf("%lld numbers, the last is %g\n", (long long)numbers->shape[0],
	       ((double *)numbers->data)[numbers->shape[0] - 1]);
	weft_op_free(op);
}

static void visit(struct weft_node *node, const char *address)
{
	static double values[100000];
	int64_t shape[] = { 100000 };
	struct weft_tensor numbers = { .data = values, .ndim = 1, .shape = shape,
				       .device = { WEFT_CPU, 0 },
				       .dtype = { WEFT_FLOAT, 64, 1 } };
	Hello__Name name = HELLO__NAME__INIT;
	ProtobufCService *service;
	struct weft_peer *peer;
	struct weft_stub *stub;
	struct weft_op *op;

	check(weft_peer_open(node, address, &peer));
	check(weft_stub_open(peer, &hello__greeter__descriptor, &stub));

	name.name = "world";
	check(weft_call_open(stub, NULL, &service, &op));
	hello__greeter__greet(service, &name, greeted, NULL);
	finish(op);
	weft_op_free(op);

	for (int i = 0; i < 100000; i++)
		values[i] = i;
	check(weft_send(peer, 1, "numbers", 7, &numbers, NULL, &op));
	finish(op);
	weft_op_free(op);

	weft_stub_close(stub);
	weft_peer_close(peer);
}

int main(int argc, char **argv)
{
	struct weft_node *node;

	check(weft_node_open(NULL, &node));
	if (argc > 1)
		visit(node, argv[1]);
	else
		serve(node);
	check(weft_node_close(node));
	return 0;
}
