/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/perf_run.h"

#include <stdlib.h>
#include <string.h>

#include "tool/cuda.h"
#include "tool/pattern.h"

/* User memory begins on a page, as large arrays do. */
#define ALIGN_BYTES 4096u

/*
 * Bytes and bodies on the way for bandwidth: enough to hide a round trip, not so many that buffers
 * fall out of the cache.  Measured over shared memory and TCP on two busy processors: 64 KiB gain
 * up to 16, 1 MiB is best with 1 or 2, 16 MiB are the same with both.
 */
#define WINDOW_BYTES (2ull << 20)
#define WINDOW_LEAST 2u

/* Copy of what goes to and from devices, as long as the longest buffer; kept until the end. */
static struct {
	void *at;
	size_t room;
} copy;

unsigned perf_run_window(uint64_t bytes)
{
	if (!bytes || WINDOW_BYTES / bytes >= PERF_RUN_WINDOW_MAX)
		return PERF_RUN_WINDOW_MAX;
	if (WINDOW_BYTES / bytes <= WINDOW_LEAST)
		return WINDOW_LEAST;
	return (unsigned)(WINDOW_BYTES / bytes);
}

const char *perf_run_open(const struct perf_place *place)
{
	if (place->cuda > CUDA_DEVICES_MAX)
		return "no host has so many CUDA devices";
	return place->cuda ? cuda_open(place->cuda - 1) : NULL;
}

struct weft_tensor perf_run_tensor(const struct perf_place *place, void *memory, int64_t *shape,
				   uint64_t bytes)
{
	struct weft_tensor tensor = {
		.data = memory,
		.device = { .type = WEFT_CPU },
		.ndim = 1,
		.dtype = { .code = WEFT_UINT, .bits = 8, .lanes = 1 },
		.shape = shape,
	};

	*shape = (int64_t)bytes;
	if (place && place->cuda)
		tensor.device = (struct weft_device){ WEFT_CUDA, (int32_t)place->cuda - 1 };
	return tensor;
}

static bool copy_grow(size_t room)
{
	void *at = room > copy.room ? realloc(copy.at, room) : copy.at;

	if (!at)
		return false;
	copy.at = at;
	copy.room = room > copy.room ? room : copy.room;
	return true;
}

static void *take_there(unsigned device, size_t room)
{
	void *memory = copy_grow(room) ? cuda_take(device, room) : NULL;

	if (!memory)
		return NULL;
	memset(copy.at, 1, room);
	if (!cuda_put(device, memory, copy.at, room))
		return memory;
	cuda_give(device, memory);
	return NULL;
}

uint64_t perf_run_room(uint64_t bytes)
{
	return (bytes / ALIGN_BYTES + 1) * ALIGN_BYTES;
}

void *perf_run_take(struct weft_node *node, const struct perf_place *place, uint64_t bytes)
{
	size_t room = perf_run_room(bytes);
	void *memory;

	if (place->cuda)
		return take_there(place->cuda - 1, room);
	if (!place->pool)
		memory = aligned_alloc(ALIGN_BYTES, room);
	else if (weft_alloc(node, room, &memory))
		memory = NULL;
	/* The first touch of a page costs more than its transfer: it must not be timed. */
	if (memory)
		memset(memory, 1, room);
	return memory;
}

void perf_run_give(struct weft_node *node, const struct perf_place *place, void *memory)
{
	if (place->cuda)
		cuda_give(place->cuda - 1, memory);
	else if (place->pool)
		weft_free(node, memory);
	else
		free(memory);
}

int perf_run_fill(const struct perf_place *place, void *memory, uint64_t bytes, uint64_t run,
		  uint64_t index)
{
	pattern_fill(place->cuda ? copy.at : memory, bytes, run, index);
	return place->cuda ? cuda_put(place->cuda - 1, memory, copy.at, bytes) : 0;
}

uint64_t perf_run_wrong(const struct perf_place *place, const void *memory, uint64_t bytes,
			uint64_t run, uint64_t index)
{
	if (place->cuda && cuda_get(place->cuda - 1, copy.at, memory, bytes))
		return bytes;
	return pattern_wrong(place->cuda ? copy.at : memory, bytes, run, index);
}
