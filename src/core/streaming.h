/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stream: the object behind struct weft_stream, and the operations that write to it and read.
 */
#ifndef WF_CORE_STREAMING_H
#define WF_CORE_STREAMING_H

#include <weft/weft.h>
#include "core/worker.h"

/* A stream, of a caller or of a server. */
struct weft_stream {
	struct wf_list node;      /* in owner->streams */
	struct weft_node *owner;  /* NULL: the node has closed */
	struct wf_worker *first;  /* where reads and writes come in, in order */
	struct wf_worker *_Atomic worker; /* where the call runs; fixed once the call has begun */
	atomic_uint refs;         /* caller's, rpc floor's, and one for each read and write */
	const ProtobufCMessageDescriptor *reads, *writes;
	struct weft_op *call;     /* on the caller's side; a reference */
	struct wf_server_call *served; /* on the server's side, until the call has finished */
	enum weft_compression compression; /* for written messages */
	atomic_bool half_closed;  /* half-closed, as those who write are told at once */
	bool ended;               /* the half-close has started: no write does any more; worker only */
	atomic_bool wrote;        /* a message was written: the initial metadata is settled */
	struct wf_loop_task close_task;
	struct wf_worker *close_worker; /* the worker that close_task runs at */
	struct wf_list attached;  /* attachments of the next message */
	unsigned attachments;     /* length of attached */
	struct wf_list moving;    /* attachments of messages that have been written; worker only */
	struct wf_stream stream;
};

struct wf_op_write {
	struct weft_stream *stream; /* a reference */
	struct wf_list attached;  /* attachments of the message */
	struct wf_write write;    /* the last member */
};

struct wf_op_read {
	struct weft_stream *stream; /* a reference */
	ProtobufCMessage *message;
	struct wf_path path;      /* bytes alone: the packed length */
	bool compressed;          /* the message was compressed */
	struct wf_attachment_set *attachment_set; /* attachments of the message; NULL: none */
	struct wf_reading reading;
};

/*
 * Begin a call of @stub whose request, reply or both are many messages.  Failures are recorded.
 * Threads: any, callback.
 */
int wf_streaming_open(struct weft_stub *stub, const char *method,
		      const struct weft_call_options *options, struct weft_stream **stream,
		      struct weft_op **op);
void wf_streaming_close(struct weft_stream *stream); /* the caller's side */

/* Operations of a stream.  Failures are recorded.  Threads: as its user says, one at a time. */
int wf_streaming_write(struct weft_stream *stream, const ProtobufCMessage *message,
		       const struct weft_op_options *options, struct weft_op **op);
int wf_streaming_half_close(struct weft_stream *stream); /* -EPIPE: it is half-closed already */
int wf_streaming_read(struct weft_stream *stream, const struct weft_op_options *options,
		      struct weft_op **op);

/* Implement open and begin of struct wf_service for methods that have streams. */
struct wf_stream *wf_streaming_serve(struct wf_service *service, int method,
				     struct wf_server_call *served);
void wf_streaming_handle(struct wf_service *service, int method, struct wf_server_call *served);

void wf_streaming_put(struct weft_stream *stream);

/* Returns whether anything was written to @stream. */
bool wf_streaming_wrote(const struct wf_stream *stream);

/* Stop attachments that are under way: the served call was given up. */
void wf_streaming_given_up(struct wf_stream *stream, struct wf_worker *worker);
/* Stop attachments that have not begun: the served call is over. */
void wf_streaming_gone(struct wf_stream *stream, struct wf_worker *worker);

/* Detach @stream, which a user may still hold, from a node that closes. */
void wf_streaming_let_go(struct weft_stream *stream);

#endif
