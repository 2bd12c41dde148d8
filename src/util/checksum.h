/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A checksum of bytes: the 64 bits of XXH3, without a seed.
 *
 * The checksum finds bytes that hardware or software spoils by accident; it proves nothing
 * against an adversary.
 *
 * Threads: any.
 */
#ifndef WF_CHECKSUM_H
#define WF_CHECKSUM_H

#include "util/base.h"

uint64_t wf_checksum(const void *bytes, size_t count);

/* Compute wf_checksum() with instructions that every processor has. */
uint64_t wf_checksum_plain(const void *bytes, size_t count);

/* Compute wf_checksum() with AVX2; only where wf_checksum_avx2_may_run(). */
uint64_t wf_checksum_avx2(const void *bytes, size_t count);

/* Return whether this processor has AVX2. */
bool wf_checksum_avx2_may_run(void);

#endif
