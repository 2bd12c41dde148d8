/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checksums of the sender: the owner of a long body tells its reader the checksums of the body's
 * pieces.
 *
 * The reader asks for the sums of as many pieces as one record takes, a little ahead of its reads
 * (reader_sums.h); each time they are told in one record.  A helper makes them where there is one
 * and it has room, the worker itself otherwise.  Sums of a body that passes through a stage are
 * made as its pieces are filled.
 *
 * Threads: owner.
 */
#ifndef WF_SENDER_SUMS_H
#define WF_SENDER_SUMS_H

#include "loop/loop.h"
#include "util/copy_thread.h"
#include "wire/record.h"

/* Threads of a worker that sum up. */
struct wf_sender_sums_common {
	struct wf_loop *loop;
	struct wf_copy_thread *helper; /* NULL: not started yet, or there is none */
	bool helpless;            /* no helper is wanted, or it can't be started */
};

struct wf_sender_sums {
	struct wf_sender_sums_common *summers;
	void *owner;          /* context of tell and moved */
	/* Tell the reader.  -ENOMEM: not now; tell is called again. */
	int (*tell)(struct wf_sender_sums *s, const struct wf_record_sums *record);
	uint32_t asked, told; /* records asked for, and told */
	bool aside;           /* the helper has @record, and sums up as far as @until */
	uint64_t until;
	uint64_t ready;       /* bytes that are there, from the body's beginning */
	void (*moved)(struct wf_sender_sums *s); /* more sums are there; may be NULL */
	struct wf_timer timer;
	/* set once anything is ready: byte n of the body is at n % @buffer_bytes */
	const uint8_t *buffer;
	uint64_t buffer_bytes;
	/* set once sums are asked for */
	uint64_t bytes;
	struct wf_record_sums record; /* next record to tell */
};

/* Set up @summers.  @helper: a thread may be started when it is first needed. */
void wf_sender_sums_init(struct wf_sender_sums_common *summers, struct wf_loop *loop, bool helper);
void wf_sender_sums_fini(struct wf_sender_sums_common *summers);

/* Make the summing of a body of @owner; few readers ask for one.  NULL: no memory. */
struct wf_sender_sums *wf_sender_sums_open(struct wf_sender_sums_common *summers, void *owner,
					   int (*tell)(struct wf_sender_sums *s,
						       const struct wf_record_sums *record));

/* Stop and free @s.  Accepts NULL. */
void wf_sender_sums_close(struct wf_sender_sums *s);

/*
 * Let the first @ready bytes of the body be summed up: they are in @buffer, which is the same each
 * time, or were there.
 */
void wf_sender_sums_ready(struct wf_sender_sums *s, const void *buffer, uint64_t buffer_bytes,
			  uint64_t ready);

/*
 * Ask for the next sums of the body, of @bytes, the same each time, for reader @pull.  Requests
 * beyond the last piece, and those of another reader, are ignored.
 */
void wf_sender_sums_ask(struct wf_sender_sums *s, uint64_t bytes, uint64_t pull);

/* Returns up to which byte the body is needed no more.  NULL: none of it was summed up. */
uint64_t wf_sender_sums_over(const struct wf_sender_sums *s);

/* Stop summing: the body is touched no more once this returns.  Accepts NULL. */
void wf_sender_sums_stop(struct wf_sender_sums *s);

#endif
