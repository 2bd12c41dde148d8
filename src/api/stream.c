/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "core/check.h"
#include "core/compression.h"
#include "core/node.h"
#include "core/op.h"
#include "core/streaming.h"
#include "core/stub.h"
#include "rpc/reply.h"
#include "util/status.h"

int weft_stream_open(struct weft_stub *stub, const char *method,
		     const struct weft_call_options *options, struct weft_stream **stream,
		     struct weft_op **op)
{
	if (WF_NEED(stub) || WF_NEED(method) || WF_NEED(stream))
		return -EINVAL;
	return wf_streaming_open(stub, method, options, stream, op);
}

void weft_stream_close(struct weft_stream *stream)
{
	if (stream && !stream->served && !(stream->owner && wf_check_node(stream->owner)))
		wf_streaming_close(stream);
}

int weft_stream_write(struct weft_stream *stream, const ProtobufCMessage *message,
		      const struct weft_op_options *options, struct weft_op **op)
{
	if (WF_NEED(stream) || WF_NEED(message))
		return -EINVAL;
	if (message->descriptor != stream->writes)
		return wf_last_set(-EINVAL, "a stream of %s can't take a %s", stream->writes->name,
				   message->descriptor->name);
	if (atomic_load(&stream->half_closed))
		return wf_last_set(-EPIPE, "the stream is half-closed");
	return wf_streaming_write(stream, message, options, op);
}

int weft_stream_compress(struct weft_stream *stream, enum weft_compression compression)
{
	int err = WF_NEED(stream);

	if (!err && stream->owner)
		err = wf_check_node(stream->owner);
	if (!err)
		err = wf_compression_check(compression);
	if (!err)
		stream->compression = compression;
	return err;
}

int weft_stream_half_close(struct weft_stream *stream)
{
	if (WF_NEED(stream))
		return -EINVAL;
	if (stream->stream.serves)
		return wf_last_set(-EINVAL, "a server ends its stream by weft_stream_finish");
	return wf_streaming_half_close(stream);
}

int weft_stream_read(struct weft_stream *stream, const struct weft_op_options *options,
		     struct weft_op **op)
{
	return WF_NEED(stream) ? -EINVAL : wf_streaming_read(stream, options, op);
}

const ProtobufCMessage *weft_stream_message(const struct weft_op *op)
{
	if (WF_NEED(op) || op->class->kind != WF_OP_READ || !weft_op_ended(op))
		return NULL;
	return op->read.message;
}

/* The server. */

int weft_serve_streams(struct weft_node *node, ProtobufCService *service,
		       const struct weft_stream_method *methods, size_t count)
{
	const struct weft_serve_options options = {
		.size = sizeof(options), .methods = methods, .method_count = count,
	};

	return weft_serve_with(node, service, &options);
}

void weft_stream_finish(struct weft_stream *stream, enum weft_status status, const char *message)
{
	if (!WF_NEED(stream) && stream->served)
		wf_reply_submit(stream->served,
				status == WEFT_OK ? status : wf_status_failure(status), message,
				NULL);
}

struct weft_served *weft_stream_served(struct weft_stream *stream)
{
	return WF_NEED(stream) ? NULL : wf_worker_handle(stream->served);
}
