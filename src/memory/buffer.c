/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/buffer.h"

#include <errno.h>
#include <stdlib.h>

#define POOL_BYTES (16 * KIB) /* the least from the pool; malloc has less at hand */

/*
 * Lead before a message in the pool, against 4K aliasing.  The pool's memory begins with a
 * page, as a long body often does.  A body copied to less than 32 bytes further into a page
 * than it came from is copied at a fifteenth of the speed (38 and 2.3 GB/s; the processor takes
 * each load for one of what was just stored), and a message's first field stands there.
 */
#define LEAD_BYTES 256

int wf_buffer_take(struct wf_buffer *b, struct wf_pool *pool, size_t bytes)
{
	void *at;

	*b = (struct wf_buffer){ 0 };
	if (bytes >= POOL_BYTES && !wf_pool_take(pool, bytes + LEAD_BYTES, &at)) {
		*b = (struct wf_buffer){ (uint8_t *)at + LEAD_BYTES, pool };
		return 0;
	}
	b->at = malloc(bytes ? bytes : 1);
	return b->at ? 0 : -ENOMEM;
}

void wf_buffer_give(struct wf_buffer *b)
{
	if (b->pool)
		wf_pool_give(b->pool, b->at - LEAD_BYTES);
	else
		free(b->at);
	*b = (struct wf_buffer){ 0 };
}
