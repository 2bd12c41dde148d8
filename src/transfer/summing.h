/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Summing: what the owner of a long body tells its reader of what its pieces sum up to.
 *
 * The reader asks for the sums of as many pieces as one record takes, a little
 * ahead of its reads (sums.h); each time they are told in one record.  A helper
 * makes them where there is one and it has room, the worker itself otherwise.
 *
 * Threads: owner.
 */
#ifndef WF_SUMMING_H
#define WF_SUMMING_H

#include "transfer/transfer.h"

struct wf_summing {
	struct wf_transfer *transfer;
	uint32_t asked, told; /* records */
	bool aside;           /* the helper has @record, and sums up */
	struct wf_timer timer;
	/* once it is asked for: */
	struct wf_link *link;
	const uint8_t *body;
	uint64_t bytes;
	struct wf_sums_record record; /* the next that is to be told */
};

/* Cheap: every parcel has one, and few are asked. */
void wf_summing_init(struct wf_summing *s, struct wf_transfer *t);

/*
 * Reader @pull asks over @link for the next sums of @body, of @bytes, which is the same each
 * time.  More than there are it is not told, nor is another reader.
 */
void wf_summing_ask(struct wf_summing *s, struct wf_link *link, const void *body,
		    uint64_t bytes, uint64_t pull);

/* Sum up no more: the body is touched no more once this returns. */
void wf_summing_stop(struct wf_summing *s);

#endif
