/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of a fuzz program.  With clang's -fsanitize=fuzzer the library brings
 * main, and guided.c writes the program's seeds; without it loop.c has main, and
 * damages the seeds.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FUZZ_BYTES_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

/* Write valid input number @index to FUZZ_BYTES_MAX @bytes.  Returns its count; 0: no more. */
size_t fuzz_seed(unsigned index, uint8_t *bytes);

/* Assert, also with NDEBUG. */
static inline void must(int holds)
{
	if (!holds)
		abort();
}

/* Copy an input to a C string; for free(). */
static inline char *fuzz_text(const uint8_t *bytes, size_t count)
{
	char *text = malloc(count + 1);

	must(text != NULL);
	if (count)
		memcpy(text, bytes, count);
	text[count] = '\0';
	return text;
}

/* Serve fuzz_seed from a list that ends with NULL. */
static inline size_t fuzz_seed_of(const char *const *texts, unsigned index, uint8_t *bytes)
{
	size_t count;

	for (unsigned i = 0; i < index; i++)
		if (!texts[i])
			return 0;
	if (!texts[index])
		return 0;
	count = strlen(texts[index]);
	memcpy(bytes, texts[index], count);
	return count;
}

#endif
