/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sums: is a body on its way in what its owner has?
 *
 * A body is summed up in pieces (wire/record.h), each as soon as its bytes
 * are there, in whatever order they come; the owner's sums may come before or
 * after them.  A body without a checksum counts as right from the beginning.
 *
 * Threads: owner.
 */
#ifndef WF_SUMS_H
#define WF_SUMS_H

#include "link/link.h"

struct wf_sums_piece {
	uint64_t left; /* bytes that have not come yet */
	uint64_t ours, theirs;
};

struct wf_sums {
	uint64_t bytes, piece_bytes;
	uint32_t count; /* of pieces to check */
	uint32_t asked; /* that many, the first ones, the owner has been asked for, */
	uint32_t told;  /* and has told of */
	uint32_t right;
	uint32_t wrong; /* the first piece that is; count: none */
	struct wf_sums_piece *pieces;
};

/* -ENOMEM. */
int wf_sums_open(struct wf_sums *s, const struct wf_body *body);

/* Accepts a zeroed one. */
void wf_sums_close(struct wf_sums *s);

/*
 * Before the bytes up to @end are read: must the owner be asked for the sums of the next
 * WF_SUMS_RECORD_MAX pieces?  It is asked a little ahead of the reads and not for all at
 * once, so that it sums up little that is never read.
 */
bool wf_sums_ask(const struct wf_sums *s, uint64_t end);

/* It has been asked once more. */
void wf_sums_asked(struct wf_sums *s);

/*
 * @count bytes from @offset on have come.  Each comes once.  Byte n of the body is at n % @room_bytes
 * of @room: it has room for all of it, or for as many whole pieces as lie between the first that
 * is not whole and the last that has come.
 */
void wf_sums_arrived(struct wf_sums *s, const uint8_t *room, uint64_t room_bytes, uint64_t offset,
		     uint64_t count);

/* The owner's word.  -EBADMSG: not what must follow. */
int wf_sums_told(struct wf_sums *s, const struct wf_sums_record *told);

/* Has all come, and is it right? */
static inline bool wf_sums_right(const struct wf_sums *s)
{
	return s->right == s->count;
}

/* Is a piece wrong?  Then a sentence about the first, for a body that comes from @link by @way over @caps. */
bool wf_sums_wrong(const struct wf_sums *s, const struct wf_link *link,
		   const struct wf_caps *caps, enum wf_body_way way, struct wf_error *e);

/* Of a body that is here, all at once, from an eager record: 0, or -EIO with a sentence. */
int wf_sums_check(const struct wf_body *body, const void *bytes, const struct wf_link *link,
		  const struct wf_caps *caps, struct wf_error *e);

#endif
