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
struct weft_served;

/*
 * Metadata: pairs that go with a call beside its messages.  Keys are of 0-9, a-z, '-', '_' and
 * '.'; keys that begin with "weft-" or "grpc-" are the library's.  The value of a key that ends in
 * "-bin" is any bytes, of another key printable ASCII; a received value is followed by a 0 that is
 * not counted.  Keys may repeat; their order is kept.  All pairs together, with 6 bytes for each,
 * are at most 64 KiB.
 */
struct weft_metadata {
	const char *key;
	const void *value;
	size_t bytes;
};

/*
 * Retries: when a failed call is made again.  All attempts together have the call's deadline, and
 * each later attempt tells the server how many came before, as metadata "weft-attempts".
 */
struct weft_retry {
	size_t size;
	unsigned attempts;     /* attempts at most, the first included */
	uint32_t statuses;     /* failures that are retried: 1u << status, of each */
	/* Pause before the second attempt; doubled before each later one; 0: 100 ms. */
	uint64_t pause_ns;
	/* Longest pause; 0: 5 s.  Each pause is shortened at random, by half at most. */
	uint64_t pause_max_ns;
	/*
	 * Not 0: handling the call twice is as good as once.  0: the handler runs once at most,
	 * see weft_rpc(3).
	 */
	int idempotent;
};
#define WEFT_RETRY_INIT WEFT_SIZED_INIT(struct weft_retry)

/* Compression of messages of calls on their way; see weft_rpc(3). */
enum weft_compression {
	WEFT_COMPRESSION_DEFAULT = 0, /* as the node has it: WEFT_COMPRESSION */
	WEFT_UNCOMPRESSED = 1,
	WEFT_ZSTD = 2 /* zstd, if the peer understands it and the message gets shorter */
};

/* Options of a call; copied. */
struct weft_call_options {
	size_t size;
	struct weft_op_options op;
	const struct weft_metadata *metadata; /* pairs for the server */
	size_t metadata_count;
	/*
	 * In a handler: the call that is served.  The new call has no more time than the served
	 * one has left, and is cancelled when the served one's caller gives up.  NULL: the call
	 * stands alone.
	 */
	struct weft_served *parent;
	const struct weft_retry *retry; /* copied; NULL: one attempt; none for streams */
	enum weft_compression compression; /* for the request, or a stream's messages */
	/* Longest reply, or message of a stream that is read; 0: 64 MiB. */
	uint64_t message_bytes_max;
};
#define WEFT_CALL_OPTIONS_INIT WEFT_SIZED_OP_INIT(struct weft_call_options)

/*
 * Open a client of the service @descriptor at @peer.  Returns @stub owned: free it with
 * weft_stub_close().  -EINVAL: the service was compiled without names.  Threads: any, callback.
 */
WEFT_API int weft_stub_open(struct weft_peer *peer,
			    const ProtobufCServiceDescriptor *descriptor,
			    struct weft_stub **stub);

/*
 * Close a stub, before its node closes or after; accepts NULL.  Running calls go on.
 * Threads: any, callback.
 */
WEFT_API void weft_stub_close(struct weft_stub *stub);

/*
 * Returns the service to give to generated functions: every invocation is a call with the node's
 * deadline.  The closure runs once, on the worker, with NULL if the call failed, and inside it
 * weft_reply_status() says why.  Where the call can't begin, as without memory, the closure runs
 * inside the generated function.  The service lives as long as the stub.  Threads: any, callback.
 */
WEFT_API ProtobufCService *weft_stub_service(struct weft_stub *stub);

/*
 * Open a call with options of its own.  *@service is for exactly one invocation by a generated
 * function, which starts the call; the closure of a second one runs at once, with NULL and
 * WEFT_FAILED_PRECONDITION.  @op is the call's operation, which ends when the closure has returned
 * and is waited for, cancelled and freed as any other; inside the closure its status, its message
 * and weft_op_executed() are there already.  The call's time runs from here on; a call that is
 * never invoked does not end, not even at its deadline.  The reply lives as long as @op.  @op NULL:
 * nobody waits, the reply is freed after the closure, and *@service is good until it is invoked or
 * the node closes.  -EINVAL: an option or a pair of the metadata is wrong.  -EMSGSIZE: the metadata
 * has more than 64 KiB.  Threads: any, callback.
 */
WEFT_API int weft_call_open(struct weft_stub *stub, const struct weft_call_options *options,
			    ProtobufCService **service, struct weft_op **op);

/*
 * Returns the reply of a unary call that has ended well, as its closure was given it; NULL else.
 * The reply lives as long as @op.  Threads: any, callback.
 */
WEFT_API const ProtobufCMessage *weft_call_reply(const struct weft_op *op);

/*
 * Returns the metadata that the server sent at the beginning, *@count pairs that live as long as
 * @op; NULL: none.  The pairs are there inside the closure, when @op has ended, and of a stream
 * once a read of it has ended well.  Threads: any, callback.
 */
WEFT_API const struct weft_metadata *weft_call_initial(const struct weft_op *op, size_t *count);

/*
 * Returns the metadata that the server sent at the end, *@count pairs that live as long as @op;
 * NULL: none.  The pairs are there inside the closure, and when @op has ended.
 * Threads: any, callback.
 */
WEFT_API const struct weft_metadata *weft_call_trailing(const struct weft_op *op, size_t *count);

/*
 * Returns *@bytes bytes that the server sent about a failure, as its service defines them; they
 * live as long as @op; NULL: none.  The bytes are there inside the closure, and when @op has
 * ended.  Threads: any, callback.
 */
WEFT_API const void *weft_call_details(const struct weft_op *op, size_t *bytes);

/*
 * Returns whether a message was compressed: the reply of @op, a call, in its closure or after its
 * end, or the message of @op, a read that has ended.  Threads: any, callback.
 */
WEFT_API int weft_op_compressed(const struct weft_op *op);

/*
 * Returns the outcome of the call inside whose closure the function runs, and a sentence about it
 * in *@message, unless @message is NULL, for as long as the closure runs.  WEFT_UNKNOWN outside
 * of a closure.  Threads: callback, the closure's own.
 */
WEFT_API enum weft_status weft_reply_status(const char **message);

/*
 * Serve @service to every peer; borrows it until the node closes.  A handler runs on the worker of
 * the caller and must not block; in a node of several workers handlers for different callers run
 * at the same time.  A handler may call its closure later, from any thread.
 * -EEXIST: a service of that name is served.  -EINVAL: the service was compiled without names.
 * Threads: any.
 */
WEFT_API int weft_serve(struct weft_node *node, ProtobufCService *service);

/*
 * Serve weft.reflect.Reflection, which tells every peer the services of this node and their types:
 * `weft services` and `weft call` ask it.  -EEXIST: reflection is served already.  Threads: any.
 */
WEFT_API int weft_serve_reflection(struct weft_node *node);

#ifdef __cplusplus
}
#endif
#endif
