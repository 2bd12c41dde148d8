/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/reflection.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/last.h"
#include "core/node.h"
#include "core/serve.h"
#include "rpc/reflect.h"
#include "rpc/reply.h"

struct wf_reflection {
	Weft__Reflect__Reflection_Service service; /* first, as handlers are given this address */
	struct weft_node *node;
};

static struct weft_node *node_of(Weft__Reflect__Reflection_Service *service)
{
	return ((struct wf_reflection *)(void *)service)->node;
}

static struct wf_service_pb *at(struct wf_list *node)
{
	return WF_CONTAINER(node, struct wf_service_pb, mine);
}

static void handle_list(Weft__Reflect__Reflection_Service *service,
			const Weft__Reflect__Nothing *request,
			Weft__Reflect__Names_Closure closure, void *call)
{
	struct weft_node *node = node_of(service);
	Weft__Reflect__Names names = WEFT__REFLECT__NAMES__INIT;
	size_t count = 0;

	(void)request;
	pthread_mutex_lock(&node->lock);
	WF_LIST_EACH(each, &node->served.all)
		count++;
	names.names = calloc(count + 1, sizeof(names.names[0]));
	WF_LIST_EACH(each, &node->served.all) {
		if (names.names)
			names.names[names.n_names++] = (char *)(uintptr_t)at(each)->base.name;
	}
	pthread_mutex_unlock(&node->lock);
	/* Names are the users', and stay until the node closes. */
	if (names.names)
		closure(&names, call);
	else
		wf_reply_submit(call, WEFT_RESOURCE_EXHAUSTED, "no memory for the names", NULL);
	free(names.names);
}

static void handle_describe(Weft__Reflect__Reflection_Service *service,
			    const Weft__Reflect__Name *request,
			    Weft__Reflect__Description_Closure closure, void *call)
{
	struct weft_node *node = node_of(service);
	struct wf_service_pb *found = NULL;
	Weft__Reflect__Description *all;
	char text[300];

	pthread_mutex_lock(&node->lock);
	WF_LIST_EACH(each, &node->served.all)
		if (!strcmp(at(each)->base.name, request->name))
			found = at(each);
	pthread_mutex_unlock(&node->lock);
	if (!found) {
		snprintf(text, sizeof(text), "no service %.200s is served here", request->name);
		wf_reply_submit(call, WEFT_NOT_FOUND, text, NULL);
		return;
	}
	all = wf_reflect_describe(found);
	if (!all) {
		wf_reply_submit(call, WEFT_RESOURCE_EXHAUSTED, "no memory for a description",
				NULL);
		return;
	}
	closure(all, call);
	weft__reflect__description__free_unpacked(all, NULL);
}

int wf_reflection_serve(struct weft_node *node)
{
	static const Weft__Reflect__Reflection_Service handlers =
		WEFT__REFLECT__REFLECTION__INIT(handle_);
	const struct weft_serve_options none = { 0 };
	struct wf_reflection *r;
	int err;

	r = malloc(sizeof(*r));
	if (!r)
		return wf_last_set(-ENOMEM, "no memory for a service");
	*r = (struct wf_reflection){ .service = handlers, .node = node };
	err = wf_serve_add(node, &r->service.base, &none);
	if (err)
		free(r);
	else
		node->reflection = r;
	return err;
}
