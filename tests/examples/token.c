/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server that answers only who shows a token, and its caller.
 *
 *   token SECRET             prints its address and serves until it is killed
 *   token SECRET ADDRESS     calls the one at that address
 *
 * The token is a credential in plain view of whoever can see the wire: where that is not
 * a network of one's own, it needs more than this.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>

#include "hello.pb-c.h"

static void check(int err)
{
	if (err) {
		fprintf(stderr, "token: %s\n", weft_error());
		exit(1);
	}
}

/* The server. */

/* Takes as long wherever the two differ, so that nobody finds the secret byte by byte. */
static int is_same(const char *given, const char *secret)
{
	size_t bytes = strlen(secret);
	unsigned char differs = 0;

	if (strlen(given) != bytes)
		return 0;
	for (size_t i = 0; i < bytes; i++)
		differs |= (unsigned char)(given[i] ^ secret[i]);
	return !differs;
}

static enum weft_status admit(void *secret, struct weft_served *call, const char *service,
			      const char *method, const char **message)
{
	size_t count;
	const struct weft_metadata *pairs = weft_served_metadata(call, &count);

	(void)service;
	(void)method;
	for (size_t i = 0; i < count; i++)
		if (!strcmp(pairs[i].key, "authorization") &&
		    !strncmp(pairs[i].value, "Bearer ", 7) &&
		    is_same((const char *)pairs[i].value + 7, secret))
			return WEFT_OK;
	*message = "a token is needed, and none that was given is right";
	return WEFT_UNAUTHENTICATED;
}

static void served(void *secret, struct weft_served *call, const char *service, const char *method,
		   enum weft_status status, uint64_t took_ns)
{
	(void)secret;
	(void)took_ns;
	printf("%s/%s for %s: %s\n", service, method, weft_peer_name(weft_served_peer(call)),
	       weft_status_name(status));
	fflush(stdout);
}

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

static void serve(char *secret)
{
	struct weft_interceptor guard = WEFT_INTERCEPTOR_INIT;
	const struct weft_interceptor *const all[] = { &guard, NULL };
	Hello__Greeter_Service greeter = HELLO__GREETER__INIT();
	ProtobufCService *const services[] = { &greeter.base, NULL };
	struct weft_node_options options = WEFT_NODE_OPTIONS_INIT;
	struct weft_node *node;

	guard.arg = secret;
	guard.admit = admit;
	guard.served = served;
	options.services = services;
	options.interceptors = all;
	greeter.greet = greet;
	check(weft_node_open(&options, &node));
	printf("%s\n", weft_node_address(node));
	fflush(stdout);
	for (;;)
		pause();
}

/* The caller. */

static enum weft_status begin(void *secret, struct weft_op *op, struct weft_served *parent,
			      const char *service, const char *method, const char **message)
{
	char value[200];
	struct weft_metadata token = { "authorization", value, 0 };

	(void)parent;
	(void)service;
	(void)method;
	token.bytes = (size_t)snprintf(value, sizeof(value), "Bearer %.180s", (char *)secret);
	if (!weft_call_add_metadata(op, &token, 1))
		return WEFT_OK;
	*message = weft_error();
	return WEFT_INVALID_ARGUMENT;
}

static void greeted(const Hello__Greeting *greeting, void *unused)
{
	(void)unused;
	if (greeting)
		printf("%s\n", greeting->text);
}

static int visit(char *secret, const char *address)
{
	struct weft_interceptor bearer = WEFT_INTERCEPTOR_INIT;
	const struct weft_interceptor *const all[] = { &bearer, NULL };
	struct weft_node_options options = WEFT_NODE_OPTIONS_INIT;
	Hello__Name name = HELLO__NAME__INIT;
	ProtobufCService *service;
	struct weft_node *node;
	struct weft_peer *peer;
	struct weft_stub *stub;
	struct weft_op *op;
	int failed;

	bearer.arg = secret;
	bearer.begin = begin;
	options.interceptors = all;
	check(weft_node_open(&options, &node));
	check(weft_peer_open(node, address, &peer));
	check(weft_stub_open(peer, &hello__greeter__descriptor, &stub));
	name.name = "world";
	check(weft_call_open(stub, NULL, &service, &op));
	hello__greeter__greet(service, &name, greeted, NULL);
	check(weft_wait(op, WEFT_FOREVER));
	failed = weft_op_status(op) != WEFT_OK;
	if (failed)
		fprintf(stderr, "token: %s: %s\n", weft_status_name(weft_op_status(op)),
			weft_op_message(op));
	weft_op_free(op);
	weft_stub_close(stub);
	weft_peer_close(peer);
	check(weft_node_close(node));
	return failed;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: token SECRET [ADDRESS]\n");
		return 2;
	}
	if (argc > 2)
		return visit(argv[1], argv[2]);
	serve(argv[1]);
	return 0;
}
