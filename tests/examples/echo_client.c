/* SPDX-License-Identifier: BSD-2-Clause */
/* echo_client ADDRESS: sends the lines of its input, and prints each as it comes back. */
#define _GNU_SOURCE /* getline */
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>
#include "echo.pb-c.h"

WEFT_STREAM_TYPES(repeat, Echo__Line, Echo__Line);

/* End the program if @err says so, or the outcome of @op, which is waited for. */
static void check(int err, struct weft_op *op)
{
	if (!err && op)
		err = weft_wait(op, WEFT_FOREVER);
	if (!err && (!op || weft_op_status(op) == WEFT_OK))
		return;
	fprintf(stderr, "echo_client: %s\n", err ? weft_error() : weft_op_message(op));
	exit(1);
}

int main(int argc, char **argv)
{
	struct weft_node_options options = WEFT_NODE_OPTIONS_INIT;
	const Echo__Line *echo;
	Echo__Line line = ECHO__LINE__INIT;
	struct weft_op *call, *read;
	struct weft_stream *stream;
	struct weft_node *node;
	struct weft_peer *peer;
	struct weft_stub *stub;
	size_t room = 0;

	options.timeout_ns = WEFT_FOREVER; /* of the call: people type as long as they like */
	check(weft_node_open(&options, &node), NULL);
	check(weft_peer_open(node, argc > 1 ? argv[1] : "", &peer), NULL);
	check(weft_stub_open(peer, &echo__echo__descriptor, &stub), NULL);
	check(weft_stream_open(stub, "Repeat", NULL, &stream, &call), NULL);

	line.text = NULL; /* getline() makes it */
	while (getline(&line.text, &room, stdin) > 0) {
		check(repeat_ask(stream, &line, NULL, NULL), NULL); /* a failure ends the call */
		check(weft_stream_read(stream, NULL, &read), NULL);
		check(0, read);
		echo = repeat_answered(read);
		fputs(echo ? echo->text : "(the server says no more)\n", stdout);
		fflush(stdout);
		weft_op_free(read);
	}
	check(weft_stream_half_close(stream), NULL);
	check(0, call);

	free(line.text);
	weft_stream_close(stream);
	weft_op_free(call);
	weft_stub_close(stub);
	weft_peer_close(peer);
	check(weft_node_close(node), NULL);
}
