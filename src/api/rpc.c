/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "core/check.h"
#include "core/node.h"
#include "core/notes.h"
#include "core/op.h"
#include "core/reflection.h"
#include "core/rpc.h"
#include "core/stub.h"

int weft_stub_open(struct weft_peer *peer, const ProtobufCServiceDescriptor *descriptor,
		   struct weft_stub **stub)
{
	int err;

	if (WF_NEED(peer) || WF_NEED(descriptor) || WF_NEED(descriptor->name) || WF_NEED(stub))
		return -EINVAL;
	err = wf_check_node(peer->owner);
	return err ? err : wf_stub_open(peer, descriptor, stub);
}

void weft_stub_close(struct weft_stub *stub)
{
	wf_stub_close(stub);
}

ProtobufCService *weft_stub_service(struct weft_stub *stub)
{
	return WF_NEED(stub) ? NULL : &stub->service;
}

int weft_call_open(struct weft_stub *stub, const struct weft_call_options *options,
		   ProtobufCService **service, struct weft_op **op)
{
	if (WF_NEED(stub) || WF_NEED(service))
		return -EINVAL;
	return wf_stub_call(stub, options, service, op);
}

static const void *note_of(const struct weft_op *op, enum wf_call_note what, size_t *count)
{
	const struct wf_notes *notes;

	if (WF_NEED(op) || WF_NEED(count))
		return NULL;
	notes = op->class->kind == WF_OP_CALL ? op->call.notes : NULL;
	*count = notes && notes->what[what] ? notes->counts[what] : 0;
	return notes ? notes->what[what] : NULL;
}

const struct weft_metadata *weft_call_initial(const struct weft_op *op, size_t *count)
{
	return note_of(op, WF_CALL_INITIAL, count);
}

const struct weft_metadata *weft_call_trailing(const struct weft_op *op, size_t *count)
{
	return note_of(op, WF_CALL_TRAILING, count);
}

const void *weft_call_details(const struct weft_op *op, size_t *bytes)
{
	return WF_NEED(bytes) ? NULL : note_of(op, WF_CALL_DETAILS, bytes);
}

const ProtobufCMessage *weft_call_reply(const struct weft_op *op)
{
	if (WF_NEED(op))
		return NULL;
	return op->class->kind == WF_OP_CALL && wf_op_ended(op) ? op->call.reply : NULL;
}

int weft_op_compressed(const struct weft_op *op)
{
	if (WF_NEED(op))
		return -EINVAL;
	if (op->class->kind == WF_OP_CALL)
		return op->call.reply_compressed;
	return op->class->kind == WF_OP_READ && weft_op_ended(op) && op->read.compressed;
}

enum weft_status weft_reply_status(const char **message)
{
	return wf_rpc_status(message);
}

/* The server. */

int weft_serve(struct weft_node *node, ProtobufCService *service)
{
	return weft_serve_with(node, service, NULL);
}

int weft_serve_reflection(struct weft_node *node)
{
	int err = wf_check_node(node);

	return err ? err : wf_reflection_serve(node);
}
