/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access: the records by which a peer uses a window, a range of memory that its owner has opened
 * to those who know its name.
 *
 *   PUSH  peer to owner: read a body of mine into the window, or take a note, or both; without a body
 *         NOTED is the answer (record.h)
 *   ASK   peer to owner: offer me a range of the window
 *   LEND  owner to peer: the range that ASK asks for, or why it is not offered
 *   BLOCKS  peer to owner: more blocks of the last PUSH, whose list was too long for it
 *
 * Pure: no I/O, no allocation, no clock.  A get's pointers lie in its input.
 */
#ifndef WF_ACCESS_H
#define WF_ACCESS_H

#include "wire/body.h"

#define WF_ACCESS_TOKEN_BYTES 16
#define WF_ACCESS_NOTE_BYTES_MAX 4096

/* The name of a window.  Whoever knows the token may use the window as its rights say. */
struct wf_access_name {
	uint64_t id;
	uint8_t token[WF_ACCESS_TOKEN_BYTES];
};

enum wf_access_push_flag {
	WF_ACCESS_PUSH_LAST = 1,  /* the put is whole once the body is there: it counts */
	WF_ACCESS_PUSH_NOTED = 2, /* the owner is told of number and note once the body is there */
	WF_ACCESS_PUSH_GOT = 4,   /* the note belongs to a get, which has ended */
	WF_ACCESS_PUSH_LIST = 8   /* blocks of the body go to places of their own */
};

struct wf_access_push {
	struct wf_access_name window;
	/* where in the window the body goes; without a body: the sender's id, which NOTED repeats */
	uint64_t at;
	uint8_t flags;
	uint32_t number;
	uint16_t note_bytes;
	const uint8_t *note;
	struct wf_body body; /* way NONE, PULL or STAGED; with LIST always PULL */
	/* with LIST only: length of the list, the bytes of its blocks, and its beginning */
	uint32_t block_count;
	uint64_t block_bytes;
	const uint8_t *list;
	size_t list_bytes;
};

/* A block of a list: bytes of the body, and their place in the window. */
struct wf_access_block {
	uint64_t to, from, bytes;
};

#define WF_ACCESS_BLOCKS_MAX 65536
#define WF_ACCESS_BLOCK_BYTES_MAX 30 /* three numbers of up to ten bytes */

/*
 * Write a block after @last, the one before it (zeros: none); @last becomes @block.  A number is
 * put as a varint, and a place as its distance from the end of the block before, zigzag.
 */
void wf_access_block_put(struct wf_bytes_writer *w, struct wf_access_block *last,
			 const struct wf_access_block *block);
/* Read the block after *@block.  -EBADMSG: lengths, or a block of no bytes. */
int wf_access_block_get(struct wf_bytes_reader *r, struct wf_access_block *block);

/* Bytes that wf_access_push_put() writes: all but the list, which the caller puts behind them. */
size_t wf_access_push_bytes(const struct wf_access_push *p);
void wf_access_push_put(struct wf_bytes_writer *w, const struct wf_access_push *p);
/*
 * -EBADMSG: lengths; an unknown flag; a note without NOTED; a body that is not pulled; GOT
 * with LAST or with a body.
 */
int wf_access_push_get(const uint8_t *bytes, size_t count, struct wf_access_push *p);

enum wf_access_ask_flag {
	WF_ACCESS_ASK_STAY = 1, /* the range stays offered until either end is done with it */
	WF_ACCESS_ASK_SUM = 2   /* the body has a checksum */
};

struct wf_access_ask {
	uint64_t id; /* the asker's, which LEND repeats */
	struct wf_access_name window;
	uint64_t at, bytes;
	uint8_t flags;
};

#define WF_ACCESS_ASK_BYTES (8 + 8 + WF_ACCESS_TOKEN_BYTES + 8 + 8 + 1)

void wf_access_ask_put(struct wf_bytes_writer *w, const struct wf_access_ask *a);
/* -EBADMSG: lengths; no bytes; an unknown flag. */
int wf_access_ask_get(const uint8_t *bytes, size_t count, struct wf_access_ask *a);

struct wf_access_lend {
	uint64_t id;
	uint8_t status; /* enum weft_status: OK, or why nothing is offered */
	struct wf_body body; /* way PULL or STAGED; NONE: refused */
};

#define WF_ACCESS_LEND_BYTES_MAX (9 + WF_BODY_BYTES_MAX)

size_t wf_access_lend_bytes(const struct wf_access_lend *l);
void wf_access_lend_put(struct wf_bytes_writer *w, const struct wf_access_lend *l);
/* -EBADMSG: lengths; no such status; OK without an offer, or an offer without OK. */
int wf_access_lend_get(const uint8_t *bytes, size_t count, struct wf_access_lend *l);

/*
 * A window's descriptor, which goes to peers by any way the program likes: version, name, bytes and
 * rights.
 */
struct wf_access_descriptor {
	struct wf_access_name window;
	uint64_t bytes;
	uint8_t rights; /* enum weft_window_right */
};

#define WF_ACCESS_DESCRIPTOR_BYTES (4 + 8 + WF_ACCESS_TOKEN_BYTES + 8 + 1)
#define WF_ACCESS_RIGHTS 3  /* all rights of a window that is no landing */
#define WF_ACCESS_LANDING 4 /* right of a landing, which has no other */

void wf_access_descriptor_put(struct wf_bytes_writer *w, const struct wf_access_descriptor *d);
/* -EBADMSG: it is no descriptor.  -EPROTONOSUPPORT: it is of a later version. */
int wf_access_descriptor_get(const uint8_t *bytes, size_t count, struct wf_access_descriptor *d);

#endif
