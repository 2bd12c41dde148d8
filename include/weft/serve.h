/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Serving under load, and coming to an end: limits of a service, draining, and health.
 */
#ifndef WEFT_SERVE_H
#define WEFT_SERVE_H

#include <weft/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options of a service. */
struct weft_serve_options {
	size_t size;
	const struct weft_stream_method *methods; /* methods with streams; copied */
	size_t method_count;
	/* Calls that run at once, on all workers of the node; 0: unlimited. */
	uint32_t calls_max;
	uint32_t calls_per_peer;    /* calls of a peer that run at once; 0: unlimited */
	/* Calls that wait for a limit; 0: no queue, calls beyond a limit are refused at once. */
	uint32_t queue_max;
	uint64_t message_bytes_max; /* longest request, or message of a stream; 0: 64 MiB */
};
#define WEFT_SERVE_OPTIONS_INIT WEFT_SIZED_INIT(struct weft_serve_options)

/*
 * Serve @service as weft_serve() does, with limits: calls beyond the limits wait, in the order in
 * which they came, until their handlers may begin; where too many wait a call fails with
 * RESOURCE_EXHAUSTED and was not executed.  A call with a stream is one call.  @options NULL: all
 * zero.  -EEXIST: a service of that name is served.  -EINVAL: an option is wrong.  -ENOENT: the
 * service has no such method.  Threads: any.
 */
WEFT_API int weft_serve_with(struct weft_node *node, ProtobufCService *service,
			     const struct weft_serve_options *options);

/*
 * Take no more calls: calls that come from now on, and calls that peers would begin, fail with
 * UNAVAILABLE and are not executed; calls that have come run on to their end.  The node drains
 * until it is closed; its own calls and all tensors go on as before.  0: no call is left.
 * -ETIMEDOUT: some calls run after @timeout_ns still, and the node drains on.
 * -EDEADLK inside a callback: nothing was done.  Threads: any; in a manual node the owner, who
 * drives the node by this function.
 */
WEFT_API int weft_node_drain(struct weft_node *node, uint64_t timeout_ns);

/* Health of a service or of a node; gRPC's names and numbers. */
enum weft_health { WEFT_HEALTH_UNKNOWN = 0, WEFT_HEALTH_SERVING = 1, WEFT_HEALTH_NOT_SERVING = 2 };

/*
 * Serve grpc.health.v1.Health, which tells every peer whether services of this node may be called:
 * each service is SERVING until something else is set, and none is once the node drains.
 * -EEXIST: health is served already.  Threads: any.
 */
WEFT_API int weft_serve_health(struct weft_node *node);

/*
 * Set the health of @service, whether it is served or not, or of the whole node if @service is "";
 * peers that watch it are told.  Copies @service.  -ENOENT: health is not served.
 * -EINVAL: there is no such status.  Threads: any, callback.
 */
WEFT_API int weft_health_set(struct weft_node *node, const char *service,
			     enum weft_health status);

#ifdef __cplusplus
}
#endif
#endif
