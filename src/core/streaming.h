/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stream: the object behind struct weft_stream, and the operations that write to it and read.
 */
#ifndef WF_CORE_STREAM_H
#define WF_CORE_STREAM_H

#include <weft/weft.h>
#include "core/desk.h"

/* A stream, of a caller or of a server. */
struct weft_stream {
	struct wf_list node;      /* in owner->streams */
	struct weft_node *owner;  /* NULL: it has closed */
	struct wf_desk *first;    /* where reads and writes come in, in their order */
	struct wf_desk *_Atomic desk; /* where its call runs: another only before that has begun */
	atomic_uint refs;         /* the caller's, the floor below's, and one for each read and write */
	const ProtobufCMessageDescriptor *reads, *writes;
	struct weft_op *call;     /* a caller's; a reference */
	struct wf_served *served; /* a server's, until it has finished */
	enum weft_compression compression; /* of what is written */
	atomic_bool half_closed;
	atomic_bool wrote;        /* so that the initial metadata is settled */
	struct wf_task close_task;
	struct wf_desk *close_desk; /* where that was said */
	struct wf_list attached;  /* to the next message, so many: */
	unsigned attachments;
	struct wf_list moving;    /* attachments of messages that have been written; worker only */
	struct wf_stream stream;
};

struct wf_op_write {
	struct weft_stream *stream; /* a reference */
	struct wf_list attached;  /* beside its message */
	struct wf_write write;    /* the last */
};

struct wf_op_read {
	struct weft_stream *stream; /* a reference */
	ProtobufCMessage *message;
	struct wf_path path;      /* how long it was, packed */
	bool compressed;          /* it was */
	struct wf_bundle *bundle; /* of what has come beside it; NULL: nothing */
	struct wf_reading reading;
};

/* Begin a call of @stub whose request, reply or both are many messages.  Recorded.  Threads: any, callback. */
int wf_streaming_open(struct weft_stub *stub, const char *method,
		      const struct weft_call_options *options, struct weft_stream **stream,
		      struct weft_op **op);
void wf_streaming_close(struct weft_stream *stream); /* a caller's */

/* Operations of a stream.  Recorded.  Threads: as its user says, one at a time. */
int wf_streaming_write(struct weft_stream *stream, const ProtobufCMessage *message,
		       const struct weft_op_options *options, struct weft_op **op);
int wf_streaming_half_close(struct weft_stream *stream);
int wf_streaming_read(struct weft_stream *stream, const struct weft_op_options *options,
		      struct weft_op **op);

/* What the rpc floor asks of a service whose methods have streams. */
struct wf_stream *wf_streaming_serve(struct wf_service *service, int method,
				     struct wf_served *served);
void wf_streaming_handle(struct wf_service *service, int method, struct wf_served *served);

void wf_streaming_put(struct weft_stream *stream);

/* Has anything been written to it? */
bool wf_streaming_wrote(const struct wf_stream *stream);

/* The call that is served is given up, or is over: so are attachments under way, or not begun. */
void wf_streaming_given_up(struct wf_stream *stream, struct wf_desk *desk);
void wf_streaming_gone(struct wf_stream *stream, struct wf_desk *desk);

/* Its node closes: users may still hold it. */
void wf_streaming_let_go(struct weft_stream *stream);

#endif
