/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/serve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/last.h"
#include "core/node.h"
#include "core/streaming.h"

/* Set the handler of each method.  -EINVAL, -ENOENT, -ENOMEM: recorded. */
static int set_handlers(struct wf_service_pb *pb, const struct weft_stream_method *methods,
			size_t count)
{
	const ProtobufCServiceDescriptor *d = pb->service->descriptor;

	if (!count)
		return 0;
	if (WF_NEED(methods))
		return -EINVAL;
	pb->handlers = calloc(d->n_methods, sizeof(*pb->handlers));
	if (!pb->handlers)
		return wf_last_set(-ENOMEM, "no memory for a service");
	pb->base.open = wf_streaming_serve;
	pb->base.begin = wf_streaming_handle;
	for (size_t i = 0; i < count; i++) {
		const ProtobufCMethodDescriptor *m;

		if (WF_NEED(methods[i].name) || WF_NEED(methods[i].handle))
			return -EINVAL;
		m = wf_service_method(d, methods[i].name, strlen(methods[i].name));
		if (!m)
			return wf_last_set(-ENOENT, "service %s has no method %s", d->name,
					   methods[i].name);
		pb->handlers[m - d->methods] =
			(struct wf_stream_handler){ methods[i].handle, methods[i].arg };
	}
	return 0;
}

void wf_serve_forget(struct wf_service_pb *pb)
{
	wf_service_fini(pb);
	free(pb);
}

/* Set the limits of @s.  -EINVAL: recorded. */
static int set_limits(struct wf_service *s, const struct weft_serve_options *o)
{
	if (o->message_bytes_max > WF_CALL_BYTES_MOST)
		return wf_last_set(-EINVAL, "message_bytes_max of service %s is %llu: at most %zu",
				   s->name, (unsigned long long)o->message_bytes_max,
				   (size_t)WF_CALL_BYTES_MOST);
	if (o->message_bytes_max)
		s->message_bytes_max = o->message_bytes_max;
	wf_limit_init(&s->limit, o->calls_max, o->calls_per_peer, o->queue_max);
	return 0;
}

int wf_serve_add(struct weft_node *node, ProtobufCService *service,
		 const struct weft_serve_options *options)
{
	struct wf_service_pb *pb;
	int err;

	if (WF_NEED(service) || WF_NEED(service->descriptor) || WF_NEED(service->descriptor->name))
		return -EINVAL;
	pb = calloc(1, sizeof(*pb));
	if (!pb)
		return wf_last_set(-ENOMEM, "no memory for a service");
	wf_service_init(pb, service);
	err = set_limits(&pb->base, options);
	if (!err)
		err = set_handlers(pb, options->methods, options->method_count);
	if (err) {
		wf_serve_forget(pb);
		return err;
	}
	/* Added here and not by a task: a peer that hears of the service may call at once. */
	pthread_mutex_lock(&node->lock);
	err = wf_services_add(&node->services, &pb->base);
	if (!err)
		wf_list_append(&node->served.all, &pb->mine);
	pthread_mutex_unlock(&node->lock);
	if (!err) {
		wf_node_health_changed(node);
		return 0;
	}
	wf_serve_forget(pb);
	return wf_last_set(err, "a service %s is served already", service->descriptor->name);
}

int wf_serve_own(struct weft_node *node, ProtobufCService *service,
		 const struct weft_serve_options *options, atomic_bool *served)
{
	const struct weft_serve_options none = { 0 };
	int err = 0;

	if (atomic_load(served))
		return 0;
	/* A second thread that comes meanwhile goes on once the service is there. */
	pthread_mutex_lock(&node->served.own_lock);
	if (!atomic_load(served))
		err = wf_serve_add(node, service, options ? options : &none);
	if (!err)
		atomic_store(served, true);
	pthread_mutex_unlock(&node->served.own_lock);
	return err;
}
