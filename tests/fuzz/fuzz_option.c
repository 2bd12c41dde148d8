/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Input: the value of a setting.  Written plainly, what is accepted is the same.
 */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/options.h"

static const struct {
	const char *unit, *plain; /* suffix of the unit itself */
} units[] = { { "bytes", "" }, { "ns", "ns" }, { "count", "" }, { "yes/no", "" } };

static void take(const char *unit, const char *plain, const char *text)
{
	uint64_t value, again;
	char written[32];
	int err = wf_options_parse(unit, text, &value);

	must(!err || err == -EINVAL || err == -ERANGE);
	if (err)
		return;
	snprintf(written, sizeof(written), "%" PRIu64 "%s", value, plain);
	must(!wf_options_parse(unit, written, &again) && again == value);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	char *text = fuzz_text(bytes, count);

	for (size_t i = 0; i < WF_COUNT(units); i++)
		take(units[i].unit, units[i].plain, text);
	if (text[0] && !strchr(text, ','))
		must(wf_options_lists(text, text));
	free(text);
	return 0;
}

size_t fuzz_seed(unsigned index, uint8_t *bytes)
{
	static const char *const texts[] = { "64M", "250us", "1024", "yes", "0", NULL };

	return fuzz_seed_of(texts, index, bytes);
}
