/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The answer to a served call, from the handler's word, or a failure that no
 * handler had a part in, until it has left: after what was written before it,
 * and kept for the next attempt of a call that may be made again.
 *
 * Each of these may be the end of the call: it is not to be touched afterwards.
 *
 * Threads: owner, but for what says otherwise.
 */
#ifndef WF_REPLY_H
#define WF_REPLY_H

#include "rpc/message.h"
#include "transfer/parcel.h"

#define WF_REPLY_BRIEF_BYTES 160 /* a sentence that can be told without memory; with it, a head is inline in its parcel */

struct wf_served;
struct wf_stream;

/*
 *   NONE ----> POSTED ----> FAILED
 *     \-> WAITING -^
 */
enum wf_reply_state {
	WF_REPLY_NONE,    /* there is no answer, or it is not its turn */
	WF_REPLY_WAITING, /* for what was written before it on the stream */
	WF_REPLY_POSTED,
	WF_REPLY_FAILED,  /* nothing of it could leave, and that is posted instead */
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
	uint8_t compression;  /* enum weft_compression: as the handler wants it */
	uint16_t attachments; /* so many, */
	struct wf_list attached; /* of the floor above */
	struct wf_reply_block initial, trailing; /* metadata, the handler's */
	struct wf_reply_block details; /* about a failure */
	char *text;           /* of a failure: @brief, or allocated */
	struct wf_reason why; /* the stream broke, which is the answer then */
	struct wf_task task;  /* from the handler's thread */
	struct wf_parcel parcel;
	char brief[WF_REPLY_BRIEF_BYTES];
};

/*
 * The handler's word: @reply, which is taken; or, with a @status other than OK and @reply NULL,
 * @text, which is copied.  Only the first counts; -EALREADY: it was not this one, and @reply is
 * given up.  Threads: any, callback.
 */
int wf_reply_submit(struct wf_served *s, enum weft_status status, const char *text,
		    const struct wf_packed *reply);

/* Answer with a failure, unless somebody has answered already. */
void wf_reply_fail(struct wf_served *s, enum weft_status status, const char *text);

/* The same before anything was done for it. */
void wf_reply_refuse(struct wf_served *s, enum weft_status status, const char *text);

/* Its message and its text, if it has any, are given up. */
void wf_reply_drop(struct wf_served *s);

/* Of its stream: all that was written before the answer has been said, or will not be. */
void wf_reply_flushed(struct wf_stream *stream);
void wf_reply_broken(struct wf_stream *stream, const struct wf_error *e);

/* Of what was written before it something did not leave: an answer that is posted is a failure now. */
void wf_reply_unsaid(struct wf_stream *stream, const struct wf_error *e);

#endif
