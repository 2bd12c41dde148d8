/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Body: the bytes that a record speaks of, in the record or apart from it.
 *
 * Pure: no I/O, no allocation, no clock.  A get's pointers lie in its input.
 */
#ifndef WF_BODY_H
#define WF_BODY_H

#include <weft/node.h>
#include "util/bytes.h"

/*
 * The way of a body, which stands in every record that has a body; calls, replies and messages of
 * streams never have VIEW or a later one.  A VIEW may also be pulled.  A STAGED body is where no
 * rail reaches: it passes, part by part, through a bounce buffer, whose address and key come when
 * the reader first asks by RESUME.  Instead a reader on the owner's host may be given a HANDLE of
 * the body, in OFFER only.
 */
enum wf_body_way {
	WF_BODY_NONE = 0,
	WF_BODY_EAGER = 1,
	WF_BODY_PULL = 2,
	WF_BODY_VIEW = 3,
	WF_BODY_STAGED = 4,
	WF_BODY_HANDLE = 5,
	WF_BODY_PARCEL = 6 /* in a record alone: a PULL with a parcel */
};

#define WF_PARCEL_BYTES_MAX MIB
#define WF_PARCEL_SECRET_BYTES 32
#define WF_PARCEL_TAG_BYTES 16

/* The parcel (parcel.h) that comes with an offer: the first bytes of the body, encrypted. */
struct wf_body_parcel {
	uint64_t id; /* owner's; 0: there is none */
	uint32_t bytes;
	uint8_t secret[WF_PARCEL_SECRET_BYTES], tag[WF_PARCEL_TAG_BYTES];
};

struct wf_body {
	uint8_t way;
	uint64_t bytes;
	/* pull, view and staged */
	uint64_t offer;   /* the owner's id of the offer */
	uint32_t epoch;   /* the rail for which address and key hold */
	uint64_t address;
	uint64_t key;
	/* any way */
	uint8_t sum_kind; /* enum wf_body_sum */
	/* checksum of a body of one piece that is not staged; other sums are asked for by CHECK */
	uint64_t sum;
	/* view only: the place of the body, for processes of the owner's host */
	uint64_t file, offset; /* the number of a file of memory, and the place in it */
	uint32_t place;   /* index of the offer among the owner's leases */
	/* staged only: byte n of the body passes at address + n % bounce_bytes; 0: no buffer yet */
	uint64_t bounce_bytes;
	/*
	 * handle only: CUDA's handle of the allocation, whose number is @key; the body begins
	 * @address bytes into it
	 */
	const uint8_t *handle;
	/* any way: 0 to WEFT_PRIORITY_MAX: those that are read and answered first have the highest */
	uint8_t priority;
	struct wf_body_parcel parcel; /* pull only: address and key are the parcel's */
};

/* Kinds of checksum over a body.  The numbers are bits of a hello's checksums, too. */
enum wf_body_sum { WF_BODY_SUM_NONE = 0, WF_BODY_SUM_XXH3 = 1 };

#define WF_BODY_HANDLE_BYTES 64 /* bytes of a handle, behind the key */

/*
 * A body with a parcel, as it is put: u8 way, u64 bytes, u8 sum and priority, u64 offer, u32 epoch,
 * u64 address, u64 key, u64 id, u32 bytes, secret, tag, u64 sum
 */
#define WF_BODY_BYTES_MAX (58 + WF_PARCEL_SECRET_BYTES + WF_PARCEL_TAG_BYTES)
#define WF_BODY_OFFER_BYTES_MAX (38 + WF_BODY_HANDLE_BYTES) /* an OFFER has no parcel */

/* Is @body offered, and to be answered? */
static inline bool wf_body_is_offer(const struct wf_body *body)
{
	return body->way >= WF_BODY_PULL;
}

/* Is the way of @body one that calls, replies and messages of streams never have? */
static inline bool wf_body_is_tensors(const struct wf_body *body)
{
	return body->way >= WF_BODY_VIEW;
}

/* Bytes that wf_body_put writes. */
size_t wf_body_bytes(const struct wf_body *body);
void wf_body_put(struct wf_bytes_writer *w, const struct wf_body *body);
/* -EBADMSG: lengths; no such way, sum or priority; a NONE with bytes; an offer of none, or that wraps. */
int wf_body_get(struct wf_bytes_reader *r, struct wf_body *body);

/*
 * Pieces of a body are summed up one by one: 1 MiB each, doubled until there are at most
 * WF_BODY_PIECES_MAX of them; the last may be shorter.
 */
#define WF_BODY_PIECES_MAX 1024
uint64_t wf_body_piece_bytes(uint64_t bytes);
uint32_t wf_body_piece_count(uint64_t bytes);

/*
 * Read the end of a record: the bytes of an eager @body (else *@eager is NULL) and
 * nothing more.  -EBADMSG.
 */
int wf_body_end(struct wf_bytes_reader *r, const struct wf_body *body, const uint8_t **eager);

/* Compressions of messages, as bits of a hello. */
#define WF_COMPRESSION_ZSTD 1

#endif
