/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a fuzz program has.  With clang's -fsanitize=fuzzer the library brings
 * main; without it loop.c does, and damages the program's own seeds.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define FUZZ_BYTES_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

/* Valid input number @index, in FUZZ_BYTES_MAX @bytes; its count, or 0: there are no more. */
size_t fuzz_seed(unsigned index, uint8_t *bytes);

/* As assert, but NDEBUG does not switch it off. */
static inline void must(int holds)
{
	if (!holds)
		abort();
}

#endif
