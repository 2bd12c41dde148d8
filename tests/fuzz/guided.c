/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: fuzz_... --seeds DIR
 *        fuzz_... [OPTION...] [CORPUS...]
 *
 * The first writes the seeds, a file each, as a corpus to begin with: they are
 * made by the same functions that peers use, so they are never of an older
 * wire.  All else is libFuzzer's, which brings main.
 */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);

static void write_seed(const char *dir, unsigned index, const uint8_t *bytes, size_t count)
{
	char path[4096];
	FILE *file;

	must(snprintf(path, sizeof(path), "%s/seed-%u", dir, index) < (int)sizeof(path));
	file = fopen(path, "wb");
	if (!file || fwrite(bytes, 1, count, file) != count || fclose(file)) {
		perror(path);
		exit(2);
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	uint8_t bytes[FUZZ_BYTES_MAX];
	unsigned index = 0;
	size_t count;

	if (*argc != 3 || strcmp((*argv)[1], "--seeds"))
		return 0;
	while ((count = fuzz_seed(index, bytes)))
		write_seed((*argv)[2], index++, bytes, count);
	exit(index ? 0 : 2);
}
