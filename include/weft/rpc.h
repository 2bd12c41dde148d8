/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls: protobuf-c services over weft.
 *
 * Client: a stub is a ProtobufCService, to be given to the functions that
 * protoc-c generates.  Server: any ProtobufCService may be served.
 */
#ifndef WEFT_RPC_H
#define WEFT_RPC_H

#include <protobuf-c/protobuf-c.h>
#include <weft/node.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_stub;

/*
 * A client of the service @descriptor at @peer.  Threads: any, callback.
 */
WEFT_API int weft_stub_open(struct weft_peer *peer,
			    const ProtobufCServiceDescriptor *descriptor,
			    struct weft_stub **stub);

/* Accepts NULL.  Running calls go on.  Threads: any, callback. */
WEFT_API void weft_stub_close(struct weft_stub *stub);

/*
 * The service to give to generated functions: every invocation is a call with
 * the node's deadline.  The closure runs once on the worker, with NULL if the
 * call failed, and inside it weft_reply_status() says why.  Lives as long as
 * the stub.  Threads: any, callback.
 */
WEFT_API ProtobufCService *weft_stub_service(struct weft_stub *stub);

/*
 * A call with options of its own.  *@service is for exactly one invocation by
 * a generated function, which starts the call; @op is its operation, ends
 * when the closure has returned, and is waited for, cancelled and freed as
 * any other.  The first message is the closure's only: it is freed after it.
 * Threads: any, callback.
 */
WEFT_API int weft_call_open(struct weft_stub *stub, const struct weft_op_options *options,
			    ProtobufCService **service, struct weft_op **op);

/* Inside a client's closure: the outcome of the call it belongs to. */
WEFT_API enum weft_status weft_reply_status(const char **message);

/*
 * Serve @service to every peer; borrows it until the node closes.  A handler
 * runs on the worker of the caller and must not block, in a node of several
 * beside those for other callers; it may call its closure later, from any
 * thread.  -EEXIST: a service of that name is served.
 * Threads: any.
 */
WEFT_API int weft_serve(struct weft_node *node, ProtobufCService *service);

/* In a handler, @closure_data names the call.  Functions on it: */

/* The peer that calls; valid until the reply.  Threads: callback. */
WEFT_API struct weft_peer *weft_call_peer(void *closure_data);

/*
 * Time left until the caller's deadline: 0 when it has passed, WEFT_FOREVER
 * when there is none.  Threads: any, callback.
 */
WEFT_API uint64_t weft_call_left_ns(void *closure_data);

/* Has the caller cancelled, gone away, or run out of time?  Threads: any, callback. */
WEFT_API int weft_call_cancelled(void *closure_data);

/*
 * Keep the request message beyond the handler's return, until the reply.  A
 * call that is kept must be answered before its node closes.  Threads: callback.
 */
WEFT_API void weft_call_defer(void *closure_data);

/*
 * Answer with a failure instead of calling the closure.  Copies @message.
 * Threads: any, callback.
 */
WEFT_API void weft_call_fail(void *closure_data, enum weft_status status,
			     const char *message);

#ifdef __cplusplus
}
#endif
#endif
