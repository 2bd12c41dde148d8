/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The request message of one call. */
struct request {
	ProtobufCMessage *message;
	bool deferred;
};

static void free_request(void *user)
{
	struct request *r = user;

	if (r->message)
		protobuf_c_message_free_unpacked(r->message, NULL);
	free(r);
}

static int find(struct wf_service *base, const char *method, size_t bytes)
{
	struct wf_pb_service *s = WF_CONTAINER(base, struct wf_pb_service, base);
	const ProtobufCServiceDescriptor *d = s->service->descriptor;

	for (unsigned i = 0; i < d->n_methods; i++)
		if (strlen(d->methods[i].name) == bytes &&
		    !memcmp(d->methods[i].name, method, bytes))
			return (int)i;
	return -ENOENT;
}

static const char *method_name(const struct wf_service *base, int method)
{
	return WF_CONTAINER(base, struct wf_pb_service, base)->service->descriptor->methods[method].name;
}

/* What a handler calls with its reply. */
static void closure(const ProtobufCMessage *message, void *closure_data)
{
	struct wf_served *served = closure_data;
	uint8_t *bytes;
	size_t count;

	if (!message) {
		wf_served_reply(served, WEFT_INTERNAL, "the handler gave no reply", NULL, 0);
		return;
	}
	count = protobuf_c_message_get_packed_size(message);
	bytes = malloc(count ? count : 1);
	if (!bytes) {
		wf_served_reply(served, WEFT_RESOURCE_EXHAUSTED, "no memory to pack the reply", NULL,
				0);
		return;
	}
	protobuf_c_message_pack(message, bytes);
	wf_served_reply(served, WEFT_OK, NULL, bytes, count);
}

/*
 * Outside the handler's own time the call may be gone: whoever replies first
 * may free it.  So the message is ours until the handler has returned.
 */
static void handle(struct wf_service *base, int method, struct wf_served *served,
		   const uint8_t *bytes, size_t count)
{
	struct wf_pb_service *s = WF_CONTAINER(base, struct wf_pb_service, base);
	const ProtobufCMethodDescriptor *m = &s->service->descriptor->methods[method];
	struct request *r = calloc(1, sizeof(*r));

	if (!r) {
		wf_served_reply(served, WEFT_RESOURCE_EXHAUSTED, "no memory for the request", NULL,
				0);
		return;
	}
	r->message = protobuf_c_message_unpack(m->input, NULL, count, bytes);
	if (!r->message) {
		free(r);
		wf_served_reply(served, WEFT_INTERNAL, "the request does not unpack", NULL, 0);
		return;
	}
	/* The reply, even from another thread, is sent by this worker, so not before we return. */
	served->user = r;
	served->free_user = free_request;
	s->service->invoke(s->service, (unsigned)method, r->message, closure, served);
	if (r->deferred)
		return;
	protobuf_c_message_free_unpacked(r->message, NULL);
	r->message = NULL;
}

void wf_service_init(struct wf_pb_service *s, ProtobufCService *service)
{
	s->service = service;
	s->base.name = service->descriptor->name;
	s->base.find = find;
	s->base.method_name = method_name;
	s->base.handle = handle;
}

void wf_service_defer(struct wf_served *served)
{
	((struct request *)served->user)->deferred = true;
}
