/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "core/check.h"
#include "core/health.h"
#include "core/node.h"
#include "core/node_drain.h"
#include "core/serve.h"

int weft_serve_with(struct weft_node *node, ProtobufCService *service,
		    const struct weft_serve_options *options)
{
	struct weft_serve_options given;
	int err = wf_check_node(node);

	if (!err)
		err = wf_check_options(options, &given, sizeof(given));
	return err ? err : wf_serve_add(node, service, &given);
}

int weft_node_drain(struct weft_node *node, uint64_t timeout_ns)
{
	int err = wf_check_node(node);

	if (err)
		return err;
	if (wf_node_inside(node))
		return wf_last_set(-EDEADLK, "weft_node_drain inside a callback would wait for itself");
	return wf_node_drain(node, timeout_ns);
}

int weft_serve_health(struct weft_node *node)
{
	int err = wf_check_node(node);

	return err ? err : wf_health_serve(node);
}

int weft_health_set(struct weft_node *node, const char *service, enum weft_health status)
{
	int err = wf_check_node(node);

	if (!err)
		err = WF_NEED(service);
	if (!err && (unsigned)status > WEFT_HEALTH_NOT_SERVING)
		err = wf_last_set(-EINVAL, "%d is no health that can be set", (int)status);
	return err ? err : wf_health_set(node, service, status);
}
