/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/cuda/place.h"

#include <stdlib.h>

#include "tests/cuda/gpu.h"
#include "tests/fabric/pair.h"

void place_open(struct place *p, int device, size_t count)
{
	*p = (struct place){ .device = device, .count = (int64_t)count };
	p->at = gpu_take(device, count);
	p->tensor = gpu_tensor(device, p->at, &p->count);
}

void place_close(struct place *p)
{
	gpu_give(p->device, p->at);
}

void place_fill(struct place *p, uint64_t seed)
{
	void *bytes = malloc((size_t)p->count);

	pair_fill(bytes, (size_t)p->count, seed);
	gpu_put(p->device, p->at, bytes, (size_t)p->count);
	free(bytes);
}

bool place_matches(const struct place *p, uint64_t seed)
{
	void *bytes = malloc((size_t)p->count);
	bool matches;

	gpu_get(p->device, p->at, bytes, (size_t)p->count);
	matches = pair_matches(bytes, (size_t)p->count, seed);
	free(bytes);
	return matches;
}
