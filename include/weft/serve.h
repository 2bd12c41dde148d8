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

/* Of a service.  A limit of 0 is none, but where another meaning is given. */
struct weft_serve_options {
	size_t size;
	const struct weft_stream_method *methods; /* as weft_serve_streams has it; copied */
	size_t method_count;
	uint32_t calls_max;         /* that run at once, on all workers of the node */
	uint32_t calls_per_peer;    /* of them */
	uint32_t queue_max;         /* that wait beyond these limits; more are refused; 0: none waits */
	uint64_t message_bytes_max; /* of a request, and of each message of a stream; 0: 64 MiB */
};

/*
 * As weft_serve(), with limits: a call beyond them waits, in the order in which they came,
 * until its handler may begin; where too many wait it fails with RESOURCE_EXHAUSTED and was
 * not executed.  A call with a stream is one call.  @options NULL: all zero.
 * -EEXIST.  -EINVAL.  -ENOENT: there is no such method.  Threads: any.
 */
WEFT_API int weft_serve_with(struct weft_node *node, ProtobufCService *service,
			     const struct weft_serve_options *options);

/*
 * Take no more calls: those that come from now on, and those that peers would begin, fail
 * with UNAVAILABLE and are not executed; those that have come run on to their end.  0: none
 * is left.  -ETIMEDOUT: some run after @timeout_ns still, and the node drains on.  It does so
 * until it is closed; its own calls and all tensors go on as before.
 * -EDEADLK inside a callback: nothing done.  Threads: any; in a manual node the owner, who
 * drives the node by it.
 */
WEFT_API int weft_node_drain(struct weft_node *node, uint64_t timeout_ns);

/* What is said of a service; gRPC's names and numbers. */
enum weft_health { WEFT_HEALTH_UNKNOWN = 0, WEFT_HEALTH_SERVING = 1, WEFT_HEALTH_NOT_SERVING = 2 };

/*
 * Serve grpc.health.v1.Health, which tells every peer whether services of this node may be
 * called: each that is served is SERVING until something else is set, and none is once the
 * node drains.  -EEXIST: it is served.  Threads: any.
 */
WEFT_API int weft_serve_health(struct weft_node *node);

/*
 * Say of @service, whether it is served or not, or of the whole node if that is "", what
 * its health is; who watches it is told.  Copies @service.  -ENOENT: health is not served.
 * -EINVAL: no such status.  Threads: any, callback.
 */
WEFT_API int weft_health_set(struct weft_node *node, const char *service,
			     enum weft_health status);

#ifdef __cplusplus
}
#endif
#endif
