/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The answer to a served call, from the handler's reply, or a failure without a handler, until
 * it has left: after messages that were written before it, and kept for the next attempt of a
 * call that may be made again.
 *
 * Each of these functions may end the call, which must not be touched afterwards.
 *
 * Threads: owner, but where a comment says otherwise.
 */
#ifndef WF_REPLY_H
#define WF_REPLY_H

#include "rpc/codec.h"
#include "transfer/outgoing.h"

/* a sentence that needs no memory; with it, a head is inline in its outgoing body */
#define WF_REPLY_BRIEF_BYTES 160

struct wf_server_call;
struct wf_stream;

/*
 * States of a reply:
 *
 *   NONE ----> POSTED ----> FAILED
 *     \-> WAITING -^
 */
enum wf_reply_state {
	WF_REPLY_NONE,    /* no answer yet, or it is not posted yet */
	WF_REPLY_WAITING, /* waits for messages written before it on the stream */
	WF_REPLY_POSTED,
	WF_REPLY_FAILED,  /* nothing of the reply could leave, and a failure is posted instead */
};

/* Bytes of a reply: allocated, NULL if there are none. */
struct wf_reply_block {
	uint8_t *at;
	uint32_t bytes;
};

/* The reply of a served call. */
struct wf_reply {
	enum wf_reply_state state;
	enum weft_status status;
	struct wf_buffer buffer;
	bool compressed;
	uint8_t compression;  /* enum weft_compression: the handler's wish */
	uint16_t attachments; /* number of attachments */
	struct wf_list attached; /* attachments, of the floor above */
	struct wf_reply_block initial, trailing; /* metadata of the handler */
	struct wf_reply_block details; /* bytes about a failure */
	char *text;           /* text of a failure: @brief, or allocated */
	struct wf_reason why; /* why the stream broke, which is the answer then */
	struct wf_loop_task task; /* submitted by the handler's thread */
	struct wf_outgoing outgoing;
	char brief[WF_REPLY_BRIEF_BYTES];
};

/*
 * Answer for the handler: @reply, which is taken; or, with a @status other than OK and @reply
 * NULL, @text, which is copied.  Only the first answer counts; -EALREADY: there was one, and
 * @reply is given up.  Threads: any, callback.
 */
int wf_reply_submit(struct wf_server_call *s, enum weft_status status, const char *text,
		    const struct wf_codec_packed *reply);

/* Answer with a failure, unless there is an answer already. */
void wf_reply_fail(struct wf_server_call *s, enum weft_status status, const char *text);

/*
 * Answer with a failure as wf_reply_fail() does, before anything was done for the call, and
 * count it as refused.
 */
void wf_reply_refuse(struct wf_server_call *s, enum weft_status status, const char *text);

/* Free message and text, if there are any. */
void wf_reply_drop(struct wf_server_call *s);

/* Post the answer that waited: messages written before it have left, or never will. */
void wf_reply_flushed(struct wf_stream *stream);

/* Answer with @e, why the stream broke. */
void wf_reply_broken(struct wf_stream *stream, const struct wf_error *e);

/* Make a failure of an answer that is posted, for a message before it did not leave. */
void wf_reply_unsaid(struct wf_stream *stream, const struct wf_error *e);

#endif
