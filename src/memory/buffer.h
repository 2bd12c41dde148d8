/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A buffer for a message: a long message lies in the pool, so that it needs neither new pages
 * nor a registration each time; a short message, and one for which the pool has no room, is
 * allocated.
 *
 * Threads: any, one at a time.
 */
#ifndef WF_BUFFER_H
#define WF_BUFFER_H

#include "memory/pool.h"

struct wf_buffer {
	uint8_t *at;
	struct wf_pool *pool; /* pool of the buffer; NULL: the buffer is allocated */
};

/* Take room for @bytes.  -ENOMEM. */
int wf_buffer_take(struct wf_buffer *b, struct wf_pool *pool, size_t bytes);

/* Give the room back; harmless when @b has none. */
void wf_buffer_give(struct wf_buffer *b);

#endif
