/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t wf_checksum_plain(const void *bytes, size_t count)
{
	return XXH3_64bits(bytes, count);
}

uint64_t wf_checksum(const void *bytes, size_t count)
{
	return wf_checksum_avx2_may_run() ? wf_checksum_avx2(bytes, count)
					  : wf_checksum_plain(bytes, count);
}
