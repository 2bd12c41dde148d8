/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Input: a block of metadata.  Of one that is accepted all pairs are good and
 * lie inside it, and written again they are the same bytes.
 */
#include "tests/fuzz/fuzz.h"

#include <string.h>
#include "wire/pair.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	int pairs = wf_pairs_check(bytes, count);
	struct wf_pair pair;
	struct wf_bytes_writer w;
	uint8_t *again;

	if (pairs < 0)
		return 0;
	again = malloc(count + !count);
	must(again != NULL);
	w = wf_bytes_writer(again, count);
	while (wf_pair_get(&r, &pair) > 0) {
		must(wf_pair_good(&pair));
		must(pair.key >= bytes && pair.value == pair.key + pair.key_bytes &&
		     pair.value_bytes <= (size_t)(bytes + count - pair.value));
		wf_pair_put(&w, &pair);
		pairs--;
	}
	must(!pairs && !w.bad && !wf_bytes_writer_left(&w));
	must(!count || memcmp(again, bytes, count) == 0);
	free(again);
	return 0;
}

size_t fuzz_seed(unsigned index, uint8_t *bytes)
{
	static const struct wf_pair pairs[] = {
		{ (const uint8_t *)"user", (const uint8_t *)"A. Nobody", 4, 9 },
		{ (const uint8_t *)"trace-bin", (const uint8_t *)"\0\x80\xff\n", 9, 4 },
		{ (const uint8_t *)"user", NULL, 4, 0 },
	};
	struct wf_bytes_writer w = wf_bytes_writer(bytes, FUZZ_BYTES_MAX);

	if (index >= WF_COUNT(pairs))
		return 0;
	for (unsigned i = 0; i <= index; i++)
		wf_pair_put(&w, &pairs[i]);
	return FUZZ_BYTES_MAX - wf_bytes_writer_left(&w);
}
