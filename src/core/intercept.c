/* SPDX-License-Identifier: BSD-2-Clause */
/* Interceptors: the hooks of both sides of a call, and counters of how calls ended. */
#include "core/intercept.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/last.h"
#include "core/node.h"
#include "core/op.h"
#include "core/worker.h"
#include "util/clock.h"
#include "util/status.h"

int wf_intercept_open(struct weft_node *node, const struct weft_interceptor *const *given)
{
	unsigned count = 0;
	int err = 0;

	while (given && given[count])
		count++;
	if (!count)
		return 0;
	node->interceptors = calloc(count, sizeof(*node->interceptors));
	if (!node->interceptors)
		return wf_last_set(-ENOMEM, "no memory for interceptors");
	for (unsigned i = 0; i < count && !err; i++)
		err = wf_check_options(given[i], &node->interceptors[i],
				      sizeof(node->interceptors[i]));
	node->interceptor_count = count;
	return err;
}

/* The caller. */

/* The lock keeps child.parent valid: a parent detaches its children under it. */
static struct weft_served *parent_of(struct weft_op *op)
{
	struct weft_node *node = op->owner;
	struct wf_server_call *parent;

	pthread_mutex_lock(&node->lock);
	parent = op->call.child.parent;
	pthread_mutex_unlock(&node->lock);
	return wf_worker_handle(parent);
}

static enum weft_status ask(struct weft_op *op, struct weft_served *parent, const char **message)
{
	struct weft_node *node = op->owner;
	enum weft_status status = WEFT_OK;

	while (op->call.intercepted.asked < node->interceptor_count && status == WEFT_OK) {
		const struct weft_interceptor *i = &node->interceptors[op->call.intercepted.asked++];

		if (i->begin)
			status = i->begin(i->arg, op, parent, op->call.service_name,
					  op->call.method_name, message);
	}
	return status;
}

void wf_intercept_begin(struct weft_op *op)
{
	const char *message = NULL;
	enum weft_status status;
	struct wf_error e;

	if (!op->owner->interceptor_count)
		return;
	op->call.intercepted.invoked_ns = wf_clock_now();
	op->call.intercepted.asking = true;
	status = ask(op, parent_of(op), &message);
	op->call.intercepted.asking = false;
	if (status == WEFT_OK)
		return;
	wf_error_set(&e, wf_status_code(wf_status_failure(status)), "%s",
		     message ? message : "an interceptor of this node refuses the call");
	wf_reason_keep(&op->outcome.error, &e);
}

static uint64_t since_ns(const struct wf_engine *engine, uint64_t ns)
{
	return engine->loop.now_ns > ns ? engine->loop.now_ns - ns : 0;
}

void wf_intercept_ended(struct weft_op *op)
{
	enum weft_status status = wf_status_of(op->outcome.error.code);
	struct wf_engine *engine = &op->worker->engine;

	wf_counters_add(&engine->counters.calls_ended[status], 1);
	while (op->call.intercepted.asked) {
		const struct weft_interceptor *i = &op->owner->interceptors[--op->call.intercepted.asked];

		if (i->ended)
			i->ended(i->arg, op, op->call.service_name, op->call.method_name, status,
				 since_ns(engine, op->call.intercepted.invoked_ns));
	}
}

/* The server. */

static const char *method_of(const struct wf_server_call *s)
{
	return s->service->method_name(s->service, s->method);
}

enum weft_status wf_intercept_admit(struct wf_server_call *s, const char **message)
{
	const struct weft_node *node = wf_worker_of(s)->node;
	enum weft_status status = WEFT_OK;

	while (s->asked < node->interceptor_count && status == WEFT_OK) {
		const struct weft_interceptor *i = &node->interceptors[s->asked++];

		if (i->admit)
			status = i->admit(i->arg, wf_worker_handle(s), s->service->name,
					  method_of(s), message);
	}
	if (status == WEFT_OK)
		return status;
	if (!*message)
		*message = "an interceptor of the server refuses the call";
	return wf_status_failure(status);
}

void wf_intercept_served(struct wf_server_call *s, enum weft_status status)
{
	const struct weft_node *node = wf_worker_of(s)->node;

	while (s->asked) {
		const struct weft_interceptor *i = &node->interceptors[--s->asked];

		if (i->served)
			i->served(i->arg, wf_worker_handle(s), s->service->name, method_of(s),
				  status, since_ns(s->serving->transfer->engine, s->began_ns));
	}
}
