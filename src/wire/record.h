/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The records: what the two ends of a link say to each other in frames.
 *
 * Each has a put that writes its head (what follows a head, if anything, is
 * the body of an eager transfer) and a get that checks every length.  All
 * integers are little-endian; offsets are in weft_wire(7).
 *
 * Pure: no I/O, no allocation, no clock.  A get's pointers lie in its input.
 */
#ifndef WF_RECORD_H
#define WF_RECORD_H

#include <weft/tensor.h>
#include "util/bytes.h"

enum wf_record_type {
	/* in data frames */
	WF_RECORD_TENSOR = 1,
	WF_RECORD_CALL = 2,
	WF_RECORD_REPLY = 3,
	WF_RECORD_PULLED = 4, /* reader to owner: the offer is used up */
	WF_RECORD_RESUME = 5, /* reader to owner: offer it again, on this epoch's rail */
	WF_RECORD_OFFER = 6,  /* owner to reader: here it is again */
	WF_RECORD_ECHO = 7,
	WF_RECORD_ECHOED = 8,
	WF_RECORD_ABORT = 9, /* to every peer: a step is over, and with it each offer of it */
	WF_RECORD_CHECK = 10, /* reader to owner: what do the next pieces of the body sum up to? */
	WF_RECORD_SUMS = 11,  /* owner to reader: to this */
	WF_RECORD_RELEASED = 12, /* reader to owner: nobody looks at the body any more */
	WF_RECORD_REQUEST = 13,  /* caller to server: a message of a stream */
	WF_RECORD_RESPONSE = 14, /* server to caller: another */
	WF_RECORD_GRANT_REQUESTS = 15, /* server to caller: how many messages it may ever send */
	WF_RECORD_GRANT_RESPONSES = 16, /* caller to server: the same */
	WF_RECORD_ATTACHMENT = 17, /* as TENSOR: one that comes beside a message of a call, after it */
	WF_RECORD_DRAIN = 18,    /* to every peer: no more calls are taken */
	WF_RECORD_SPREAD = 19,   /* reader to owner: let the body be read over the lanes, too */
	WF_RECORD_LANE = 20,     /* owner to reader: here it is on one of them */
	WF_RECORD_FILLED = 21,   /* owner to reader: so much of a STAGED body can be read */
	WF_RECORD_TAKEN = 22,    /* reader to owner: so much of it has been */
	/* in control frames, so that they need no credit */
	WF_RECORD_WITHDRAW = 32,  /* owner to reader: stop pulling */
	WF_RECORD_WITHDRAWN = 33, /* reader to owner: stopped, or it was over */
	WF_RECORD_CANCEL = 34,    /* caller to server */
	WF_RECORD_RETURN = 35,    /* receiver to sender: give credits back */
	WF_RECORD_RETURNED = 36   /* sender to receiver: a running total of those given back */
};

/*
 * How a body travels.  It stands in every record that has one; the last two are of tensors
 * only.  A VIEW may also be pulled.  A STAGED body is where no rail reaches: it passes, part by
 * part, through a room whose address and key come when its reader first asks by RESUME.  Instead
 * a reader on the owner's host may be given a HANDLE of it, in OFFER only.
 */
enum wf_body_way {
	WF_BODY_NONE = 0,
	WF_BODY_EAGER = 1,
	WF_BODY_PULL = 2,
	WF_BODY_VIEW = 3,
	WF_BODY_STAGED = 4,
	WF_BODY_HANDLE = 5
};

struct wf_body {
	uint8_t way;
	uint64_t bytes;
	/* pull, view and staged */
	uint64_t offer;   /* the owner's id of it */
	uint32_t epoch;   /* the rail for which address and key hold */
	uint64_t address;
	uint64_t key;
	/* any way */
	uint8_t sum_kind; /* enum wf_body_sum */
	uint64_t sum;     /* of the body, if it is of one piece and not staged; others are asked for by CHECK */
	/* view only: where it lies, for processes of the owner's host */
	uint64_t file, offset; /* the number of a file of memory, and where in it */
	uint32_t place;   /* of the offer, among the owner's leases */
	/* staged only: byte n of it passes by n % room_bytes of address; 0: not there yet */
	uint64_t room_bytes;
	/* handle only: of the allocation, CUDA's for other processes; the body begins @address after its beginning */
	const uint8_t *handle;
};

/* What protects a body.  The numbers are bits of a hello's checksums, too. */
enum wf_body_sum { WF_BODY_SUM_NONE = 0, WF_BODY_SUM_XXH3 = 1 };

#define WF_BODY_HANDLE_BYTES 64 /* of its own, behind the key */

/*
 * put of a view: u8 way, u64 bytes, u8 sum, u64 offer, u32 epoch, u64 address, u64 key,
 * u64 file, u64 offset, u32 place, u64 sum
 */
#define WF_BODY_BYTES_MAX (38 + WF_BODY_HANDLE_BYTES) /* of a handle; a view has 66 */
#define WF_BODY_OFFER_BYTES_MAX (38 + WF_BODY_HANDLE_BYTES) /* without what only a view has */

/* Is it offered, and to be answered? */
static inline bool wf_body_is_offer(const struct wf_body *body)
{
	return body->way >= WF_BODY_PULL;
}

/* Is its way one of tensors only? */
static inline bool wf_body_is_tensors(const struct wf_body *body)
{
	return body->way >= WF_BODY_VIEW;
}

/* Bytes of the put of @body. */
size_t wf_body_bytes(const struct wf_body *body);
void wf_body_put(struct wf_writer *w, const struct wf_body *body);
/* -EBADMSG: lengths; no such way or sum; a NONE of some bytes; an offer of none, or whose end wraps. */
int wf_body_get(struct wf_reader *r, struct wf_body *body);

/*
 * The pieces that are summed up one by one: of 1 MiB, doubled until there are at most
 * WF_BODY_PIECES_MAX of them; the last may be shorter.
 */
#define WF_BODY_PIECES_MAX 1024
uint64_t wf_body_piece_bytes(uint64_t bytes);
uint32_t wf_body_piece_count(uint64_t bytes);

/*
 * The end of a record: the bytes of an eager @body (else *@eager is NULL) and
 * nothing more.  -EBADMSG.
 */
int wf_body_end(struct wf_reader *r, const struct wf_body *body, const uint8_t **eager);

/* How a message may be compressed, as bits of a hello. */
#define WF_COMPRESSION_ZSTD 1

#define WF_TENSOR_LOST 128 /* an ATTACHMENT, and dead: it was announced, and can't be sent */

struct wf_tensor_record {
	uint64_t step;
	uint8_t flags; /* WEFT_DEAD, WEFT_OPAQUE, WF_TENSOR_LOST */
	struct weft_dtype dtype;
	uint8_t rank;
	uint16_t key_bytes;
	struct wf_body body;
	const uint8_t *key;
	const uint8_t *shape; /* rank little-endian i64 */
	const uint8_t *eager; /* body.bytes of them when way is eager */
};

/* Bytes of the head of @t. */
size_t wf_tensor_record_bytes(const struct wf_tensor_record *t);
/* @shape is given as numbers here. */
void wf_tensor_record_put(struct wf_writer *w, const struct wf_tensor_record *t,
			  const int64_t *shape);
/*
 * -EBADMSG: lengths; a negative dimension; dtype with 0 bits or lanes; rank
 * above WEFT_RANK_MAX; dimensions, those of 0 left out, of 2^63 bytes or more;
 * body bytes that are not the shape's (dead: none).
 */
int wf_tensor_record_get(const uint8_t *bytes, size_t count, struct wf_tensor_record *t);
int64_t wf_tensor_record_dim(const struct wf_tensor_record *t, unsigned index);

/*
 * Which attachment a record is, as its key; the step is the caller's id of the call.
 * What may stand beside one message at most is WF_ATTACHMENTS_MAX.
 */
struct wf_attachment_key {
	uint8_t reply;    /* 1: it goes to the caller; 0: to the server */
	uint64_t message; /* of a stream, the first is 0; of a call without: 0 */
	uint32_t index;
};

#define WF_ATTACHMENT_KEY_BYTES 13
#define WF_ATTACHMENTS_MAX 4096

void wf_attachment_key_put(uint8_t key[WF_ATTACHMENT_KEY_BYTES],
			   const struct wf_attachment_key *k);
/* -EBADMSG: lengths; no such direction; an index beyond the most there may be. */
int wf_attachment_key_get(const uint8_t *key, size_t bytes, struct wf_attachment_key *k);

#define WF_CALL_STREAM 1 /* its messages come in records of their own; the call itself has none */
#define WF_CALL_REQUEST 2 /* it may be made again, with the same request id */
#define WF_CALL_AGAIN 4  /* one incarnation of the server may have handled an earlier attempt */

#define WF_CALL_COMPRESSED 8 /* its body is: one frame of zstd */

#define WF_CALL_INCARNATION_BYTES 16

struct wf_call_record {
	uint64_t call;    /* the caller's id */
	uint64_t left_ns; /* until its deadline; UINT64_MAX: none */
	uint16_t flags;   /* WF_CALL_* */
	uint16_t service_bytes, method_bytes;
	uint16_t attachments; /* that come after it */
	uint32_t metadata_bytes;
	uint64_t request; /* with REQUEST: the caller's id of all attempts, not 0; else 0 */
	const uint8_t *incarnation; /* with AGAIN: the server's; else NULL */
	struct wf_body body;
	const uint8_t *service, *method;
	const uint8_t *metadata; /* see metadata.h, and not looked at yet */
	const uint8_t *eager;
};

size_t wf_call_record_bytes(const struct wf_call_record *c);
void wf_call_record_put(struct wf_writer *w, const struct wf_call_record *c);
/* -EBADMSG: lengths; other flags; a stream with a body or a request; AGAIN without REQUEST; request 0. */
int wf_call_record_get(const uint8_t *bytes, size_t count, struct wf_call_record *c);

#define WF_REPLY_COMPRESSED 1 /* its body is: one frame of zstd */

struct wf_reply_record {
	uint64_t call;
	uint8_t status;   /* enum weft_status */
	uint8_t executed; /* enum weft_executed */
	uint16_t flags;   /* WF_REPLY_COMPRESSED */
	uint16_t text_bytes;
	uint16_t attachments; /* that come after it; of a failure none */
	uint32_t initial_bytes, trailing_bytes, details_bytes;
	struct wf_body body;
	const uint8_t *text;
	const uint8_t *initial, *trailing; /* metadata */
	const uint8_t *details; /* of a failure, in bytes of the handler's */
	const uint8_t *eager;
};

size_t wf_reply_record_bytes(const struct wf_reply_record *r);
void wf_reply_record_put(struct wf_writer *w, const struct wf_reply_record *r);
int wf_reply_record_get(const uint8_t *bytes, size_t count, struct wf_reply_record *r);

/* Messages that may be under way in a stream, in either direction, before the first grant. */
#define WF_STREAM_WINDOW 64

#define WF_MESSAGE_NONE 1    /* there is no message: this tells the rest only */
#define WF_MESSAGE_LAST 2    /* a REQUEST: none comes after it */
#define WF_MESSAGE_INITIAL 4 /* a RESPONSE, the first: with the initial metadata */
#define WF_MESSAGE_COMPRESSED 8 /* its body is: one frame of zstd */

/* A message of a stream: REQUEST or RESPONSE. */
struct wf_message_record {
	uint64_t call;  /* the caller's id */
	uint16_t flags; /* WF_MESSAGE_* */
	uint16_t attachments; /* that come after it */
	uint32_t metadata_bytes;
	struct wf_body body;
	const uint8_t *metadata, *eager;
};

size_t wf_message_record_bytes(const struct wf_message_record *m);
void wf_message_record_put(struct wf_writer *w, const struct wf_message_record *m);
/* -EBADMSG: lengths; other flags; a body or attachments where there is no message; metadata without INITIAL. */
int wf_message_record_get(const uint8_t *bytes, size_t count, struct wf_message_record *m);

#define WF_ABORT_TEXT_BYTES_MAX 1024

struct wf_abort_record {
	uint64_t step;
	uint8_t status; /* enum weft_status, never WEFT_OK */
	uint16_t text_bytes;
	const uint8_t *text; /* why; not a C string */
};

size_t wf_abort_record_bytes(const struct wf_abort_record *a);
void wf_abort_record_put(struct wf_writer *w, const struct wf_abort_record *a);
/* -EBADMSG: lengths; WEFT_OK or no such status; a text longer than the limit. */
int wf_abort_record_get(const uint8_t *bytes, size_t count, struct wf_abort_record *a);

/*
 * The small ones: an id, a second number and a status.
 *   PULLED    offer, reads (0: it is looked at), status (enum weft_status: OK, or why it was not wanted)
 *   RESUME    offer, reader's pull id, status (WF_RESUME_HANDLE, WF_RESUME_COPIED)
 *                                            OFFER     (as struct wf_offer_record)
 *   CHECK     offer, reader's pull id        SUMS      (as struct wf_sums_record)
 *   SPREAD    offer, reader's pull id        LANE      (as struct wf_lane_record)
 *   RELEASED  offer, its place
 *   FILLED    reader's pull id, bytes        TAKEN     offer, bytes
 *   ECHO ECHOED  id    WITHDRAW WITHDRAWN  offer    CANCEL  call
 *   GRANT_REQUESTS GRANT_RESPONSES  call, messages
 *   DRAIN     (none)
 *   RETURN    count    RETURNED  total
 */
struct wf_small_record {
	uint64_t id;
	uint64_t other;
	uint8_t status;
};

#define WF_SMALL_RECORD_BYTES 17
#define WF_RESUME_HANDLE 1 /* as status: a HANDLE will do */
#define WF_RESUME_COPIED 2 /* all of it was copied by its handle: is it still offered? */

void wf_small_record_put(struct wf_writer *w, const struct wf_small_record *s);
int wf_small_record_get(const uint8_t *bytes, size_t count, struct wf_small_record *s);

/* An offer made again: for the reader's @pull; way is PULL, STAGED or HANDLE, or NONE if it is gone. */
struct wf_offer_record {
	uint64_t pull;
	struct wf_body body;
};

#define WF_OFFER_RECORD_BYTES_MAX (8 + WF_BODY_OFFER_BYTES_MAX)

void wf_offer_record_put(struct wf_writer *w, const struct wf_offer_record *o);
int wf_offer_record_get(const uint8_t *bytes, size_t count, struct wf_offer_record *o);

/*
 * What the next pieces of the body sum up to that @pull reads: as many as fit, or all that are
 * left.  1, 2 and 4 at once cost the same over tcp.
 */
#define WF_SUMS_RECORD_MAX 4

struct wf_sums_record {
	uint64_t pull;
	uint32_t first; /* piece */
	uint32_t count;
	uint64_t sums[WF_SUMS_RECORD_MAX];
};

#define WF_SUMS_RECORD_BYTES_MAX (12 + WF_SUMS_RECORD_MAX * 8)

void wf_sums_record_put(struct wf_writer *w, const struct wf_sums_record *s);
/* -EBADMSG: lengths; pieces beyond WF_BODY_PIECES_MAX. */
int wf_sums_record_get(const uint8_t *bytes, size_t count, struct wf_sums_record *s);

/* The body that @pull reads is there on @lane, too. */
struct wf_lane_record {
	uint64_t pull;
	uint32_t lane;
	uint64_t address;
	uint64_t key;
};

#define WF_LANE_RECORD_BYTES 28

void wf_lane_record_put(struct wf_writer *w, const struct wf_lane_record *l);
/* -EBADMSG: lengths; no lane has the number 0. */
int wf_lane_record_get(const uint8_t *bytes, size_t count, struct wf_lane_record *l);

#endif
