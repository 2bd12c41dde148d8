/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weft/rpc.h>

#include "rpc/call.h"
#include "rpc/codec.h"
#include "rpc/reply.h"

static void free_message(void *message)
{
	protobuf_c_message_free_unpacked(message, NULL);
}

/* Does the service leave the method out?  protobuf-c would call it nevertheless. */
static bool is_left_out(const struct wf_service_pb *s, unsigned method)
{
	const char *functions = (const char *)(s->service + 1); /* layout of protobuf-c */
	void (*function)(void);

	if (s->service->invoke != protobuf_c_service_invoke_internal)
		return false;
	memcpy(&function, functions + method * sizeof(function), sizeof(function));
	return !function;
}

static bool streams(const struct wf_service *base, int method)
{
	const struct wf_service_pb *s = WF_CONTAINER(base, struct wf_service_pb, base);

	return s->handlers && s->handlers[method].handle;
}

/* A service that was made without names has no method that can be called. */
const ProtobufCMethodDescriptor *wf_service_method(const ProtobufCServiceDescriptor *service,
						   const char *name, size_t bytes)
{
	for (unsigned i = 0; i < service->n_methods; i++) {
		const char *own = service->methods[i].name;

		if (own && strlen(own) == bytes && !memcmp(own, name, bytes))
			return &service->methods[i];
	}
	return NULL;
}

static int find(struct wf_service *base, const char *method, size_t bytes)
{
	struct wf_service_pb *s = WF_CONTAINER(base, struct wf_service_pb, base);
	const ProtobufCServiceDescriptor *d = s->service->descriptor;
	const ProtobufCMethodDescriptor *m = wf_service_method(d, method, bytes);
	int number = m ? (int)(m - d->methods) : -1;

	if (!m || (is_left_out(s, (unsigned)number) && !streams(base, number)))
		return -ENOENT;
	return number;
}

static const char *method_name(const struct wf_service *base, int method)
{
	return WF_CONTAINER(base, struct wf_service_pb, base)
		->service->descriptor->methods[method]
		.name;
}

static bool compresses(const struct wf_server_call *served)
{
	return wf_codec_compresses(&served->serving->transfer->engine->options,
				   served->understood, served->reply.compression);
}

/* Reply for a handler: its protobuf-c closure. */
static void closure(const ProtobufCMessage *message, void *closure_data)
{
	struct wf_server_call *served = closure_data;
	struct wf_codec_packed reply;

	if (!message)
		wf_reply_submit(served, WEFT_INTERNAL, "the handler gave no reply", NULL);
	else if (wf_codec_pack(message, protobuf_c_message_get_packed_size(message),
			       compresses(served), wf_server_call_pool(served), &reply))
		wf_reply_submit(served, WEFT_RESOURCE_EXHAUSTED, "no memory to pack the reply",
				NULL);
	else
		wf_reply_submit(served, WEFT_OK, NULL, &reply);
}

/*
 * Handle a call.  A reply ends the call, but not before the handler has returned: the reply,
 * even from another thread, is sent by this worker.
 */
static void handle(struct wf_service *base, int method, struct wf_server_call *served,
		   const uint8_t *bytes, size_t count)
{
	struct wf_service_pb *s = WF_CONTAINER(base, struct wf_service_pb, base);
	const ProtobufCMethodDescriptor *m = &s->service->descriptor->methods[method];
	ProtobufCMessage *message;
	struct wf_error e;

	if (wf_codec_unpack(m->input, bytes, count, served->request.was_compressed,
			    base->message_bytes_max, &message, &e)) {
		wf_counters_add(&served->serving->transfer->engine->counters.unpack_failures, 1);
		wf_error_within(&e, "the request");
		served->handler.begun = false;
		wf_reply_submit(served, e.code == -EBADMSG ? WEFT_INTERNAL : WEFT_RESOURCE_EXHAUSTED,
				e.text, NULL);
		return;
	}
	served->handler.user = message;
	served->handler.free_user = free_message;
	s->service->invoke(s->service, (unsigned)method, message, closure, served);
	if (served->handler.deferred)
		return;
	served->handler.user = NULL;
	free_message(message);
}

void wf_service_init(struct wf_service_pb *s, ProtobufCService *service)
{
	s->service = service;
	s->base.name = service->descriptor->name;
	s->base.message_bytes_max = WF_CALL_BYTES_MAX;
	s->base.find = find;
	s->base.method_name = method_name;
	s->base.handle = handle;
	s->base.streams = streams;
}

void wf_service_fini(struct wf_service_pb *s)
{
	wf_limit_fini(&s->base.limit);
	free(s->handlers);
}

void wf_service_defer(struct wf_server_call *served)
{
	served->handler.deferred = true;
}
