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
 * Metadata: what goes with a call beside its messages.  Keys are of 0-9, a-z, '-',
 * '_' and '.'; those that begin with "weft-" or "grpc-" are the library's.  The value
 * of a key that ends in "-bin" is any bytes, of another printable ASCII; it is
 * followed by a 0 that is not counted.  Keys may repeat; their order is kept.  All
 * pairs together, with 6 bytes for each, are at most 64 KiB.
 */
struct weft_metadata {
	const char *key;
	const void *value;
	size_t bytes;
};

/*
 * When a call that has failed is made again.  All attempts together have the call's deadline,
 * and each later one tells the server how many came before, as metadata "weft-attempts".
 */
struct weft_retry {
	size_t size;
	unsigned attempts;     /* at most, the first included */
	uint32_t statuses;     /* the failures after which there is another: 1u << status, of each */
	uint64_t pause_ns;     /* before the second; doubled before each later one; 0: 100 ms */
	uint64_t pause_max_ns; /* but never more; 0: 5 s.  Each is shortened at random, by half at most */
	/* To handle it twice is as good as once.  Else its handler runs once at most: see weft_rpc(3). */
	int idempotent;
};

/* How messages of calls are made shorter on their way; see weft_rpc(3). */
enum weft_compression {
	WEFT_COMPRESSION_DEFAULT = 0, /* as the node has it: WEFT_COMPRESSION */
	WEFT_UNCOMPRESSED = 1,
	WEFT_ZSTD = 2 /* if the peer understands it and it makes the message shorter */
};

/* Of a call.  Copied. */
struct weft_call_options {
	size_t size;
	struct weft_op_options op;
	const struct weft_metadata *metadata; /* for the server */
	size_t metadata_count;
	/*
	 * In a handler: the @closure_data of the call that is served.  This one has no more time
	 * than that has left, and is cancelled when its caller gives up.  NULL: it stands alone.
	 */
	void *parent;
	const struct weft_retry *retry; /* copied; NULL: one attempt; none for streams */
	enum weft_compression compression; /* of the request, or of a stream's messages */
	uint64_t message_bytes_max; /* of the reply, or of each message that is read; 0: 64 MiB */
};

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
 * any other.  The reply is the closure's only: it is freed after it.  @op
 * NULL: nobody waits, and *@service is good until it is invoked or the node closes.
 * Threads: any, callback.
 */
WEFT_API int weft_call_open(struct weft_stub *stub, const struct weft_call_options *options,
			    ProtobufCService **service, struct weft_op **op);

/*
 * What the server has sent beside its reply: metadata at the beginning and at the end,
 * *@count pairs, and bytes about a failure, as its service defines them; NULL: none.
 * They live as long as @op.  The initial metadata of a stream is there once a read
 * of it has ended well, the rest when @op has.  Threads: any, callback.
 */
WEFT_API const struct weft_metadata *weft_call_initial(struct weft_op *op, size_t *count);
WEFT_API const struct weft_metadata *weft_call_trailing(struct weft_op *op, size_t *count);
WEFT_API const void *weft_call_details(struct weft_op *op, size_t *bytes);

/*
 * Was it compressed: the reply of @op, a call, in its closure or after its end, or the
 * message of @op, a read that has ended?  Threads: any, callback.
 */
WEFT_API int weft_op_compressed(const struct weft_op *op);

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

/*
 * Serve weft.reflect.Reflection, which tells every peer what this node serves, and of
 * which types: `weft services` and `weft call` ask it.  -EEXIST: it is served.
 * Threads: any.
 */
WEFT_API int weft_serve_reflection(struct weft_node *node);

/* In a handler, @closure_data names the call.  Functions on it: */

/* The peer that calls; open until the node closes, not to be closed.  Threads: callback. */
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

/*
 * What the caller has sent beside its request: *@count pairs, which live until the
 * reply; NULL: none.  Threads: any, one at a time, callback.
 */
WEFT_API const struct weft_metadata *weft_call_metadata(void *closure_data, size_t *count);

/*
 * Metadata for the caller: with the first message or the reply, and with the reply.
 * Copies it, in the place of what was set before.  -EALREADY: the first message of the
 * stream has been written.  Before the reply.  Threads: any, one at a time, callback.
 */
WEFT_API int weft_call_set_initial(void *closure_data, const struct weft_metadata *pairs,
				   size_t count);
WEFT_API int weft_call_set_trailing(void *closure_data, const struct weft_metadata *pairs,
				    size_t count);

/* Bytes for the caller beside a failure, 64 KiB at most; copied.  As the above. */
WEFT_API int weft_call_set_details(void *closure_data, const void *details, size_t bytes);

/*
 * How the reply is to be compressed; and was the request?  Before the reply.  -EINVAL: no
 * such compression.  Threads: any, one at a time, callback.
 */
WEFT_API int weft_call_compress(void *closure_data, enum weft_compression compression);
WEFT_API int weft_call_compressed(void *closure_data);

/*
 * @tell runs once on the worker when the caller cancels, goes away or runs out of time,
 * unless the call has been answered; soon, if that has happened.  Threads: callback.
 */
WEFT_API void weft_call_on_cancel(void *closure_data, void (*tell)(void *arg), void *arg);

#ifdef __cplusplus
}
#endif
#endif
