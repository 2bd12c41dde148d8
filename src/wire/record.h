/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records: the messages that the two ends of a link exchange in frames.
 *
 * A record has a put that writes its head (after a head comes nothing, or the
 * body of an eager transfer) and a get that checks every length.  All
 * integers are little-endian; offsets are in weft_wire(7).
 *
 * Pure: no I/O, no allocation, no clock.  A get's pointers lie in its input.
 */
#ifndef WF_RECORD_H
#define WF_RECORD_H

#include <weft/tensor.h>
#include "wire/body.h"

enum wf_record_type {
	/* in data frames */
	WF_RECORD_TENSOR = 1,
	WF_RECORD_CALL = 2,
	WF_RECORD_REPLY = 3,
	WF_RECORD_PULLED = 4, /* reader to owner: the offer is used up */
	WF_RECORD_RESUME = 5, /* reader to owner: offer the body again, on this epoch's rail */
	WF_RECORD_OFFER = 6,  /* owner to reader: the offer, made again */
	WF_RECORD_ECHO = 7,
	WF_RECORD_ECHOED = 8,
	WF_RECORD_ABORT = 9, /* to every peer: a step is over, and all offers of the step */
	WF_RECORD_CHECK = 10, /* reader to owner: asks for checksums of the body's next pieces */
	WF_RECORD_SUMS = 11,  /* owner to reader: the checksums that CHECK asks for */
	WF_RECORD_RELEASED = 12, /* reader to owner: nobody looks at the body any more */
	WF_RECORD_REQUEST = 13,  /* caller to server: a message of a stream */
	WF_RECORD_RESPONSE = 14, /* server to caller: a message of a stream */
	WF_RECORD_GRANT_REQUESTS = 15, /* server to caller: messages the caller may ever send */
	WF_RECORD_GRANT_RESPONSES = 16, /* caller to server: messages the server may ever send */
	WF_RECORD_ATTACHMENT = 17, /* like TENSOR; belongs to a message of a call, and follows it */
	WF_RECORD_DRAIN = 18,    /* to every peer: no more calls are taken */
	WF_RECORD_SPREAD = 19,   /* reader to owner: offer the body over the lanes, too */
	WF_RECORD_LANE = 20,     /* owner to reader: the body, on one lane */
	WF_RECORD_FILLED = 21,   /* owner to reader: bytes of a STAGED body that can be read */
	WF_RECORD_TAKEN = 22,    /* reader to owner: bytes of a STAGED body that were read */
	WF_RECORD_PUSH = 23,     /* peer to owner of a window: read the body into it (access.h) */
	WF_RECORD_ASK = 24,      /* peer to owner of a window: lend a range of it */
	WF_RECORD_LEND = 25,     /* owner of a window to peer: the range, or why not */
	WF_RECORD_BLOCKS = 26,   /* peer to owner of a window: more blocks of a PUSH */
	WF_RECORD_NOTED = 27,    /* owner of a window to peer: how a PUSH without a body ended */
	WF_RECORD_SEAL = 28,     /* reader to owner: encrypt bytes for a read of them (parcel.h) */
	WF_RECORD_SEALED = 29,   /* owner to reader: where these can be read, and how they open */
	WF_RECORD_OPENED = 30,   /* reader to owner: they are read */
	/* in control frames, so that they need no credit */
	WF_RECORD_WITHDRAW = 32,  /* owner to reader: stop pulling */
	WF_RECORD_WITHDRAWN = 33, /* reader to owner: pulling has stopped, or was over */
	WF_RECORD_CANCEL = 34,    /* caller to server */
	WF_RECORD_RETURN = 35,    /* receiver to sender: give credits back */
	WF_RECORD_RETURNED = 36   /* sender to receiver: a running total of credits given back */
};

#define WF_TENSOR_RELAYED 64 /* a broadcast: receivers may join, and pass the body on */
#define WF_TENSOR_LOST 128 /* an ATTACHMENT, and dead: announced, and can't be sent */

struct wf_record_tensor {
	uint64_t step;
	uint8_t flags; /* WEFT_DEAD, WEFT_OPAQUE, WF_TENSOR_RELAYED, WF_TENSOR_LOST */
	struct weft_dtype dtype;
	uint8_t rank;
	uint16_t key_bytes;
	struct wf_body body;
	const uint8_t *key;
	const uint8_t *shape; /* rank little-endian i64 */
	const uint8_t *eager; /* body.bytes bytes when way is eager */
};

/* Bytes of the head of @t. */
size_t wf_record_tensor_bytes(const struct wf_record_tensor *t);
/* Write the head of @t; @shape is given as numbers here. */
void wf_record_tensor_put(struct wf_bytes_writer *w, const struct wf_record_tensor *t,
			  const int64_t *shape);
/*
 * -EBADMSG: lengths; a negative dimension; dtype with 0 bits or lanes; rank
 * above WEFT_RANK_MAX; dimensions, those of 0 left out, of 2^63 bytes or more;
 * body bytes that are not the shape's (dead: none).
 */
int wf_record_tensor_get(const uint8_t *bytes, size_t count, struct wf_record_tensor *t);
int64_t wf_record_tensor_dim(const struct wf_record_tensor *t, unsigned index);

#define WF_ABORT_TEXT_BYTES_MAX 1024

struct wf_record_abort {
	uint64_t step;
	uint8_t status; /* enum weft_status, never WEFT_OK */
	uint16_t text_bytes;
	const uint8_t *text; /* the reason; not a C string */
};

size_t wf_record_abort_bytes(const struct wf_record_abort *a);
void wf_record_abort_put(struct wf_bytes_writer *w, const struct wf_record_abort *a);
/* -EBADMSG: lengths; WEFT_OK or no such status; a text longer than the limit. */
int wf_record_abort_get(const uint8_t *bytes, size_t count, struct wf_record_abort *a);

/*
 * A small record: an id, a second number and a status.
 *   PULLED    offer, reads (0: a view looks at it), status (enum weft_status: OK, or why refused)
 *   RESUME    offer, reader's pull id, status (WF_RESUME_HANDLE, WF_RESUME_COPIED)
 *                                            OFFER     (as struct wf_record_offer)
 *   CHECK     offer, reader's pull id        SUMS      (as struct wf_record_sums)
 *   SPREAD    offer, reader's pull id        LANE      (as struct wf_record_lane)
 *   RELEASED  offer, its place
 *   NOTED     sender's id of the PUSH, status (OK, or why it was not taken)
 *   FILLED    reader's pull id, bytes        TAKEN     offer, bytes
 *   OPENED    reader's pull id, parcel (0: all of the pull's)
 *   ECHO ECHOED  id    WITHDRAW WITHDRAWN  offer    CANCEL  call
 *   GRANT_REQUESTS GRANT_RESPONSES  call, messages
 *   DRAIN     (none)
 *   RETURN    count    RETURNED  total
 */
struct wf_record_small {
	uint64_t id;
	uint64_t other;
	uint8_t status;
};

#define WF_RECORD_SMALL_BYTES 17
#define WF_RESUME_HANDLE 1 /* status: a HANDLE will do */
#define WF_RESUME_COPIED 2 /* status: all was copied by the handle; is the body still offered? */

void wf_record_small_put(struct wf_bytes_writer *w, const struct wf_record_small *s);
int wf_record_small_get(const uint8_t *bytes, size_t count, struct wf_record_small *s);

/* An offer made again, for the reader's @pull; way is PULL, STAGED, HANDLE, or NONE: it is gone. */
struct wf_record_offer {
	uint64_t pull;
	struct wf_body body;
};

#define WF_RECORD_OFFER_BYTES_MAX (8 + WF_BODY_OFFER_BYTES_MAX)

void wf_record_offer_put(struct wf_bytes_writer *w, const struct wf_record_offer *o);
int wf_record_offer_get(const uint8_t *bytes, size_t count, struct wf_record_offer *o);

/*
 * Checksums of the next pieces of the body that @pull reads: as many as fit, or all that are
 * left.  1, 2 and 4 at once cost the same over tcp.
 */
#define WF_RECORD_SUMS_MAX 4

struct wf_record_sums {
	uint64_t pull;
	uint32_t first; /* number of the first piece */
	uint32_t count;
	uint64_t sums[WF_RECORD_SUMS_MAX];
};

#define WF_RECORD_SUMS_BYTES_MAX (12 + WF_RECORD_SUMS_MAX * 8)

void wf_record_sums_put(struct wf_bytes_writer *w, const struct wf_record_sums *s);
/* -EBADMSG: lengths; pieces beyond WF_BODY_PIECES_MAX. */
int wf_record_sums_get(const uint8_t *bytes, size_t count, struct wf_record_sums *s);

/* The body that @pull reads can be read on @lane, too. */
struct wf_record_lane {
	uint64_t pull;
	uint32_t lane;
	uint64_t address;
	uint64_t key;
};

#define WF_RECORD_LANE_BYTES 28

void wf_record_lane_put(struct wf_bytes_writer *w, const struct wf_record_lane *l);
/* -EBADMSG: lengths; no lane has the number 0. */
int wf_record_lane_get(const uint8_t *bytes, size_t count, struct wf_record_lane *l);

/*
 * The key of an ATTACHMENT, which says which one it is; the step is the caller's id of the
 * call.  A message has at most WF_RECORD_ATTACHMENTS_MAX attachments.
 */
struct wf_record_attachment_key {
	uint8_t reply;    /* 1: the message goes to the caller; 0: to the server */
	uint64_t message; /* index of the message in a stream, from 0; else 0 */
	uint32_t index;
};

#define WF_RECORD_ATTACHMENT_KEY_BYTES 13
#define WF_RECORD_ATTACHMENTS_MAX 4096

void wf_record_attachment_key_put(uint8_t key[WF_RECORD_ATTACHMENT_KEY_BYTES],
				  const struct wf_record_attachment_key *k);
/* -EBADMSG: lengths; no such direction; an index beyond the most there may be. */
int wf_record_attachment_key_get(const uint8_t *key, size_t bytes,
				 struct wf_record_attachment_key *k);

#endif
