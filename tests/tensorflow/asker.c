/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A caller of weft.tensorflow.Tensors that waits for its tensor without a limit.
 *
 * usage: asker ADDRESS STEP KEY                      calls Receive
 *        asker ADDRESS STEP KEY DEVICE INCARNATION   calls ReceiveBuffer
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

#include "tensors.pb-c.h"

static ProtobufCBinaryData bytes(char *text)
{
	return (ProtobufCBinaryData){ strlen(text), (uint8_t *)text };
}

static void ignore(const Weft__Tensorflow__Have *have, void *arg)
{
	(void)have;
	(void)arg;
}

static void ask(ProtobufCService *tensors, char **argv)
{
	Weft__Tensorflow__Want want = WEFT__TENSORFLOW__WANT__INIT;
	Weft__Tensorflow__WantBuffer buffer = WEFT__TENSORFLOW__WANT_BUFFER__INIT;

	want.step = buffer.step = atoll(argv[2]);
	want.key = buffer.key = bytes(argv[3]);
	if (!argv[4]) {
		weft__tensorflow__tensors__receive(tensors, &want, ignore, NULL);
		return;
	}
	buffer.device = bytes(argv[4]);
	buffer.incarnation = strtoull(argv[5], NULL, 10);
	weft__tensorflow__tensors__receive_buffer(tensors, &buffer, ignore, NULL);
}

int main(int argc, char **argv)
{
	struct weft_node_options o = WEFT_NODE_OPTIONS_INIT;
	struct weft_call_options forever = WEFT_CALL_OPTIONS_INIT;
	struct weft_node *node;
	struct weft_peer *peer;
	struct weft_stub *stub;
	ProtobufCService *tensors;
	struct weft_op *op;

	forever.op.timeout_ns = WEFT_FOREVER;
	if (argc != 4 && argc != 6)
		return 2;
	if (weft_node_open(&o, &node) || weft_peer_open(node, argv[1], &peer) ||
	    weft_stub_open(peer, &weft__tensorflow__tensors__descriptor, &stub) ||
	    weft_call_open(stub, &forever, &tensors, &op)) {
		fprintf(stderr, "asker: %s\n", weft_error());
		return 1;
	}
	ask(tensors, argv);
	weft_wait(op, WEFT_FOREVER);
	fprintf(stderr, "asker: %s\n", weft_op_message(op));
	return 1;
}
