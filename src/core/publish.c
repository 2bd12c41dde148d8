/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The service is served from the first name on.  Whoever asks before, or for a name that is not
 * there yet, asks again after a pause, as a call with retries does, until its deadline.
 */
#include "core/publish.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/last.h"
#include "core/node.h"
#include "core/node_window.h"
#include "core/op.h"
#include "core/peer.h"
#include "core/rma.h"
#include "core/serve.h"
#include "core/stub.h"
#include "rpc/reply.h"
#include "rpc/windows.pb-c.h"
#include "util/clock.h"

#define PAUSE_NS (10 * WF_NS_PER_MS)
#define PAUSE_MAX_NS (500 * WF_NS_PER_MS)

struct name {
	struct wf_list node;
	const struct weft_window *window;
	size_t bytes;
	uint8_t key[];
};

static struct name *find(const struct weft_node *node, const void *key, size_t bytes)
{
	WF_LIST_EACH(at, &node->published.names) {
		struct name *name = WF_CONTAINER(at, struct name, node);

		if (name->bytes == bytes && !memcmp(name->key, key, bytes))
			return name;
	}
	return NULL;
}

static void handle_find(Weft__Windows__Windows_Service *service, const Weft__Windows__Key *request,
			Weft__Windows__Descriptor_Closure closure, void *call)
{
	struct weft_node *node = wf_worker_of(call)->node;
	Weft__Windows__Descriptor reply = WEFT__WINDOWS__DESCRIPTOR__INIT;
	uint8_t bytes[WF_ACCESS_DESCRIPTOR_BYTES];
	const struct name *name;

	(void)service;
	pthread_mutex_lock(&node->lock);
	name = find(node, request->key.data, request->key.len);
	if (name)
		wf_node_window_describe(name->window, bytes);
	pthread_mutex_unlock(&node->lock);
	if (!name) {
		wf_reply_submit(call, WEFT_NOT_FOUND, "no window is published by that key", NULL);
		return;
	}
	reply.descriptor.data = bytes;
	reply.descriptor.len = sizeof(bytes);
	closure(&reply, call);
}

/* Serve the names of @node, unless that is so already. */
static int serve(struct weft_node *node)
{
	static Weft__Windows__Windows_Service handlers = WEFT__WINDOWS__WINDOWS__INIT(handle_);

	return wf_serve_own(node, &handlers.base, NULL, &node->published.serves);
}

int wf_publish_add(struct weft_window *window, const void *key, size_t key_bytes)
{
	struct weft_node *node = window->owner;
	struct name *fresh = malloc(sizeof(*fresh) + key_bytes);
	bool is_there;
	int err;

	if (!fresh)
		return wf_last_set(-ENOMEM, "no memory for a window's name");
	fresh->window = window;
	fresh->bytes = key_bytes;
	memcpy(fresh->key, key, key_bytes);
	err = serve(node);
	if (err) {
		free(fresh);
		return err;
	}
	pthread_mutex_lock(&node->lock);
	is_there = find(node, key, key_bytes);
	if (!is_there)
		wf_list_append(&node->published.names, &fresh->node);
	pthread_mutex_unlock(&node->lock);
	if (!is_there)
		return 0;
	free(fresh);
	return wf_last_set(-EEXIST, "a window is published by that key");
}

void wf_publish_forget(struct weft_node *node, const struct weft_window *window)
{
	pthread_mutex_lock(&node->lock);
	WF_LIST_EACH(at, &node->published.names) {
		struct name *name = WF_CONTAINER(at, struct name, node);

		if (window && name->window != window)
			continue;
		wf_list_remove(&name->node);
		free(name);
	}
	pthread_mutex_unlock(&node->lock);
}

int wf_publish_find(struct weft_peer *peer, const void *key, size_t key_bytes,
		    const struct weft_op_options *options, struct weft_op **op)
{
	const struct weft_retry retry = {
		.size = sizeof(retry), .attempts = UINT_MAX, .pause_ns = PAUSE_NS,
		.pause_max_ns = PAUSE_MAX_NS, .idempotent = 1,
		.statuses = 1u << WEFT_NOT_FOUND | 1u << WEFT_UNIMPLEMENTED,
	};
	struct weft_call_options call = { .size = sizeof(call), .retry = &retry };
	Weft__Windows__Key request = WEFT__WINDOWS__KEY__INIT;
	ProtobufCService *service;
	struct weft_stub *stub;
	int err;

	if (options)
		call.op = *options;
	err = wf_stub_open(peer, &weft__windows__windows__descriptor, &stub);
	if (err)
		return err;
	err = wf_stub_call(stub, &call, &service, op);
	if (!err) {
		request.key.data = (uint8_t *)(uintptr_t)key;
		request.key.len = key_bytes;
		weft__windows__windows__find(service, &request, NULL, NULL);
	}
	wf_stub_close(stub);
	return err;
}

int wf_publish_found(const struct weft_op *op, struct weft_remote **remote)
{
	const Weft__Windows__Descriptor *found;

	if (op->class->kind != WF_OP_CALL ||
	    op->call.output != &weft__windows__descriptor__descriptor || !op->call.reply)
		return wf_last_set(-EINVAL, "the operation has found no window");
	found = (const Weft__Windows__Descriptor *)(const void *)op->call.reply;
	return wf_rma_import(op->peer, found->descriptor.data, found->descriptor.len, remote);
}
