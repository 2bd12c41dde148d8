/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streams: calls of many messages, either way or both.
 *
 * protoc-c knows no streams, and generates for a method with a stream what it generates for any:
 * the functions here take the place of that.  Messages are of the types that the service's
 * descriptor gives the method; WEFT_STREAM_TYPES() makes the compiler see to it.
 *
 * Each direction keeps its order.  A write waits while the other side has many messages, 64 at
 * most, that are not read.
 */
#ifndef WEFT_STREAM_H
#define WEFT_STREAM_H

#include <weft/rpc.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_stream;

/*
 * Open a stream: call @method of the stub's service.  @op ends with the call: with the status that
 * the server gave, or with what went wrong.  Messages that came before a server's status can still
 * be read after it; any other end drops them.  Returns @stream owned: free it with
 * weft_stream_close().  -ENOENT: the service has no such method.  Threads: any, callback.
 */
WEFT_API int weft_stream_open(struct weft_stub *stub, const char *method,
			      const struct weft_call_options *options,
			      struct weft_stream **stream, struct weft_op **op);

/*
 * Close the caller's end of a stream, before its node closes or after: a call that runs is
 * cancelled, reads that run end.  Nobody may use the stream any more.  Accepts NULL.
 * Threads: any, callback.
 */
WEFT_API void weft_stream_close(struct weft_stream *stream);

/*
 * Write @message, which is packed before the function returns.  @op ends when the message is on
 * its way, or a long message when the other side has pulled it.  @op NULL: nobody waits, and a
 * failure is seen by how the call ends.  The deadline is the call's, unless @options has its own.
 * A write that is cancelled or out of time is taken back if it still waits for the reader; a
 * message that is being pulled then breaks the stream.
 * -EINVAL: @message is of another type.  -EMSGSIZE: @message has more than 1 GiB.  -EPIPE: the
 * stream is half-closed.  Threads: any, one at a time for an order, callback.
 */
WEFT_API int weft_stream_write(struct weft_stream *stream, const ProtobufCMessage *message,
			       const struct weft_op_options *options, struct weft_op **op);

/*
 * Set the compression of messages that are written from now on.  -EINVAL: there is no such
 * compression.  Threads: any, one at a time with writes, callback.
 */
WEFT_API int weft_stream_compress(struct weft_stream *stream, enum weft_compression compression);

/*
 * Say, once, that the caller has no more to write.  A write that another thread is in goes before
 * it, or its operation ends with WEFT_FAILED_PRECONDITION.  -EPIPE: the stream is half-closed
 * already.  -EINVAL: the stream is a server's.  Threads: any, callback.
 */
WEFT_API int weft_stream_half_close(struct weft_stream *stream);

/*
 * Read the next message: weft_stream_message() of @op when that has ended well.  NULL there says
 * that there are no more: the caller has half-closed, or the server has ended the call well.  A
 * call that failed fails its reads.  The deadline is the call's, unless @options has its own; a
 * read that ends early leaves the message to the next read.  Threads: any, one at a time for an
 * order, callback.
 */
WEFT_API int weft_stream_read(struct weft_stream *stream, const struct weft_op_options *options,
			      struct weft_op **op);

/*
 * Returns the message that @op, a read that has ended, got; lives as long as @op.
 * Threads: any, callback.
 */
WEFT_API const ProtobufCMessage *weft_stream_message(const struct weft_op *op);

/*
 * A server's end of a method with a stream.  @handle begins a call, on the worker, and must not
 * block; the stream is the handler's own until weft_stream_finish().
 */
struct weft_stream_method {
	const char *name; /* name of the method in the service's descriptor */
	void (*handle)(struct weft_stream *stream, void *arg);
	void *arg;
};

/*
 * Serve @service as weft_serve() does, with streams for @count @methods, which are copied.
 * Handlers of the same methods in @service are never called.  -ENOENT: @service has no such
 * method.  -EEXIST: a service of that name is served.  Threads: any.
 */
WEFT_API int weft_serve_streams(struct weft_node *node, ProtobufCService *service,
				const struct weft_stream_method *methods, size_t count);

/*
 * End a served call, once, after what has been written: reads that run end, and the stream must
 * not be used any more.  Copies @message.  Threads: any, callback.
 */
WEFT_API void weft_stream_finish(struct weft_stream *stream, enum weft_status status,
				 const char *message);

/*
 * Returns the served call of a stream, for weft_served_peer() and its like; NULL
 * for a caller's stream.  Threads: any, callback.
 */
WEFT_API struct weft_served *weft_stream_served(struct weft_stream *stream);

/*
 * Define typed functions for a method with a stream from @Request to @Reply, which are structs
 * that protoc-c made:
 *   PREFIX_ask(stream, request, options, op)   PREFIX_answered(op)  for the caller,
 *   PREFIX_answer(stream, reply, options, op)  PREFIX_asked(op)     for the server.
 */
#define WEFT_STREAM_TYPES(prefix, Request, Reply)                                             \
	__attribute__((unused))                                                                \
	static inline int prefix##_ask(struct weft_stream *stream, const Request *request,     \
				       const struct weft_op_options *options,                  \
				       struct weft_op **op)                                    \
	{                                                                                      \
		return weft_stream_write(stream, &request->base, options, op);                 \
	}                                                                                      \
	__attribute__((unused))                                                                \
	static inline int prefix##_answer(struct weft_stream *stream, const Reply *reply,      \
					  const struct weft_op_options *options,               \
					  struct weft_op **op)                                 \
	{                                                                                      \
		return weft_stream_write(stream, &reply->base, options, op);                   \
	}                                                                                      \
	__attribute__((unused))                                                                \
	static inline const Request *prefix##_asked(const struct weft_op *op)                  \
	{                                                                                      \
		return (const Request *)(const void *)weft_stream_message(op);                 \
	}                                                                                      \
	__attribute__((unused))                                                                \
	static inline const Reply *prefix##_answered(const struct weft_op *op)                 \
	{                                                                                      \
		return (const Reply *)(const void *)weft_stream_message(op);                   \
	}                                                                                      \
	struct weft_stream

#ifdef __cplusplus
}
#endif
#endif
