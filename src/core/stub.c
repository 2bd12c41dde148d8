/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stubs: two services of protobuf-c whose methods are calls of a peer.  The service of a stub
 * makes a call each time, and the service of a call that was opened invokes that call, once.
 */
#include "core/stub.h"

#include <errno.h>
#include <stdlib.h>

#include "core/check.h"
#include "core/intercept.h"
#include "core/last.h"
#include "core/op.h"
#include "core/peer.h"
#include "core/worker.h"
#include "rpc/codec.h"
#include "util/clock.h"

/* Pack the request of @op.  -ENOMEM. */
static int pack(struct weft_op *op, const ProtobufCMessage *input, size_t bytes)
{
	uint32_t understood = atomic_load(&op->peer->compressions);
	struct wf_codec_packed request;
	int err = wf_codec_pack(input, bytes,
				wf_codec_compresses(&op->worker->engine.options, understood,
						      op->call.compression),
				&op->worker->engine.pool, &request);

	if (!err)
		wf_call_request(&op->call.call, &request);
	return err;
}

/* Pack the request and submit the call; the closure reports any failure. */
static void invoke(struct weft_op *op, const ProtobufCServiceDescriptor *descriptor,
		   unsigned method, const ProtobufCMessage *input, ProtobufCClosure closure,
		   void *closure_data)
{
	const ProtobufCMethodDescriptor *m = &descriptor->methods[method];
	size_t bytes = protobuf_c_message_get_packed_size(input);
	struct wf_call *call = &op->call.call;

	op->call.begun = true;
	op->call.closure = closure;
	op->call.closure_data = closure_data;
	op->call.output = m->output;
	op->call.request_bytes = bytes;
	op->call.service_name = descriptor->name;
	op->call.method_name = m->name;
	wf_intercept_begin(op);
	op->call.packed = !op->outcome.error.code && bytes <= WF_CALL_BYTES_MOST &&
			  !pack(op, input, bytes);
	if (op->call.packed) {
		call->service = descriptor->name;
		call->method = m->name;
	}
	call->began_ns = wf_clock_now();
	wf_op_submit(op, call->began_ns);
}

static void invoke_stub(ProtobufCService *service, unsigned method, const ProtobufCMessage *input,
			ProtobufCClosure closure, void *closure_data)
{
	struct weft_stub *stub = WF_CONTAINER(service, struct weft_stub, service);
	struct weft_op *op;
	int err = WF_NEED(input) ? -EINVAL : wf_rpc_open(stub->peer, NULL, &op);

	if (err) {
		wf_rpc_refuse(closure, closure_data, err);
		return;
	}
	invoke(op, service->descriptor, method, input, closure, closure_data);
	wf_op_free(op);
}

static void destroy_nothing(ProtobufCService *service)
{
	(void)service; /* weft_stub_close and weft_op_free free services */
}

int wf_stub_open(struct weft_peer *peer, const ProtobufCServiceDescriptor *descriptor,
		 struct weft_stub **stub)
{
	struct weft_stub *fresh = calloc(1, sizeof(*fresh));

	if (!fresh)
		return wf_last_set(-ENOMEM, "no memory for a stub");
	fresh->peer = peer;
	fresh->service.descriptor = descriptor;
	fresh->service.invoke = invoke_stub;
	fresh->service.destroy = destroy_nothing;
	*stub = fresh;
	return 0;
}

void wf_stub_close(struct weft_stub *stub)
{
	free(stub);
}

static void invoke_once(ProtobufCService *service, unsigned method, const ProtobufCMessage *input,
			ProtobufCClosure closure, void *closure_data)
{
	struct weft_op *op = WF_CONTAINER(service, struct weft_op, call.service);
	int err = WF_NEED(input) ? -EINVAL : wf_check_node(op->owner);
	bool detached;

	if (!err && op->call.begun)
		err = wf_last_set(-EBADFD, "the call has been invoked: it is for one invocation");
	if (err) {
		wf_rpc_refuse(closure, closure_data, err);
		return;
	}
	/* Any other call's closure, or taker from the queue, may free the call. */
	detached = op->call.detached && !op->entry.sole;
	invoke(op, service->descriptor, method, input, closure, closure_data);
	if (detached)
		wf_op_free(op);
}

int wf_stub_call(struct weft_stub *stub, const struct weft_call_options *options,
		 ProtobufCService **service, struct weft_op **op)
{
	struct weft_op *fresh;
	int err = wf_rpc_new(stub->peer, options, &fresh);

	if (err)
		return err;
	fresh->call.service.descriptor = stub->service.descriptor;
	fresh->call.service.invoke = invoke_once;
	fresh->call.service.destroy = destroy_nothing;
	*service = &fresh->call.service;
	fresh->call.detached = !op;
	fresh->entry.sole = !op && wf_op_queue(fresh);
	if (op)
		*op = fresh;
	return 0;
}
