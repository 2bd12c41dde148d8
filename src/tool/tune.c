/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/tune.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tool/tune_print.h"

#define KIB (1ull << 10)
#define MIB (1ull << 20)

#define NS_PER_MS 1000000ull
#define NS_PER_S  (1000 * NS_PER_MS)

/* Over a loopback at rest each value has five rounds or more in this time. */
#define TIME_DEFAULT_NS (300 * NS_PER_S)

/* Part of a setting's time, at most, that finding out how long a trial takes may take. */
#define LOOK_PART 8

/* Values that stay, as long as there is more than one size, when time is short. */
#define VALUES_LEAST 2

/* Sizes of bodies, and how they are measured. */
struct bodies {
	enum perf_test test;
	uint64_t time_ns; /* for each size */
	uint64_t sizes[TRIAL_SIZES_MAX];
	size_t size_count;
};

/* Bodies for frames and the end of the eager way go in one direction, unacknowledged. */
static const struct bodies short_bodies = {
	.test = PERF_MESSAGE,
	.time_ns = 40 * NS_PER_MS, /* hundreds of bodies: a median of them repeats */
	.sizes = { 4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB, 256 * KIB },
	.size_count = 7,
};

static const struct bodies long_bodies = {
	.test = PERF_TENSOR,
	.time_ns = 100 * NS_PER_MS, /* two bodies of 64 MiB at 1 GB/s, after the warm-up */
	.sizes = { 1 * MIB, 4 * MIB, 16 * MIB, 64 * MIB },
	.size_count = 4,
};

/*
 * Values from @least to @most are tried: of others the bodies tell nothing, or the options do not
 * have them.
 */
static const struct field {
	const struct bodies *bodies;
	uint64_t least, most;
	unsigned weight; /* share of the time */
} fields[] = {
	[TRIAL_FRAME] = { &short_bodies, 1 * KIB, 256 * KIB, 1 },
	[TRIAL_EAGER] = { &short_bodies, 2 * KIB, 256 * KIB, 1 },
	[TRIAL_CHUNK] = { &long_bodies, 64 * KIB, 32 * MIB, 2 },
	[TRIAL_DEPTH] = { &long_bodies, 1, 16, 2 },
};

struct search {
	const struct tool_command *command;
	struct tune *tune;
	bool json;
	uint64_t end_ns;
	uint64_t set[TRIAL_SETTINGS];   /* values found better; 0: as the environment says */
	uint64_t force[TRIAL_SETTINGS]; /* values in force */
	/* How long a trial with the bodies of the present setting takes. */
	const struct bodies *bodies;
	size_t looked; /* sizes whose time is known, the first ones */
	size_t usable; /* sizes for which there is time */
	uint64_t around_ns, ran_ns[TRIAL_SIZES_MAX];
};

bool tune_asked(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--tune"))
			return true;
	return false;
}

/* Trials */

static struct trial trial_with(const struct search *s)
{
	struct trial trial = { .test = s->bodies->test,
			       .provider = s->tune->provider,
			       .time_ns = s->bodies->time_ns };

	memcpy(trial.values, s->set, sizeof(trial.values));
	return trial;
}

/*
 * Find out what a trial with @bodies takes, within @limit_ns if one size does; the first of all
 * shows also which provider carries the bodies and which values are in force.
 */
static int look(struct search *s, const struct bodies *bodies, uint64_t limit_ns)
{
	struct tune *tune = s->tune;
	struct trial_result r;
	struct trial trial;
	int status;

	s->bodies = bodies;
	trial = trial_with(s);
	trial.size_count = bodies->size_count;
	trial.limit_ns = limit_ns;
	memcpy(trial.sizes, bodies->sizes, sizeof(trial.sizes));
	status = trial_run(s->command, &trial, &r);
	if (status)
		return status;
	if (r.refused[0])
		return tool_fail(s->command, "%s", r.refused);
	s->looked = s->usable = r.body_count;
	s->around_ns = r.ran_ns;
	for (size_t i = 0; i < r.body_count; i++) {
		s->ran_ns[i] = r.bodies[i].ran_ns;
		s->around_ns -= r.bodies[i].ran_ns;
	}
	if (tune->provider[0])
		return TOOL_OK;
	memcpy(tune->provider, r.provider, sizeof(tune->provider));
	memcpy(tune->libfabric, r.libfabric, sizeof(tune->libfabric));
	memcpy(s->force, r.values, sizeof(s->force));
	for (size_t i = 0; i < TRIAL_SETTINGS; i++)
		if (!s->force[i])
			return tool_fail(s->command, "%s does not tell its values", r.provider);
	if (s->json)
		return TOOL_OK;
	tune_print_head(tune);
	return tool_flush(s->command) ? TOOL_FAILED : TOOL_OK;
}

static void keep_measures(struct tune_measures *m, size_t round, const struct trial_result *r)
{
	for (size_t i = 0; i < r->body_count; i++) {
		m->us[round][i] = r->bodies[i].us;
		m->per_s[round][i] = r->bodies[i].per_s;
	}
}

/* Run a trial with @v, or the present value.  A value that fails is skipped. */
static int run_one(const struct search *s, enum trial_setting setting, struct tune_value *v,
		   bool present)
{
	struct trial trial = trial_with(s);
	struct trial_result r;
	int status;

	if (!present)
		trial.values[setting] = v->value;
	trial.size_count = v->size_count;
	memcpy(trial.sizes, v->sizes, sizeof(trial.sizes));
	status = trial_run(s->command, &trial, &r);
	if (status == TOOL_INTERRUPTED || (status && present))
		return status;
	if (status)
		snprintf(v->skipped, sizeof(v->skipped), "a trial failed");
	else if (r.refused[0])
		memcpy(v->skipped, r.refused, sizeof(v->skipped));
	else if (strcmp(r.provider, s->tune->provider) != 0)
		snprintf(v->skipped, sizeof(v->skipped), "bodies went over %s", r.provider);
	else
		keep_measures(present ? &v->present : &v->with, v->rounds, &r);
	return TOOL_OK;
}

/* Run @v and the present value, which is second in the first round: @v may be refused. */
static int run_pair(const struct search *s, enum trial_setting setting, struct tune_value *v)
{
	uint64_t start_ns = tool_now_ns();
	bool present_first = v->rounds % 2;
	int status = run_one(s, setting, v, present_first);

	if (!status && !v->skipped[0])
		status = run_one(s, setting, v, !present_first);
	if (!status && !v->skipped[0])
		v->rounds++;
	v->pair_ns = tool_now_ns() - start_ns;
	return status;
}

/* Values */

/* Does it matter to bodies of @bytes whether @setting is @value or the present one? */
static bool decides(const struct search *s, enum trial_setting setting, uint64_t value,
		    uint64_t bytes)
{
	uint64_t present = s->force[setting];
	uint64_t least = value < present ? value : present;
	uint64_t most = value < present ? present : value;

	switch (setting) {
	case TRIAL_FRAME:
		return bytes <= s->force[TRIAL_EAGER];
	case TRIAL_EAGER:
		return bytes > least && bytes <= most;
	case TRIAL_CHUNK:
		return bytes > least;
	default: /* TRIAL_DEPTH */
		return bytes > s->force[TRIAL_CHUNK];
	}
}

/* Choose the sizes for @v, of those for which there is time; without any it is skipped. */
static void choose_sizes(const struct search *s, enum trial_setting setting, struct tune_value *v)
{
	const char *why = "it matters to none of the sizes";

	v->size_count = 0;
	v->pair_ns = 2 * s->around_ns;
	for (size_t i = 0; i < s->bodies->size_count; i++) {
		if (!decides(s, setting, v->value, s->bodies->sizes[i]))
			continue;
		why = "no time";
		if (i >= s->usable)
			break;
		v->sizes[v->size_count++] = s->bodies->sizes[i];
		v->pair_ns += 2 * s->ran_ns[i];
	}
	if (!v->size_count)
		snprintf(v->skipped, sizeof(v->skipped), "%s", why);
}

static void add_value(const struct search *s, enum trial_setting setting, uint64_t value)
{
	struct tune_setting *to = &s->tune->settings[setting];

	if (value < fields[setting].least || value > fields[setting].most)
		return;
	to->values[to->value_count].value = value;
	choose_sizes(s, setting, &to->values[to->value_count++]);
}

/* List powers of two that are at least 1.5 times smaller or larger than the present value. */
static void list_values(const struct search *s, enum trial_setting setting)
{
	uint64_t present = s->force[setting], up = 1, down;

	while (2 * up < 3 * present)
		up *= 2;
	for (down = up; 3 * down > 2 * present; down /= 2)
		;
	for (size_t i = 0; i < TUNE_VALUES_MAX / 2; i++, down /= 2, up *= 2) {
		add_value(s, setting, down);
		add_value(s, setting, up);
	}
}

/* Returns the time of a round of all values that are not skipped, and their count in @count. */
static uint64_t round_ns(const struct tune_setting *to, size_t *count)
{
	uint64_t sum = 0;

	*count = 0;
	for (size_t i = 0; i < to->value_count; i++) {
		if (to->values[i].skipped[0])
			continue;
		sum += to->values[i].pair_ns;
		(*count)++;
	}
	return sum;
}

/* Skip the value that is furthest from the present one. */
static void skip_last(struct tune_setting *to)
{
	size_t i = to->value_count;

	while (to->values[--i].skipped[0])
		;
	strcpy(to->values[i].skipped, "no time");
}

/* Give up values and sizes until there is time for enough rounds, or one value is left. */
static void fit(struct search *s, enum trial_setting setting, uint64_t left_ns)
{
	struct tune_setting *to = &s->tune->settings[setting];
	size_t count;

	while (round_ns(to, &count) * VERDICT_ROUNDS_LEAST > left_ns && count) {
		if (count > VALUES_LEAST || (s->usable == 1 && count > 1)) {
			skip_last(to);
			continue;
		}
		if (s->usable == 1)
			break;
		s->usable--;
		for (size_t i = 0; i < to->value_count; i++)
			if (!to->values[i].skipped[0])
				choose_sizes(s, setting, &to->values[i]);
	}
}

/* Skip what is larger than a value that is too large. */
static void skip_larger(struct tune_setting *to, const struct tune_value *refused)
{
	for (size_t i = 0; i < to->value_count; i++)
		if (refused->value > to->present && to->values[i].value > refused->value &&
		    !to->values[i].skipped[0])
			memcpy(to->values[i].skipped, refused->skipped, sizeof(refused->skipped));
}

/* Run rounds until @end_ns. */
static int run_rounds(const struct search *s, enum trial_setting setting, uint64_t end_ns)
{
	struct tune_setting *to = &s->tune->settings[setting];
	int status = TOOL_OK;

	for (size_t round = 0; round < VERDICT_ROUNDS_MAX; round++)
		for (size_t i = 0; i < to->value_count; i++) {
			struct tune_value *v = &to->values[i];

			if (v->skipped[0])
				continue;
			if (tool_now_ns() + v->pair_ns > end_ns)
				return TOOL_OK;
			status = run_pair(s, setting, v);
			if (status)
				return status;
			if (v->skipped[0])
				skip_larger(to, v);
		}
	return status;
}

double tune_ratio(double a, double b)
{
	return a > 0 && b > 0 ? a / b : 1;
}

static void judge(struct tune_value *v)
{
	struct verdict_rounds rounds = { .rounds = v->rounds, .measures = 2 * v->size_count };

	for (size_t i = 0; i < v->rounds; i++)
		for (size_t k = 0; k < v->size_count; k++) {
			rounds.ratios[i][2 * k] = tune_ratio(v->present.us[i][k], v->with.us[i][k]);
			rounds.ratios[i][2 * k + 1] =
				tune_ratio(v->with.per_s[i][k], v->present.per_s[i][k]);
		}
	v->verdict = verdict_of(&rounds);
	if (!v->rounds && !v->skipped[0])
		strcpy(v->skipped, "no time");
}

/* Judge all values, and take the best of those that are better than the present one. */
static void choose(struct search *s, enum trial_setting setting)
{
	struct tune_setting *to = &s->tune->settings[setting];
	double gain = 0;

	for (size_t i = 0; i < to->value_count; i++) {
		struct tune_value *v = &to->values[i];

		judge(v);
		if (v->skipped[0] || v->verdict.keep || v->verdict.gain <= gain)
			continue;
		gain = v->verdict.gain;
		to->chosen = v->value;
	}
	if (to->chosen != to->present)
		s->set[setting] = s->force[setting] = to->chosen;
}

/* The settings, one after the other */

static int search_setting(struct search *s, enum trial_setting setting, uint64_t end_ns)
{
	struct tune_setting *to = &s->tune->settings[setting];
	const struct bodies *bodies = fields[setting].bodies;
	uint64_t now_ns = tool_now_ns();
	int status = TOOL_OK;

	if (s->bodies != bodies && now_ns < end_ns)
		status = look(s, bodies, (end_ns - now_ns) / LOOK_PART);
	if (status || s->bodies != bodies)
		return status;
	s->usable = s->looked;
	to->present = to->chosen = s->force[setting];
	list_values(s, setting);
	now_ns = tool_now_ns();
	fit(s, setting, now_ns < end_ns ? end_ns - now_ns : 0);
	status = run_rounds(s, setting, end_ns);
	if (!status)
		choose(s, setting);
	return status;
}

static int search_all(struct search *s)
{
	unsigned weights = 0;
	int status = TOOL_OK;

	for (size_t i = 0; i < TRIAL_SETTINGS; i++)
		weights += fields[i].weight;
	for (size_t i = 0; i < TRIAL_SETTINGS && !status; i++) {
		uint64_t now_ns = tool_now_ns();
		uint64_t left_ns = now_ns < s->end_ns ? s->end_ns - now_ns : 0;

		status = search_setting(s, i, now_ns + left_ns / weights * fields[i].weight);
		weights -= fields[i].weight;
		if (status || s->json)
			continue;
		tune_print_setting(i, &s->tune->settings[i]);
		if (tool_flush(s->command))
			status = TOOL_FAILED;
	}
	return status;
}

static int tune(const struct tool_command *self, uint64_t time_ns, bool json)
{
	static struct tune result; /* 30 KiB of measures: too much for a stack */
	struct search s = { .command = self, .tune = &result, .json = json };
	time_t now = time(NULL);
	struct tm day;
	int status;

	if (localtime_r(&now, &day))
		strftime(result.date, sizeof(result.date), "%Y-%m-%d", &day);
	s.end_ns = tool_now_ns() + time_ns;
	status = search_all(&s);
	if (status)
		return status;
	if (json)
		tune_print_json(&result);
	else
		tune_print_end(&result);
	return tool_flush(self) ? TOOL_FAILED : TOOL_OK;
}

/* Arguments */

static int check_words(const struct tool_command *self, int argc, char **argv)
{
	if (optind == argc)
		return TOOL_OK;
	return tool_misused(self,
			    "%s: with --tune there is no address, for both sides must have each "
			    "value that is tried",
			    argv[optind]);
}

int tune_run(const struct tool_command *self, int argc, char **argv)
{
	static const struct option names[] = {
		{ "tune", no_argument, NULL, 'u' },
		{ "provider", required_argument, NULL, 'p' },
		{ "time", required_argument, NULL, 'T' },
		{ "json", no_argument, NULL, 'j' },
		{ 0 },
	};
	uint64_t time_ns = TIME_DEFAULT_NS;
	const char *provider = NULL;
	bool json = false;
	int c, status;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":", names, NULL)) != -1)
		switch (c) {
		case 'u':
			break;
		case 'p':
			provider = optarg;
			break;
		case 'T':
			if (tool_seconds(optarg, &time_ns))
				return tool_misused(self, "'%s' is not a number of seconds",
						    optarg);
			break;
		case 'j':
			json = true;
			break;
		default:
			return tool_bad_option(self, c, argv);
		}
	status = check_words(self, argc, argv);
	if (status)
		return status;
	/* The processes that measure inherit the environment. */
	if (provider && setenv("WEFT_PROVIDER", provider, 1))
		return tool_fail(self, "no memory");
	tool_catch_signals();
	return tune(self, time_ns, json);
}
