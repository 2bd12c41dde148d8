/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streams: calls of many messages, either way or both.
 *
 * protoc-c knows no streams, and generates for such a method what it generates for any:
 * these functions take the place of that.  Messages are of the types that the service's
 * descriptor gives the method; WEFT_STREAM_TYPES() makes the compiler see to it.
 *
 * Each direction keeps its order.  A write waits while the other side has many messages,
 * 64 at most, that are not read.
 */
#ifndef WEFT_STREAM_H
#define WEFT_STREAM_H

#include <weft/rpc.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_stream;

/*
 * Call @method of the stub's service.  @op ends with the call: with the status that the
 * server gave, or with what went wrong.  Messages that came before a server's status can
 * still be read after it; any other end drops them.  Threads: any, callback.
 */
WEFT_API int weft_stream_open(struct weft_stub *stub, const char *method,
			      const struct weft_call_options *options,
			      struct weft_stream **stream, struct weft_op **op);

/*
 * The caller lets go: a call that runs is cancelled, a read that runs ends.  Not to be
 * used any more by anybody.  Accepts NULL.  Threads: any, callback.
 */
WEFT_API void weft_stream_close(struct weft_stream *stream);

/*
 * Write @message, which is packed before this returns; @op ends when it is on its way,
 * and a long one when the other side has pulled it.  @op NULL: nobody waits, and a
 * failure is seen by how the call ends.  Its deadline, unless @options has one, is the
 * call's; when that passes, or it is cancelled, it is not written if it still waits for
 * the reader, and one that is being pulled breaks the stream.  -EINVAL: of another type; -EMSGSIZE: above 1 GiB; -EPIPE: after
 * half-close.  Threads: any, one at a time for an order, callback.
 */
WEFT_API int weft_stream_write(struct weft_stream *stream, const ProtobufCMessage *message,
			       const struct weft_op_options *options, struct weft_op **op);

/*
 * How messages that are written from now on are to be compressed.  -EINVAL: no such
 * compression.  Threads: any, one at a time with writes, callback.
 */
WEFT_API int weft_stream_compress(struct weft_stream *stream, enum weft_compression compression);

/*
 * The caller has no more to write.  Once, after its writes: -EPIPE.  -EINVAL: this is the
 * server.  Threads: any, callback.
 */
WEFT_API int weft_stream_half_close(struct weft_stream *stream);

/*
 * Read the next message: weft_stream_message() of @op when that has ended well; NULL when
 * there are no more: the caller has half-closed, or the server has ended the call well.
 * A call that failed fails its reads.  Its deadline, unless @options has one, is the
 * call's; one that ends early leaves the message to the next.  Threads: any, one at a
 * time for an order, callback.
 */
WEFT_API int weft_stream_read(struct weft_stream *stream, const struct weft_op_options *options,
			      struct weft_op **op);

/* What @op, a read that has ended, got; lives as long as @op.  Threads: any, callback. */
WEFT_API const ProtobufCMessage *weft_stream_message(const struct weft_op *op);

/*
 * The server's end of a method with a stream.  @handle begins it, on the worker, and must
 * not block; the stream is its own until weft_stream_finish().
 */
struct weft_stream_method {
	const char *name; /* of the method in the service's descriptor */
	void (*handle)(struct weft_stream *stream, void *arg);
	void *arg;
};

/*
 * As weft_serve(), with streams for @count @methods, which are copied.  Handlers of the
 * same methods in @service are never called.  -ENOENT: it has no such method.
 * Threads: any.
 */
WEFT_API int weft_serve_streams(struct weft_node *node, ProtobufCService *service,
				const struct weft_stream_method *methods, size_t count);

/*
 * End the call, once, after what has been written: reads that run end, and the stream is
 * not to be used any more.  Copies @message.  Threads: any, callback.
 */
WEFT_API void weft_stream_finish(struct weft_stream *stream, enum weft_status status,
				 const char *message);

/* The server's name of the call, for weft_call_peer() and its like.  Threads: any, callback. */
WEFT_API void *weft_stream_call(struct weft_stream *stream);

/*
 * Typed functions for a method with a stream from @Request to @Reply, which are structs
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
