/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/cuda/place.h"

#include <stdlib.h>

#include "tests/cuda/gpu.h"
#include "tests/fabric/pair.h"

void place_open(struct place *p, int device, size_t count)
{
	*p = (struct place){ .device = device, .count = (int64_t)count };
	p->at = device < 0 ? malloc(count) : gpu_take(device, count);
	p->tensor = pair_tensor(p->at, &p->count);
	if (device >= 0)
		p->tensor.device = (struct weft_device){ WEFT_CUDA, device };
}

void place_close(struct place *p)
{
	if (p->device < 0)
		free(p->at);
	else
		gpu_give(p->device, p->at);
}

void place_fill(struct place *p, uint64_t seed)
{
	void *bytes = p->device < 0 ? p->at : malloc((size_t)p->count);

	pair_fill(bytes, (size_t)p->count, seed);
	if (p->device < 0)
		return;
	gpu_put(p->device, p->at, bytes, (size_t)p->count);
	free(bytes);
}

bool place_matches(const struct place *p, uint64_t seed)
{
	void *bytes = p->device < 0 ? p->at : malloc((size_t)p->count);
	bool matches;

	if (p->device >= 0)
		gpu_get(p->device, p->at, bytes, (size_t)p->count);
	matches = pair_matches(bytes, (size_t)p->count, seed);
	if (p->device >= 0)
		free(bytes);
	return matches;
}
