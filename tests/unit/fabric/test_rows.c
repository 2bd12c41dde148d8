/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The manual's tables are those of the code: weft_providers.7 has every row,
 * number, reason and setting of providers/, and weft_options.7 every row of
 * util/options.
 */
#include "providers/provider.h"
#include "util/options.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <rdma/fabric.h>

#define PAGE_BYTES (64 * KIB)

/* Each run of blanks and line ends becomes one blank: pages are wrapped as they like. */
static void flatten(char *text)
{
	char *to = text;

	for (const char *at = text; *at; at++) {
		if (!isspace((unsigned char)*at))
			*to++ = *at;
		else if (to == text || to[-1] != ' ')
			*to++ = ' ';
	}
	*to = '\0';
}

/* The text of man/@name; free it. */
static char *read_page(const char *name)
{
	const char *top = getenv("top_srcdir");
	char path[4096];
	char *text = calloc(1, PAGE_BYTES);
	size_t bytes;
	FILE *in;

	snprintf(path, sizeof(path), "%s/man/%s", top ? top : ".", name);
	in = fopen(path, "r");
	if (!in)
		fail_msg("%s can't be read", path);
	assert_non_null(text);
	bytes = fread(text, 1, PAGE_BYTES, in);
	fclose(in);
	assert_in_range(bytes, 1, PAGE_BYTES - 1);
	flatten(text);
	return text;
}

static void assert_has(const char *page, const char *text)
{
	if (!strstr(page, text))
		fail_msg("the page does not say: %s", text);
}

static size_t times_in(const char *page, const char *text)
{
	size_t count = 0;

	for (; (page = strstr(page, text)); page++)
		count++;
	return count;
}

/* The section of row @label: up to the next section. */
static char *section_of(const char *page, const char *label)
{
	char head[64], *section, *end;
	const char *at;

	snprintf(head, sizeof(head), " .Ss %s ", label);
	at = strstr(page, head);
	if (!at)
		fail_msg("the page has no section %s", label);
	section = strdup(at + strlen(head));
	assert_non_null(section);
	end = strstr(section, " .S");
	if (end)
		*end = '\0';
	return section;
}

static void every_row_and_number_is_in_the_page(void **state)
{
	static const char *const shapes[] = { "connected", "shared" };
	static const char *const waits[] = { "none", "level", "edge", "pollfd", "doorbell" };
	char *page = read_page("weft_providers.7"), text[200];
	size_t count = 0;

	(void)state;
	for (const struct wf_provider *const *at = wf_providers; *at; at++) {
		const struct wf_provider *row = *at;

		snprintf(text, sizeof(text), ".It %s Ta %u Ta %s Ta %s Ta %zu Ta %zu Ta %zu Ta %u ",
			 row->label, row->rank, shapes[row->shape], waits[row->wait],
			 row->frame_bytes, row->eager_bytes, row->chunk_bytes, row->depth);
		assert_has(page, text);
		snprintf(text, sizeof(text), ".It %s Ta %s Ta %s Ta %s ", row->label,
			 row->refused   ? "never"
			 : row->by_name ? "by name"
					: "by itself",
			 row->reg_cheap ? "cheap" : "dear", row->tested ? "tested" : "untested");
		assert_has(page, text);
		snprintf(text, sizeof(text), "On %s bodies of at least %zu bytes are read by two threads",
			 row->label, row->helper_bytes);
		assert_true(!row->helper_bytes == !strstr(page, text));
		count++;
	}
	/* Nor is there one that the code lacks: two tables of seven and three columns, two heads. */
	assert_int_equal(times_in(page, " Ta "), (count + 1) * (7 + 3));
	free(page);
}

static void print_version(char text[40], const char *bound, unsigned version)
{
	snprintf(text, 40, "With libfabric %s %u.%u: ", bound, FI_MAJOR(version),
		 FI_MINOR(version));
}

static void every_reason_is_in_the_section_of_its_row(void **state)
{
	char *page = read_page("weft_providers.7"), text[400];

	(void)state;
	for (const struct wf_provider *const *at = wf_providers; *at; at++) {
		const struct wf_provider *row = *at;
		char *section = section_of(page, row->label);

		for (const struct wf_provider_quirk *q = row->quirks; q->kind != WF_QUIRK_NONE;
		     q++) {
			char since[40] = "", before[40] = "";

			if (q->since)
				print_version(since, "since", q->since);
			if (q->before)
				print_version(before, "before", q->before);
			snprintf(text, sizeof(text), "%s%s%s", since, before, q->why);
			assert_has(section, text);
		}
		if (row->refused)
			assert_has(section, row->refused);
		if (row->peers_max) {
			snprintf(text, sizeof(text), "at most %u peers", row->peers_max);
			assert_has(section, text);
		}
		if (row->ping_ms) {
			snprintf(text, sizeof(text), "may take %u ms", row->ping_ms);
			assert_has(section, text);
		}
		assert_int_equal(!!strstr(section, "It is RDMA"), row->rdma);
		/* "Closing a key stops a read in progress on none of them." */
		assert_int_equal(row->revoke, WF_REVOKE_NONE);
		free(section);
	}
	free(page);
}

static void a_quirk_holds_within_its_versions(void **state)
{
	static const struct wf_provider_quirk quirks[] = {
		{ .kind = WF_QUIRK_SLOW_FD },
		{ .kind = WF_QUIRK_SHM_FILES, .before = FI_VERSION(1, 18) },
		{ .kind = WF_QUIRK_SYNC_READ, .since = FI_VERSION(2, 0) },
		{ .kind = WF_QUIRK_NONE },
	};
	static const struct wf_provider row = { .quirks = quirks };

	(void)state;
	assert_true(wf_provider_has(&row, WF_QUIRK_SLOW_FD, FI_VERSION(1, 17)));
	assert_true(wf_provider_has(&row, WF_QUIRK_SHM_FILES, FI_VERSION(1, 17)));
	assert_false(wf_provider_has(&row, WF_QUIRK_SHM_FILES, FI_VERSION(1, 18)));
	assert_false(wf_provider_has(&row, WF_QUIRK_SYNC_READ, FI_VERSION(1, 22)));
	assert_true(wf_provider_has(&row, WF_QUIRK_SYNC_READ, FI_VERSION(2, 0)));
	assert_false(wf_provider_has(&row, WF_QUIRK_LIVE_NAME, FI_VERSION(2, 0)));
}

static void every_variable_that_weft_sets_is_in_the_page(void **state)
{
	char *page = read_page("weft_providers.7"), text[300];

	(void)state;
	for (const struct wf_provider_setting *s = wf_provider_settings; s->name; s++) {
		char before[40] = "";

		if (s->before)
			print_version(before, "before", s->before);
		snprintf(text, sizeof(text), ".It Ev %s Ns =%s %s%s ", s->name, s->value, before,
			 s->why);
		assert_has(page, text);
	}
	free(page);
}

static void every_option_is_in_the_page(void **state)
{
	char *page = read_page("weft_options.7"), text[600];
	size_t count;
	const struct weft_option *rows = wf_options_rows(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		const struct weft_option *o = &rows[i];

		snprintf(text, sizeof(text), ".It Ev %s%s%s %s; default %s%s%s%s%s. When to change it: %s. ",
			 o->name, *o->alias ? " , Ev " : "", o->alias, o->unit,
			 *o->preset ? o->preset : "none", *o->least ? "; " : "", o->least,
			 *o->least ? " to " : "", o->most, o->when);
		assert_has(page, text);
	}
	assert_int_equal(times_in(page, " .It Ev "), count);
	free(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_and_number_is_in_the_page),
		cmocka_unit_test(every_reason_is_in_the_section_of_its_row),
		cmocka_unit_test(a_quirk_holds_within_its_versions),
		cmocka_unit_test(every_variable_that_weft_sets_is_in_the_page),
		cmocka_unit_test(every_option_is_in_the_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
