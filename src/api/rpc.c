/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"

struct weft_stub {
	ProtobufCService service; /* what generated functions get */
	struct weft_peer *peer;
};

/* How the call ended whose closure runs in this thread. */
static _Thread_local const struct wf_error *replying;

/* Of two bodies that of the longer one, with the times of the way out and back. */
static void set_path(struct weft_op *op, const struct wf_path *request, const struct wf_path *reply)
{
	bool back = reply->bytes > request->bytes;
	struct wf_path path = back ? *reply : *request;

	path.queued_ns = request->queued_ns;
	path.matched_ns = reply->matched_ns;
	path.first_ns = reply->first_ns;
	path.last_ns = reply->last_ns;
	/* A message is packed once, and unpacked once. */
	wf_op_path_set(op, &path, 1 + (!back && request->way == WF_BODY_EAGER));
}

static void call_done(struct wf_call *call, const struct wf_error *e, enum weft_executed executed,
		      const uint8_t *reply, size_t bytes)
{
	struct weft_op *op = WF_CONTAINER(call, struct weft_op, call.call);
	struct wf_error bad;

	op->call.running = false;
	if (!e) {
		op->call.reply =
			protobuf_c_message_unpack(op->call.output, NULL, bytes, reply);
		if (!op->call.reply) {
			wf_error_set(&bad, -EPROTO, "the reply does not unpack");
			e = &bad;
		}
	}
	set_path(op, &call->parcel.path, &call->reply_path);
	wf_op_finish(op, e, executed);
}

static void call_quiet(struct wf_call *call)
{
	wf_op_put(WF_CONTAINER(call, struct weft_op, call.call));
}

void wf_rpc_start(struct weft_op *op)
{
	struct wf_call *call = &op->call.call;
	struct wf_link *link;
	struct wf_error e;

	/* It may have been invoked after this turn began. */
	call->began_ns = WF_MAX(call->began_ns, op->desk->worker.now_ns);
	if (!op->call.packed) {
		wf_error_set(&e, op->call.request_bytes > WF_CALL_BYTES_MAX ? -EMSGSIZE : -ENOMEM,
			     "a request of %zu bytes: the limit is %zu", op->call.request_bytes,
			     (size_t)WF_CALL_BYTES_MAX);
		wf_op_finish(op, &e, WEFT_EXECUTED_NO);
		return;
	}
	call->done = call_done;
	call->quiet = call_quiet;
	call->deadline_ns = op->deadline_ns;
	call->terms = op->terms;
	if (op->deadline_ns <= call->began_ns) {
		wf_error_set(&e, -ETIMEDOUT, "the deadline passed before the call began");
	} else if (!wf_peer_link(op->peer, op->desk, &link, &e)) {
		op->call.running = true;
		atomic_fetch_add(&op->refs, 1);
		if (!wf_call_start(&op->desk->calls, link, call))
			return;
		wf_error_set(&e, -ENOMEM, "no memory for a call");
		atomic_fetch_sub(&op->refs, 1);
		op->call.running = false;
	}
	wf_rpc_drop(op);
	wf_op_finish(op, &e, WEFT_EXECUTED_NO);
}

void wf_rpc_drop(struct weft_op *op)
{
	wf_call_drop(&op->call.call);
}

static void reply(ProtobufCClosure closure, const ProtobufCMessage *message, void *data,
		  const struct wf_error *outcome)
{
	const struct wf_error *outer = replying;

	replying = outcome;
	if (closure)
		closure(message, data);
	replying = outer;
}

/* Of a call for which there is no operation: only the closure can say so. */
static void refuse(ProtobufCClosure closure, void *data, int err)
{
	struct wf_error e;

	wf_error_set(&e, err, "%s", weft_error());
	reply(closure, NULL, data, &e);
}

/* The user's closure: as a notice, before the operation has ended for anybody else. */
void wf_rpc_closure(struct weft_op *op)
{
	reply(op->call.closure, op->call.reply, op->call.closure_data, &op->error);
	if (op->call.reply)
		protobuf_c_message_free_unpacked(op->call.reply, NULL);
	op->call.reply = NULL;
}

enum weft_status weft_reply_status(const char **message)
{
	if (message)
		*message = replying ? replying->text : "";
	return replying ? wf_status_of(replying->code) : WEFT_UNKNOWN;
}

/* Pack the request and go; a failure is told by the closure, as any other. */
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
	op->call.packed = bytes <= WF_CALL_BYTES_MAX && !wf_call_pack(call, bytes);
	if (op->call.packed) {
		call->service = descriptor->name;
		call->method = m->name;
		protobuf_c_message_pack(input, call->parcel.body);
	}
	call->began_ns = wf_clock_now();
	wf_op_submit(op, call->began_ns);
}

static void invoke_stub(ProtobufCService *service, unsigned method, const ProtobufCMessage *input,
			ProtobufCClosure closure, void *closure_data)
{
	struct weft_stub *stub = WF_CONTAINER(service, struct weft_stub, service);
	struct weft_op *op;
	int err = wf_op_new(stub->peer->owner, stub->peer, WF_OP_CALL, NULL, &op);

	if (err) {
		refuse(closure, closure_data, err);
		return;
	}
	invoke(op, service->descriptor, method, input, closure, closure_data);
	weft_op_free(op);
}

static void destroy_nothing(ProtobufCService *service)
{
	(void)service; /* weft_stub_close and weft_op_free do */
}

int weft_stub_open(struct weft_peer *peer, const ProtobufCServiceDescriptor *descriptor,
		   struct weft_stub **stub)
{
	struct weft_stub *fresh;
	int err = wf_node_check(peer->owner);

	if (err)
		return err;
	fresh = calloc(1, sizeof(*fresh));
	if (!fresh)
		return wf_last_set(-ENOMEM, "no memory for a stub");
	fresh->peer = peer;
	fresh->service.descriptor = descriptor;
	fresh->service.invoke = invoke_stub;
	fresh->service.destroy = destroy_nothing;
	*stub = fresh;
	return 0;
}

void weft_stub_close(struct weft_stub *stub)
{
	free(stub);
}

ProtobufCService *weft_stub_service(struct weft_stub *stub)
{
	return &stub->service;
}

static void invoke_once(ProtobufCService *service, unsigned method, const ProtobufCMessage *input,
			ProtobufCClosure closure, void *closure_data)
{
	struct weft_op *op = WF_CONTAINER(service, struct weft_op, call.service);
	int err = wf_node_check(op->owner);

	if (err) {
		refuse(closure, closure_data, err);
		return;
	}
	if (op->call.begun)
		return; /* it is for one invocation, as weft_call_open says */
	invoke(op, service->descriptor, method, input, closure, closure_data);
}

int weft_call_open(struct weft_stub *stub, const struct weft_op_options *options,
		   ProtobufCService **service, struct weft_op **op)
{
	struct weft_op *fresh;
	int err = wf_op_new(stub->peer->owner, stub->peer, WF_OP_CALL, options, &fresh);

	if (err)
		return err;
	fresh->call.service.descriptor = stub->service.descriptor;
	fresh->call.service.invoke = invoke_once;
	fresh->call.service.destroy = destroy_nothing;
	*service = &fresh->call.service;
	*op = fresh;
	return 0;
}

/* Serving. */

int wf_rpc_serve(struct weft_node *node, ProtobufCService *service)
{
	struct wf_pb_service *pb = calloc(1, sizeof(*pb));
	int err;

	if (!pb)
		return wf_last_set(-ENOMEM, "no memory for a service");
	wf_service_init(pb, service);
	/* Not by a task: who is told that it is served may call at once. */
	pthread_mutex_lock(&node->lock);
	err = wf_served_add(&node->services, &pb->base);
	if (!err)
		wf_list_append(&node->served, &pb->mine);
	pthread_mutex_unlock(&node->lock);
	if (!err)
		return 0;
	free(pb);
	return wf_last_set(err, "a service %s is served already", service->descriptor->name);
}

int weft_serve(struct weft_node *node, ProtobufCService *service)
{
	int err = wf_node_check(node);

	return err ? err : wf_rpc_serve(node, service);
}

struct weft_peer *weft_call_peer(void *closure_data)
{
	struct wf_served *served = closure_data;
	struct wf_desk *desk = served->serving->transfer->ctx;

	return wf_node_check(desk->node) ? NULL : wf_peer_of(desk, served->link);
}

uint64_t weft_call_left_ns(void *closure_data)
{
	const struct wf_served *served = closure_data;

	return wf_served_left_ns(served);
}

int weft_call_cancelled(void *closure_data)
{
	const struct wf_served *served = closure_data;

	return atomic_load(&served->cancelled);
}

void weft_call_defer(void *closure_data)
{
	wf_service_defer(closure_data);
}

void weft_call_fail(void *closure_data, enum weft_status status, const char *message)
{
	wf_served_reply(closure_data, status == WEFT_OK ? WEFT_UNKNOWN : status, message, NULL, 0);
}
