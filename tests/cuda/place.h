/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The place of a test's tensor: in the memory of a device, or of the host.  Any failure
 * fails the test.
 *
 * Threads: the one that runs the tests.
 */
#ifndef TESTS_CUDA_PLACE_H
#define TESTS_CUDA_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/weft.h>

/* A tensor of bytes, on a device or, with GPU_HOST, on the host. */
struct place {
	int device;
	void *at;
	int64_t count;
	struct weft_tensor tensor;
};

void place_open(struct place *p, int device, size_t count);
void place_close(struct place *p);

/* Fill with pair.h's bytes of @seed, by a copy that is over at return. */
void place_fill(struct place *p, uint64_t seed);
bool place_matches(const struct place *p, uint64_t seed);

#endif
