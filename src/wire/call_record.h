/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The records of calls and streams: a call, its reply, messages between the two, and the
 * keys of the attachments beside them.
 *
 * Pure: no I/O, no allocation, no clock.  A get's pointers lie in its input.
 */
#ifndef WF_CALL_RECORD_H
#define WF_CALL_RECORD_H

#include <weft/base.h>
#include "wire/body.h"

#define WF_CALL_STREAM 1 /* messages come in records of their own; the call itself has none */
#define WF_CALL_REQUEST 2 /* the call may be made again, with the same request id */
#define WF_CALL_AGAIN 4  /* @incarnation of the server may have handled an earlier attempt */

#define WF_CALL_COMPRESSED 8 /* the body is one frame of zstd */

#define WF_CALL_INCARNATION_BYTES 16

struct wf_call_record {
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
	const uint8_t *metadata; /* as in metadata.h; not checked yet */
	const uint8_t *eager;
};

size_t wf_call_record_bytes(const struct wf_call_record *c);
void wf_call_record_put(struct wf_bytes_writer *w, const struct wf_call_record *c);
/*
 * -EBADMSG: lengths; other flags; a stream with a body or a request; AGAIN without REQUEST;
 * request 0.
 */
int wf_call_record_get(const uint8_t *bytes, size_t count, struct wf_call_record *c);

#define WF_REPLY_COMPRESSED 1 /* the body is one frame of zstd */

struct wf_reply_record {
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

size_t wf_reply_record_bytes(const struct wf_reply_record *r);
void wf_reply_record_put(struct wf_bytes_writer *w, const struct wf_reply_record *r);
int wf_reply_record_get(const uint8_t *bytes, size_t count, struct wf_reply_record *r);

/* Messages that may be under way in a stream, in either direction, before the first grant. */
#define WF_STREAM_WINDOW 64

#define WF_MESSAGE_NONE 1    /* no message: the record tells the rest only */
#define WF_MESSAGE_LAST 2    /* a REQUEST: no message comes after it */
#define WF_MESSAGE_INITIAL 4 /* a RESPONSE, the first: with the initial metadata */
#define WF_MESSAGE_COMPRESSED 8 /* the body is one frame of zstd */

/* A message of a stream: REQUEST or RESPONSE. */
struct wf_message_record {
	uint64_t call;  /* the caller's id */
	uint16_t flags; /* WF_MESSAGE_* */
	uint16_t attachments; /* count; they come after the message */
	uint32_t metadata_bytes;
	struct wf_body body;
	const uint8_t *metadata, *eager;
};

size_t wf_message_record_bytes(const struct wf_message_record *m);
void wf_message_record_put(struct wf_bytes_writer *w, const struct wf_message_record *m);
/*
 * -EBADMSG: lengths; other flags; a body or attachments where there is no message; metadata
 * without INITIAL.
 */
int wf_message_record_get(const uint8_t *bytes, size_t count, struct wf_message_record *m);

/*
 * The key of an ATTACHMENT, which says which one it is; the step is the caller's id of the
 * call.  A message has at most WF_ATTACHMENTS_MAX attachments.
 */
struct wf_attachment_key {
	uint8_t reply;    /* 1: the message goes to the caller; 0: to the server */
	uint64_t message; /* index of the message in a stream, from 0; else 0 */
	uint32_t index;
};

#define WF_ATTACHMENT_KEY_BYTES 13
#define WF_ATTACHMENTS_MAX 4096

void wf_attachment_key_put(uint8_t key[WF_ATTACHMENT_KEY_BYTES],
			   const struct wf_attachment_key *k);
/* -EBADMSG: lengths; no such direction; an index beyond the most there may be. */
int wf_attachment_key_get(const uint8_t *key, size_t bytes, struct wf_attachment_key *k);

#endif
