/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/remote.h"

#include <errno.h>
#include <stdlib.h>

int remote_open(struct remote *r, const struct tool_command *command, const char *address,
		uint64_t limit_ns)
{
	int status;

	*r = (struct remote){ .command = command, .address = address, .limit_ns = limit_ns };
	tool_catch_signals();
	if (tool_node_open(command, NULL, &r->node))
		return tool_fail(command, "%s", weft_error());
	status = tool_peer_open(command, r->node, address, &r->peer);
	if (!status &&
	    weft_stub_open(r->peer, &weft__reflect__reflection__descriptor, &r->reflection))
		status = tool_fail(command, "%s", weft_error());
	if (status)
		remote_close(r);
	return status;
}

void remote_close(struct remote *r)
{
	weft_stub_close(r->reflection);
	if (r->peer)
		weft_peer_close(r->peer);
	tool_node_close(r->node);
}

int remote_wait(struct remote *r, struct weft_op *op, const char *what)
{
	int err = tool_wait(op), status = TOOL_OK;

	if (err == -EINTR)
		status = TOOL_INTERRUPTED;
	else if (err)
		status = tool_fail(r->command, "%s: %s", r->address, weft_error());
	else if (weft_op_status(op) != WEFT_OK)
		status = tool_op_failed(r->command, op, what);
	tool_drop(op);
	return status;
}

/* Copy a reply, which ends with its closure. */
static ProtobufCMessage *copy(const ProtobufCMessage *message)
{
	size_t bytes = protobuf_c_message_get_packed_size(message);
	ProtobufCMessage *fresh = NULL;
	uint8_t *packed = malloc(bytes + 1);

	if (packed) {
		protobuf_c_message_pack(message, packed);
		fresh = protobuf_c_message_unpack(message->descriptor, NULL, bytes, packed);
	}
	free(packed);
	return fresh;
}

static void heard(const ProtobufCMessage *reply, void *arg)
{
	ProtobufCMessage **at = arg;

	if (reply)
		*at = copy(reply);
}

/* Call @method of the reflection service with @request. */
static int ask(struct remote *r, unsigned method, const ProtobufCMessage *request,
	       ProtobufCMessage **reply)
{
	struct weft_call_options options = {
		.size = sizeof(options),
		.op = { .size = sizeof(options.op), .timeout_ns = r->limit_ns },
	};
	ProtobufCService *service;
	struct weft_op *op;
	int status;

	*reply = NULL;
	if (weft_call_open(r->reflection, &options, &service, &op))
		return tool_fail(r->command, "%s", weft_error());
	service->invoke(service, method, request, heard, reply);
	status = remote_wait(r, op, r->address);
	if (!status && !*reply)
		status = tool_fail(r->command, "no memory for what %s says", r->address);
	return status;
}

int remote_names(struct remote *r, Weft__Reflect__Names **names)
{
	Weft__Reflect__Nothing nothing = WEFT__REFLECT__NOTHING__INIT;

	return ask(r, 0, &nothing.base, (ProtobufCMessage **)(void *)names);
}

int remote_describe(struct remote *r, const char *service, Weft__Reflect__Description **said)
{
	Weft__Reflect__Name name = WEFT__REFLECT__NAME__INIT;

	name.name = (char *)(uintptr_t)service;
	return ask(r, 1, &name.base, (ProtobufCMessage **)(void *)said);
}
