/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The records of calls and streams: a call, its reply, and messages between the two.
 *
 * Pure: no I/O, no allocation, no clock.  A get's pointers lie in its input.
 */
#ifndef WF_RECORD_CALL_H
#define WF_RECORD_CALL_H

#include <weft/base.h>
#include "wire/record.h"

#define WF_CALL_STREAM 1 /* messages come in records of their own; the call itself has none */
#define WF_CALL_REQUEST 2 /* the call may be made again, with the same request id */
#define WF_CALL_AGAIN 4  /* @incarnation of the server may have handled an earlier attempt */

#define WF_CALL_COMPRESSED 8 /* the body is one frame of zstd */

#define WF_CALL_INCARNATION_BYTES 16

struct wf_record_call {
	uint64_t call;    /* the caller's id */
	uint64_t left_ns; /* time until the deadline; UINT64_MAX: none */
	uint16_t flags;   /* WF_CALL_* */
	uint16_t service_bytes, method_bytes;
	uint16_t attachments; /* count; they come after the call */
	uint32_t metadata_bytes;
	uint64_t request; /* with REQUEST: the caller's id of all attempts, not 0; else 0 */
	const uint8_t *incarnation; /* with AGAIN: the server's; else NULL */
	struct wf_body body;
	const uint8_t *service, *method;
	const uint8_t *metadata; /* as in pair.h; not checked yet */
	const uint8_t *eager;
};

size_t wf_record_call_bytes(const struct wf_record_call *c);
void wf_record_call_put(struct wf_bytes_writer *w, const struct wf_record_call *c);
/*
 * -EBADMSG: lengths; other flags; a stream with a body or a request; AGAIN without REQUEST;
 * request 0.
 */
int wf_record_call_get(const uint8_t *bytes, size_t count, struct wf_record_call *c);

#define WF_REPLY_COMPRESSED 1 /* the body is one frame of zstd */

struct wf_record_reply {
	uint64_t call;
	uint8_t status;   /* enum weft_status */
	uint8_t executed; /* enum weft_executed */
	uint16_t flags;   /* WF_REPLY_COMPRESSED */
	uint16_t text_bytes;
	uint16_t attachments; /* count; they come after the reply; 0 for a failure */
	uint32_t initial_bytes, trailing_bytes, details_bytes;
	struct wf_body body;
	const uint8_t *text;
	const uint8_t *initial, *trailing; /* metadata */
	const uint8_t *details; /* details of a failure, in bytes of the handler's */
	const uint8_t *eager;
};

size_t wf_record_reply_bytes(const struct wf_record_reply *r);
void wf_record_reply_put(struct wf_bytes_writer *w, const struct wf_record_reply *r);
int wf_record_reply_get(const uint8_t *bytes, size_t count, struct wf_record_reply *r);

/* Messages that may be under way in a stream, in either direction, before the first grant. */
#define WF_STREAM_WINDOW 64

#define WF_MESSAGE_NONE 1    /* no message: the record tells the rest only */
#define WF_MESSAGE_LAST 2    /* a REQUEST: no message comes after it */
#define WF_MESSAGE_INITIAL 4 /* a RESPONSE, the first: with the initial metadata */
#define WF_MESSAGE_COMPRESSED 8 /* the body is one frame of zstd */

/* A message of a stream: REQUEST or RESPONSE. */
struct wf_record_message {
	uint64_t call;  /* the caller's id */
	uint16_t flags; /* WF_MESSAGE_* */
	uint16_t attachments; /* count; they come after the message */
	uint32_t metadata_bytes;
	struct wf_body body;
	const uint8_t *metadata, *eager;
};

size_t wf_record_message_bytes(const struct wf_record_message *m);
void wf_record_message_put(struct wf_bytes_writer *w, const struct wf_record_message *m);
/*
 * -EBADMSG: lengths; other flags; a body or attachments where there is no message; metadata
 * without INITIAL.
 */
int wf_record_message_get(const uint8_t *bytes, size_t count, struct wf_record_message *m);

#endif
