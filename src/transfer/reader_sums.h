/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checksums of the reader: checks that a body on its way in is the same as its owner's.
 *
 * A body is summed up in pieces (wire/record.h), each as soon as its bytes are there, in
 * whatever order they come; the owner's sums may come before or after them.  A body without a
 * checksum counts as right from the beginning.
 *
 * Threads: owner.
 */
#ifndef WF_READER_SUMS_H
#define WF_READER_SUMS_H

#include "link/link.h"

struct wf_reader_sums_piece {
	uint64_t left; /* bytes that have not come yet */
	uint64_t ours, theirs;
};

struct wf_reader_sums {
	uint64_t bytes, piece_bytes;
	uint32_t count; /* pieces to check */
	uint32_t asked; /* pieces whose sums the owner was asked for, the first ones */
	uint32_t told;  /* pieces whose sums the owner has told */
	uint32_t right;
	uint32_t sure;  /* the first pieces, which are all right */
	uint32_t wrong; /* first wrong piece; count: none */
	struct wf_reader_sums_piece *pieces;
};

/* Set up sums for @body.  -ENOMEM. */
int wf_reader_sums_open(struct wf_reader_sums *s, const struct wf_body *body);

/* Free the sums.  Accepts a zeroed @s. */
void wf_reader_sums_close(struct wf_reader_sums *s);

/*
 * Returns whether the owner must be asked for the sums of the next WF_RECORD_SUMS_MAX pieces,
 * before the bytes up to @end are read.  The owner is asked a little ahead of the reads and not
 * for all at once, so that it sums up little that is never read.
 */
bool wf_reader_sums_ask(const struct wf_reader_sums *s, uint64_t end);

/* Count one more request to the owner. */
void wf_reader_sums_asked(struct wf_reader_sums *s);

/*
 * Sum up pieces that the @count bytes from @offset on complete.  Each byte comes once.  Byte n
 * of the body is at n % @buffer_bytes of @buffer: it has room for all of the body, or for as many
 * whole pieces as lie between the first that is not whole and the last that has come.
 */
void wf_reader_sums_arrived(struct wf_reader_sums *s, const uint8_t *buffer, uint64_t buffer_bytes,
			    uint64_t offset, uint64_t count);

/* Compare the owner's sums.  -EBADMSG: @told is not the record that must follow. */
int wf_reader_sums_told(struct wf_reader_sums *s, const struct wf_record_sums *told);

/* Returns the length of the beginning of the body that has come and is right; there are sums. */
uint64_t wf_reader_sums_sure(struct wf_reader_sums *s);

/* Returns whether all bytes have come and are right. */
static inline bool wf_reader_sums_right(const struct wf_reader_sums *s)
{
	return s->right == s->count;
}

/*
 * Returns whether a piece is wrong, and says in @e which is the first, of a body that comes from
 * @link by @way over @caps.
 */
bool wf_reader_sums_wrong(const struct wf_reader_sums *s, const struct wf_link *link,
			  const struct wf_rail_caps *caps, enum wf_body_way way,
			  struct wf_error *e);

/* Check a body that is here, all at once, from an eager record.  -EIO with a sentence. */
int wf_reader_sums_check(const struct wf_body *body, const void *bytes, const struct wf_link *link,
			 const struct wf_rail_caps *caps, struct wf_error *e);

#endif
