/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/random.h"

#include <sys/random.h>

/*
 * Read from the kernel without a buffer, so that a forked child can never repeat what its
 * parent drew.  A call takes some 0.3 us; the hottest use is one key for an offer of many KiB.
 */
void wf_random_fill(void *bytes, size_t count)
{
	uint8_t *at = bytes;

	/* getrandom fails only when a signal interrupts it: Linux has it since 3.17. */
	while (count) {
		ssize_t got = getrandom(at, count, 0);

		if (got < 0)
			continue;
		at += got;
		count -= (size_t)got;
	}
}

uint64_t wf_random_u64(void)
{
	uint64_t v;

	do
		wf_random_fill(&v, sizeof(v));
	while (!v);
	return v;
}
