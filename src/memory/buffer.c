/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/buffer.h"

#include <errno.h>
#include <stdlib.h>

#define POOL_BYTES (16 * KIB) /* from here on; below it malloc has what it needs at hand */

int wf_buffer_take(struct wf_buffer *b, struct wf_pool *pool, size_t bytes)
{
	void *at;

	*b = (struct wf_buffer){ 0 };
	if (bytes >= POOL_BYTES && !wf_pool_take(pool, bytes, &at)) {
		*b = (struct wf_buffer){ at, pool };
		return 0;
	}
	b->at = malloc(bytes ? bytes : 1);
	return b->at ? 0 : -ENOMEM;
}

void wf_buffer_give(struct wf_buffer *b)
{
	if (b->pool)
		wf_pool_give(b->pool, b->at);
	else
		free(b->at);
	*b = (struct wf_buffer){ 0 };
}
