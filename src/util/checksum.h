/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A checksum of bytes: the 64 bits of XXH3, without a seed.
 *
 * It finds what hardware and software spoil by accident; against somebody who
 * means to it proves nothing.
 *
 * Threads: any.
 */
#ifndef WF_CHECKSUM_H
#define WF_CHECKSUM_H

#include "util/base.h"

uint64_t wf_checksum(const void *bytes, size_t count);

/* The same, in the two ways it is made; the second only where it may run. */
uint64_t wf_checksum_plain(const void *bytes, size_t count);
uint64_t wf_checksum_avx2(const void *bytes, size_t count);
bool wf_checksum_avx2_may_run(void);

#endif
