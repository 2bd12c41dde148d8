/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/perf_run.h"

#include <stdlib.h>
#include <string.h>

/* User memory begins on a page, as large arrays do. */
#define ALIGN_BYTES 4096u

struct weft_tensor perf_run_tensor(void *memory, int64_t *shape, uint64_t bytes)
{
	*shape = (int64_t)bytes;
	return (struct weft_tensor){
		.data = memory,
		.device = { .type = WEFT_CPU },
		.ndim = 1,
		.dtype = { .code = WEFT_UINT, .bits = 8, .lanes = 1 },
		.shape = shape,
	};
}

void *perf_run_take(struct weft_node *node, bool pool, uint64_t bytes)
{
	size_t room = (bytes / ALIGN_BYTES + 1) * ALIGN_BYTES;
	void *memory;

	if (!pool)
		memory = aligned_alloc(ALIGN_BYTES, room);
	else if (weft_alloc(node, room, &memory))
		memory = NULL;
	/* The first touch of a page costs more than its transfer: not in what is timed. */
	if (memory)
		memset(memory, 1, room);
	return memory;
}

void perf_run_give(struct weft_node *node, bool pool, void *memory)
{
	if (pool)
		weft_free(node, memory);
	else
		free(memory);
}
