/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Input: rules about memory.  What is accepted is accepted again from the texts that
 * were kept, as the same; what is not has a sentence.
 */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "memory/rules.h"

/* Each rule on a line of its own, for free(). */
static char *join(const struct wf_rules *rules)
{
	char *text = malloc(rules->count * WF_RULE_TEXT_BYTES + 1), *at = text;

	must(text != NULL);
	*at = '\0';
	for (size_t i = 0; i < rules->count; i++) {
		size_t count = strlen(rules->all[i].text);

		must(count > 0 && count < WF_RULE_TEXT_BYTES);
		memcpy(at, rules->all[i].text, count);
		at += count;
		*at++ = '\n';
	}
	*at = '\0';
	return text;
}

static void compare(const struct wf_rules *a, const struct wf_rules *b)
{
	must(a->count == b->count);
	for (size_t i = 0; i < a->count; i++) {
		const struct wf_rule *r = &a->all[i], *s = &b->all[i];

		must(r->verb == s->verb && r->bytes == s->bytes && r->percent == s->percent &&
		     r->class == s->class && r->below == s->below && r->at == s->at &&
		     r->above == s->above && r->who.count == s->who.count);
		must(r->who.count > 0 && r->who.count <= WF_RULE_WHO_MAX && r->percent <= 100);
		must(r->below || r->at || r->above);
		must(!strcmp(r->client, s->client) && !strcmp(r->text, s->text));
		for (unsigned j = 0; j < r->who.count; j++)
			must(!strcmp(r->who.names[j], s->who.names[j]));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	char *text = fuzz_text(bytes, count), *again;
	struct wf_rules rules, same;
	struct wf_error e = { 0 };
	int err;

	if (text[0] == '/') /* a file, which is not what is tried */
		text[0] = ' ';
	err = wf_rules_open(&rules, text, &e);
	must(!err || (err == -EINVAL && e.code == err && e.text[0]));
	free(text);
	if (err)
		return 0;
	again = join(&rules);
	must(!wf_rules_open(&same, again, NULL));
	compare(&rules, &same);
	wf_rules_close(&rules);
	wf_rules_close(&same);
	free(again);
	return 0;
}

size_t fuzz_seed(unsigned index, uint8_t *bytes)
{
	static const char *const texts[] = {
		"deny cuda where class>phb; allow p2pmem, host:0 for mlx5_0 where class <= NODE",
		"# first\nprefer cuda,pinned,host\nlimit p2pmem:0000:3b:00.0 64M # it is small\n",
		"reserve host 25%;reserve any 1G;;\n publish software:0000:3b:00.0 16777216",
		"prefer host:1 for 0000:81:00.0\ndeny any",
		NULL,
	};

	return fuzz_seed_of(texts, index, bytes);
}
