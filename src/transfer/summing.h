/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Summing: what the owner of a long body tells its reader of what its pieces sum up to.
 *
 * The reader asks for the sums of as many pieces as one record takes, a little
 * ahead of its reads (sums.h); each time they are told in one record.  A helper
 * makes them where there is one and it has room, the worker itself otherwise.
 * Of a body that passes through a stage they are made as its pieces are filled.
 *
 * Threads: owner.
 */
#ifndef WF_SUMMING_H
#define WF_SUMMING_H

#include "loop/loop.h"
#include "util/helper.h"
#include "wire/record.h"

/* Of a worker: who sums up. */
struct wf_summers {
	struct wf_loop *loop;
	struct wf_helper *helper; /* NULL: not started yet, or there is none */
	bool helpless;            /* none is wanted, or it can't be started */
};

struct wf_summing {
	struct wf_summers *summers;
	void *owner;          /* for tell and moved */
	/* Tell the reader.  -ENOMEM: not now, and it is tried again. */
	int (*tell)(struct wf_summing *s, const struct wf_sums_record *record);
	uint32_t asked, told; /* records */
	bool aside;           /* the helper has @record, and sums up, as far as: */
	uint64_t until;
	uint64_t ready;       /* of the body, from its beginning: the rest is not there yet */
	void (*moved)(struct wf_summing *s); /* it has come further; NULL: nobody wants to know */
	struct wf_timer timer;
	/* once anything is ready: byte n of the body is at n % @room_bytes */
	const uint8_t *room;
	uint64_t room_bytes;
	/* once it is asked for: */
	uint64_t bytes;
	struct wf_sums_record record; /* the next that is to be told */
};

/* @helper: a thread may be started for it, when it is first needed. */
void wf_summing_init(struct wf_summers *summers, struct wf_loop *loop, bool helper);
void wf_summing_fini(struct wf_summers *summers);

/* A new one, for a body of @owner that its reader asks about, as few do.  NULL: no memory. */
struct wf_summing *wf_summing_open(struct wf_summers *summers, void *owner,
				   int (*tell)(struct wf_summing *s,
					       const struct wf_sums_record *record));

/* Stops it.  Accepts NULL. */
void wf_summing_close(struct wf_summing *s);

/* So many bytes of the body are there, in @room, which is the same each time, or are over. */
void wf_summing_ready(struct wf_summing *s, const void *room, uint64_t room_bytes, uint64_t ready);

/*
 * Reader @pull asks for the next sums of the body, of @bytes, which is the same each time.
 * More than there are it is not told, nor is another reader.
 */
void wf_summing_ask(struct wf_summing *s, uint64_t bytes, uint64_t pull);

/* Up to there bytes of the body are needed no more.  NULL: none of them was summed up. */
uint64_t wf_summing_over(const struct wf_summing *s);

/* Sum up no more: the body is touched no more once this returns.  Accepts NULL. */
void wf_summing_stop(struct wf_summing *s);

#endif
