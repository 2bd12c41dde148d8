/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes to send that the receiver can make by itself, to compare: each run and index has other
 * bytes, so a stale or a swapped buffer shows.
 *
 * Threads: any.
 */
#ifndef TOOL_PATTERN_H
#define TOOL_PATTERN_H

#include <stddef.h>
#include <stdint.h>

void pattern_fill(void *memory, size_t bytes, uint64_t run, uint64_t index);

/* Returns how many of the bytes differ from what pattern_fill() writes. */
size_t pattern_wrong(const void *memory, size_t bytes, uint64_t run, uint64_t index);

#endif
