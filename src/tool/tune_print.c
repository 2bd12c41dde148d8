/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/tune_print.h"

#include <inttypes.h>

#include "tool/out.h"

#define TEXT_BYTES 24

/* Medians of a value and of the present one, and of the ratio in the same round. */
struct row {
	double with, present, ratio;
};

/* Write @value as the settings take it, with K or M where it is a multiple. */
static const char *text_of(uint64_t value, char text[TEXT_BYTES])
{
	static const char *const units[] = { "", "K", "M" };
	size_t unit = 0;

	for (; unit < 2 && value && value % 1024 == 0; unit++)
		value /= 1024;
	snprintf(text, TEXT_BYTES, "%" PRIu64 "%s", value, units[unit]);
	return text;
}

static struct row row_of(const struct tune_value *v, size_t size, bool of_time)
{
	double with[VERDICT_ROUNDS_MAX], present[VERDICT_ROUNDS_MAX], ratios[VERDICT_ROUNDS_MAX];

	for (size_t i = 0; i < v->rounds; i++) {
		with[i] = of_time ? v->with.us[i][size] : v->with.per_s[i][size];
		present[i] = of_time ? v->present.us[i][size] : v->present.per_s[i][size];
		ratios[i] = of_time ? tune_ratio(present[i], with[i])
				    : tune_ratio(with[i], present[i]);
	}
	return (struct row){ verdict_median(with, v->rounds), verdict_median(present, v->rounds),
			     verdict_median(ratios, v->rounds) };
}

static struct row us_of(const struct tune_value *v, size_t size)
{
	return row_of(v, size, true);
}

static struct row per_s_of(const struct tune_value *v, size_t size)
{
	return row_of(v, size, false);
}

/* Text */

void tune_print_head(const struct tune *tune)
{
	printf("over %s; each value runs beside the present one, in turns; a ratio above 1 is "
	       "better\n\n",
	       tune->provider);
	printf("%-16s %8s %10s %10s %10s %6s %10s %10s %6s\n", "setting", "value", "bytes", "us",
	       "present", "ratio", "MB/s", "present", "ratio");
}

static void print_value(const char *name, const struct tune_value *v)
{
	const struct verdict *verdict = &v->verdict;
	char text[TEXT_BYTES];

	text_of(v->value, text);
	for (size_t i = 0; i < v->size_count && !v->skipped[0]; i++) {
		struct row us = us_of(v, i), per_s = per_s_of(v, i);

		printf("%-16s %8s %10" PRIu64 " %10.1f %10.1f %6.2f %10.1f %10.1f %6.2f\n", name,
		       text, v->sizes[i], us.with, us.present, us.ratio, per_s.with / 1e6,
		       per_s.present / 1e6, per_s.ratio);
	}
	if (v->skipped[0])
		printf("%-16s %8s skipped: %s\n", name, text, v->skipped);
	else
		printf("%-16s %8s mean ratio %.2f, better in %zu of %zu rounds: %s\n", name, text,
		       verdict->mean, verdict->better, v->rounds,
		       verdict->keep ? verdict->keep : "better");
}

void tune_print_setting(enum trial_setting setting, const struct tune_setting *done)
{
	const char *name = trial_variable(setting);
	char present[TEXT_BYTES], chosen[TEXT_BYTES];

	for (size_t i = 0; i < done->value_count; i++)
		print_value(name, &done->values[i]);
	if (!done->present)
		printf("%s: not measured, for lack of time\n\n", name);
	else if (done->chosen == done->present)
		printf("%s: keep %s\n\n", name, text_of(done->present, present));
	else
		printf("%s: %s in place of %s\n\n", name, text_of(done->chosen, chosen),
		       text_of(done->present, present));
}

/* Returns the line that sets @setting, or NULL: the present value stays. */
static const char *line_of(const struct tune *tune, size_t setting, char line[64])
{
	const struct tune_setting *s = &tune->settings[setting];
	char text[TEXT_BYTES];

	if (s->chosen == s->present)
		return NULL;
	snprintf(line, 64, "%s=%s", trial_variable(setting), text_of(s->chosen, text));
	return line;
}

void tune_print_end(const struct tune *tune)
{
	size_t count = 0;
	char line[64];

	printf("# %s, weft perf --tune over %s, libfabric %s\n", tune->date, tune->provider,
	       tune->libfabric);
	for (size_t i = 0; i < TRIAL_SETTINGS; i++) {
		if (!line_of(tune, i, line))
			continue;
		printf("%s\n", line);
		count++;
	}
	if (!count)
		printf("# nothing to set: no value is better by more than the noise\n");
}

/* JSON */

static void json_measure(const char *name, struct row row, int digits)
{
	out_object(name);
	out_number("value", row.with, digits);
	out_number("present", row.present, digits);
	out_number("ratio", row.ratio, 4);
	out_object_end();
}

static void json_value(const struct tune_value *v)
{
	out_object(NULL);
	out_count("value", v->value);
	if (v->skipped[0]) {
		out_text("skipped", v->skipped);
		out_object_end();
		return;
	}
	out_count("rounds", v->rounds);
	out_count("rounds_better", v->verdict.better);
	out_number("ratio", v->verdict.mean, 4);
	out_text("keep", v->verdict.keep ? v->verdict.keep : "");
	out_array("bodies");
	for (size_t i = 0; i < v->size_count; i++) {
		out_object(NULL);
		out_count("bytes", v->sizes[i]);
		json_measure("latency_us", us_of(v, i), 2);
		json_measure("bytes_per_s", per_s_of(v, i), 0);
		out_object_end();
	}
	out_array_end();
	out_object_end();
}

static void json_setting(enum trial_setting setting, const struct tune_setting *s)
{
	out_object(NULL);
	out_text("name", trial_variable(setting));
	out_count("present", s->present);
	out_count("chosen", s->chosen);
	out_array("values");
	for (size_t i = 0; i < s->value_count; i++)
		json_value(&s->values[i]);
	out_array_end();
	out_object_end();
}

void tune_print_json(const struct tune *tune)
{
	char line[64];

	out_object(NULL);
	out_text("date", tune->date);
	out_text("provider", tune->provider);
	out_text("libfabric", tune->libfabric);
	out_text("weft", weft_version());
	out_array("settings");
	for (size_t i = 0; i < TRIAL_SETTINGS; i++)
		json_setting(i, &tune->settings[i]);
	out_array_end();
	out_array("environment");
	for (size_t i = 0; i < TRIAL_SETTINGS; i++)
		if (line_of(tune, i, line))
			out_text(NULL, line);
	out_array_end();
	out_object_end();
}
