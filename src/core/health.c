/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The service of health.proto: Check answers once with the status of a service, Watch
 * goes on to write each new status.
 *
 * A watcher lives on the worker of its caller.  A change is noted under the node's lock,
 * and each worker is told to look.  A watcher that reads slowly therefore misses states
 * in between, but never the last.
 */
#include "core/health.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/last.h"
#include "core/node.h"
#include "core/op.h"
#include "core/serve.h"
#include "core/streaming.h"
#include "core/worker.h"
#include "rpc/health.pb-c.h"
#include "rpc/reply.h"

#define REQUEST_BYTES_MAX 4096 /* a request is the name of a service, which is shorter */

/* Status of a service that is neither served nor set; users can't set it. */
#define SERVICE_UNKNOWN \
	((int)GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVICE_UNKNOWN)

/* The status that was set for a service. */
struct named {
	struct wf_list node; /* in health->set */
	enum weft_health status;
	char name[];
};

/* The watchers of a worker.  Threads: owner, but any for told. */
struct ward {
	struct wf_health *health;
	struct wf_loop_task task;
	atomic_bool told;        /* the task is on its way */
	struct wf_list watchers;
};

struct watcher {
	struct wf_list node;     /* in ward->watchers, until over */
	struct ward *ward;
	struct weft_stream *stream;
	char *name;              /* NULL: the request has not been read yet */
	int status;              /* the last one written; -1: none yet */
	bool writing, over;
};

struct wf_health {
	Grpc__Health__V1__Health_Service service; /* first, as handlers are given this address */
	struct weft_node *node;
	struct wf_list set;      /* struct named; under the node's lock */
	struct ward wards[];     /* a ward for each worker */
};

/* Under the node's lock. */
static struct named *find_named(const struct wf_health *h, const char *name)
{
	WF_LIST_EACH(at, &h->set) {
		struct named *n = WF_CONTAINER(at, struct named, node);

		if (!strcmp(n->name, name))
			return n;
	}
	return NULL;
}

static int status_of(struct wf_health *h, const char *name)
{
	struct weft_node *node = h->node;
	int status = SERVICE_UNKNOWN;
	const struct named *n;

	pthread_mutex_lock(&node->lock);
	n = find_named(h, name);
	if (n)
		status = (int)n->status;
	else if (!*name || wf_services_find(&node->services, name, strlen(name)))
		status = WEFT_HEALTH_SERVING;
	pthread_mutex_unlock(&node->lock);
	return status != SERVICE_UNKNOWN && atomic_load(&node->draining) ? WEFT_HEALTH_NOT_SERVING
									 : status;
}

static void handle_check(Grpc__Health__V1__Health_Service *service,
			 const Grpc__Health__V1__HealthCheckRequest *request,
			 Grpc__Health__V1__HealthCheckResponse_Closure closure, void *call)
{
	Grpc__Health__V1__HealthCheckResponse response =
		GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
	int status = status_of((struct wf_health *)(void *)service, request->service);
	char text[300];

	if (status == SERVICE_UNKNOWN) {
		snprintf(text, sizeof(text), "no service %.200s is served here", request->service);
		wf_reply_submit(call, WEFT_NOT_FOUND, text, NULL);
		return;
	}
	response.status = (Grpc__Health__V1__HealthCheckResponse__ServingStatus)status;
	closure(&response, call);
}

/* Watchers. */

static void end(struct watcher *w, enum weft_status status, const char *text)
{
	if (!w->over)
		wf_reply_submit(w->stream->served, status, text, NULL);
	w->over = true;
	wf_list_remove(&w->node);
	if (w->writing)
		return;
	free(w->name);
	free(w);
}

static void update(struct watcher *w);

static void written(struct weft_op *op, void *arg)
{
	struct watcher *w = arg;
	bool good = wf_op_status(op) == WEFT_OK;

	wf_op_free(op);
	w->writing = false;
	if (good && !w->over)
		update(w);
	else
		end(w, WEFT_CANCELLED, "the watcher has gone");
}

static void write_status(struct watcher *w, int status)
{
	struct weft_op_options options = { .size = sizeof(options), .done = written, .arg = w };
	Grpc__Health__V1__HealthCheckResponse response =
		GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
	struct weft_op *op;

	response.status = (Grpc__Health__V1__HealthCheckResponse__ServingStatus)status;
	w->status = status;
	w->writing = !wf_streaming_write(w->stream, &response.base, &options, &op);
	if (!w->writing)
		end(w, WEFT_RESOURCE_EXHAUSTED, wf_last_text());
}

/* Write the status if no write runs.  A draining node ends watchers, or it would never end. */
static void update(struct watcher *w)
{
	struct weft_node *node = w->ward->health->node;
	int status;

	if (!w->name || w->writing)
		return;
	status = status_of(w->ward->health, w->name);
	if (status != w->status)
		write_status(w, status);
	else if (atomic_load(&node->draining))
		end(w, WEFT_UNAVAILABLE, "the node is draining");
}

static void gone(void *arg)
{
	end(arg, WEFT_CANCELLED, "the watcher has gone");
}

static void asked(struct weft_op *op, void *arg)
{
	const Grpc__Health__V1__HealthCheckRequest *request = (const void *)op->read.message;
	bool good = wf_op_status(op) == WEFT_OK;
	struct watcher *w = arg;

	if (request)
		w->name = strdup(request->service);
	if (w->name) {
		wf_server_call_on_cancel(w->stream->served, gone, w);
		update(w);
	} else if (request) {
		end(w, WEFT_RESOURCE_EXHAUSTED, "no memory for a watcher");
	} else if (good) {
		end(w, WEFT_INVALID_ARGUMENT, "there is no request");
	} else {
		end(w, wf_op_status(op), wf_op_message(op));
	}
	wf_op_free(op);
}

static struct ward *ward_of(struct wf_health *h, struct weft_stream *stream)
{
	const struct wf_server_call *served = stream->served;
	const struct wf_worker *worker = wf_worker_of(served);

	return &h->wards[worker - h->node->workers];
}

static void handle_watch(struct weft_stream *stream, void *arg)
{
	struct watcher *w = calloc(1, sizeof(*w));
	struct weft_op_options options = { .size = sizeof(options), .done = asked, .arg = w };
	struct weft_op *op;

	if (!w) {
		wf_reply_submit(stream->served, WEFT_RESOURCE_EXHAUSTED,
				"no memory for a watcher", NULL);
		return;
	}
	*w = (struct watcher){ .stream = stream, .ward = ward_of(arg, stream), .status = -1 };
	wf_list_append(&w->ward->watchers, &w->node);
	if (wf_streaming_read(stream, &options, &op))
		end(w, WEFT_RESOURCE_EXHAUSTED, wf_last_text());
}

/* Changes. */

static void look(struct wf_loop_task *task)
{
	struct ward *ward = WF_CONTAINER(task, struct ward, task);

	atomic_store(&ward->told, false);
	WF_LIST_EACH(at, &ward->watchers)
		update(WF_CONTAINER(at, struct watcher, node));
}

static void changed(struct weft_node *node)
{
	struct wf_health *h;

	pthread_mutex_lock(&node->lock);
	h = node->health;
	pthread_mutex_unlock(&node->lock);
	for (unsigned i = 0; h && i < node->worker_count; i++)
		if (!atomic_exchange(&h->wards[i].told, true))
			wf_loop_submit(&node->workers[i].engine.loop, &h->wards[i].task);
}

int wf_health_set(struct weft_node *node, const char *name, enum weft_health status)
{
	size_t bytes = strlen(name) + 1;
	struct named *n, *fresh = malloc(sizeof(*fresh) + bytes);
	int err = 0;

	if (!fresh)
		return wf_last_set(-ENOMEM, "no memory for a service's health");
	wf_list_init(&fresh->node);
	memcpy(fresh->name, name, bytes);
	pthread_mutex_lock(&node->lock);
	if (!node->health) {
		err = -ENOENT;
	} else {
		n = find_named(node->health, name);
		if (!n) {
			n = fresh;
			wf_list_append(&node->health->set, &n->node);
			fresh = NULL;
		}
		n->status = status;
	}
	pthread_mutex_unlock(&node->lock);
	free(fresh);
	if (err)
		return wf_last_set(err, "the node does not serve its health");
	changed(node);
	return 0;
}

/* Serving. */

static struct wf_health *make(struct weft_node *node)
{
	static const Grpc__Health__V1__Health_Service handlers =
		{ .base = GRPC__HEALTH__V1__HEALTH__BASE_INIT, .check = handle_check };
	struct wf_health *h = calloc(1, sizeof(*h) + node->worker_count * sizeof(h->wards[0]));

	if (!h)
		return NULL;
	h->service = handlers;
	h->node = node;
	wf_list_init(&h->set);
	for (unsigned i = 0; i < node->worker_count; i++) {
		h->wards[i].health = h;
		h->wards[i].task.run = look;
		wf_list_init(&h->wards[i].watchers);
	}
	return h;
}

void wf_health_close(struct wf_health *h)
{
	struct wf_list *at;

	if (!h)
		return;
	while ((at = wf_list_pop(&h->set)))
		free(WF_CONTAINER(at, struct named, node));
	for (unsigned i = 0; i < h->node->worker_count; i++) {
		while ((at = wf_list_pop(&h->wards[i].watchers))) {
			struct watcher *w = WF_CONTAINER(at, struct watcher, node);

			free(w->name);
			free(w);
		}
	}
	free(h);
}

int wf_health_serve(struct weft_node *node)
{
	struct weft_stream_method watch = { .name = "Watch", .handle = handle_watch };
	const struct weft_serve_options options = { .methods = &watch, .method_count = 1,
						    .message_bytes_max = REQUEST_BYTES_MAX };
	struct wf_health *h;
	int err;

	h = make(node);
	if (!h)
		return wf_last_set(-ENOMEM, "no memory for a service");
	watch.arg = h;
	err = wf_serve_add(node, &h->service.base, &options);
	if (err) {
		wf_health_close(h);
		return err;
	}
	pthread_mutex_lock(&node->lock);
	node->health = h;
	node->health_changed = changed;
	pthread_mutex_unlock(&node->lock);
	/* Watchers that came before that have not been told of changes meanwhile. */
	changed(node);
	return 0;
}
