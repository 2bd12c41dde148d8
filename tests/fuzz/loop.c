/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: fuzz_... [SECONDS [SEED]]
 *
 * The same seed gives the same inputs in the same order; SECONDS only says
 * when to stop.
 */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/fuzz/mutate.h"

#define BATCH 32 /* inputs between two looks at the clock */

/* On a heap block of exactly its size, so that a sanitizer sees the first byte too many. */
static void try_input(const uint8_t *bytes, size_t count)
{
	uint8_t *exact = malloc(count ? count : 1);

	must(exact != NULL);
	memcpy(exact, bytes, count);
	LLVMFuzzerTestOneInput(exact, count);
	free(exact);
}

static void try_damaged(uint64_t *random, unsigned seed_count)
{
	uint8_t bytes[FUZZ_BYTES_MAX];
	size_t count = fuzz_seed((unsigned)(mutate_random(random) % seed_count), bytes);

	try_input(bytes, mutate(random, bytes, count, sizeof(bytes)));
}

static unsigned long number(const char *text)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 0);
	if (errno || end == text || *end) {
		fprintf(stderr, "'%s' is no number\n", text);
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	unsigned long seconds = argc > 1 ? number(argv[1]) : 1;
	unsigned long seed = argc > 2 ? number(argv[2]) : 1;
	unsigned long long inputs = 0;
	uint8_t bytes[FUZZ_BYTES_MAX];
	struct timespec start, now;
	unsigned seed_count = 0;
	uint64_t random = seed;
	size_t count;

	/* Said first, for a crash says nothing. */
	printf("%s: seed %lu, %lu s\n", argv[0], seed, seconds);
	fflush(stdout);
	while ((count = fuzz_seed(seed_count, bytes))) {
		try_input(bytes, count);
		seed_count++;
	}
	must(seed_count > 0);
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		for (unsigned i = 0; i < BATCH; i++)
			try_damaged(&random, seed_count);
		inputs += BATCH;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((unsigned long)(now.tv_sec - start.tv_sec) < seconds);
	printf("%llu inputs\n", inputs);
	return 0;
}
