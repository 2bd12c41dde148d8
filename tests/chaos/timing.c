/* SPDX-License-Identifier: BSD-2-Clause */
#include "timing.h"

#include <stdio.h>
#include <stdlib.h>

#include "judge.h"
#include "round.h"
#include "tests/hosts/hosts.h"

#define VICTIMS (TIMING_MEMBERS - 1u)
#define SAMPLES_MAX 256
#define WARM_NS SECOND         /* of traffic before the first death */
#define SPREAD_NS SECOND       /* deaths come within this: a heartbeat, so at each phase of it */
#define KILL_LIMIT_MS 1000
#define FAR_KILL_LIMIT_MS 2500 /* where no kernel tells: weft(7) has 1.5 s */
#define LOST_MS 3000           /* WEFT_LOST's default */
#define GAP_US 1500

struct samples {
	double ms[SAMPLES_MAX];
	unsigned count, missing, limit_ms;
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static bool print(const char *provider, const char *what, struct samples *s)
{
	double median, most;
	bool good;

	if (!s->count) {
		printf("%-8s %-8s nobody noticed anything: FAILED\n", provider, what);
		return false;
	}
	qsort(s->ms, s->count, sizeof(s->ms[0]), compare);
	median = s->ms[s->count / 2];
	most = s->ms[s->count - 1];
	good = most < s->limit_ms && !s->missing;
	printf("%-8s %-8s %4u %4u %9.0f ms %9.0f ms  below %u ms: %s\n", provider, what, s->count,
	       s->missing, median, most, s->limit_ms, good ? "ok" : "FAILED");
	fflush(stdout);
	return good;
}

/* What member @i saw of the end of @peer at @from_ns. */
static void add(struct samples *s, const struct crew *crew, unsigned i, unsigned peer,
		uint64_t from_ns)
{
	uint64_t first_ns, last_ns;
	bool seen = judge_last_failed(crew, i, peer, from_ns, &first_ns, &last_ns);
	double ms = seen ? (double)(last_ns - from_ns) / MS : 0;

	if (!seen)
		s->missing++;
	else if (s->count < SAMPLES_MAX)
		s->ms[s->count++] = ms;
	if (seen && ms < s->limit_ms)
		return;
	printf("  for want of %u, which was harmed at %.3f, ", peer, (double)from_ns / SECOND);
	if (seen)
		printf("member %u saw the first fail after %.0f ms and the last after %.0f ms\n", i,
		       (double)(first_ns - from_ns) / MS, ms);
	else
		printf("nothing of member %u failed\n", i);
	judge_print(crew, i, peer, last_ns);
}

static void open_crew(struct crew *crew, const char *provider)
{
	crew_init(crew, 1 + VICTIMS);
	crew->provider = provider;
}

static void begin(struct crew *crew, uint64_t seed)
{
	uint64_t random = round_random(seed);

	for (unsigned i = 0; i < crew->count; i++) {
		crew_start(crew, i);
		crew_open(crew, i, round_draw(&random, 2), round_draw(&random, UINT32_MAX), GAP_US);
	}
	for (unsigned i = 0; i < crew->count; i++)
		crew_hear(crew, i);
	crew_tell_all(crew, "go");
	/* One that nobody has met has the time of a dial to come. */
	crew_tell_all(crew, "meet");
	crew_sleep_until(now_ns() + WARM_NS);
}

/* Everybody goes; what they leave has been read. */
static void end(struct crew *crew)
{
	for (unsigned i = 0; i < crew->count; i++)
		if (crew->members[i].pid)
			crew_kill(crew, i);
	crew_fini(crew);
}

/* The survivor is member 0; the others die one by one. */
static void let_die(struct crew *crew, uint64_t seed, bool is_kill, uint64_t wait_ns)
{
	uint64_t random = round_random(~seed), at[VICTIMS], first = now_ns();

	for (unsigned v = 0; v < VICTIMS; v++)
		at[v] = round_draw(&random, SPREAD_NS / VICTIMS) + v * SPREAD_NS / VICTIMS;
	for (unsigned v = 0; v < VICTIMS; v++) {
		crew_sleep_until(first + at[v]);
		if (is_kill)
			crew_kill(crew, 1 + v);
		else
			crew_stop(crew, 1 + v);
	}
	crew_sleep_until(now_ns() + wait_ns);
}

static bool measure(const char *provider, unsigned least, uint64_t seed, bool is_kill)
{
	unsigned kill_ms = hosts_count() ? FAR_KILL_LIMIT_MS : KILL_LIMIT_MS;
	unsigned limit_ms = is_kill ? kill_ms : LOST_MS + 1000;
	struct samples samples = { .limit_ms = limit_ms };
	struct crew crew;

	for (unsigned done = 0; done < least; done += VICTIMS) {
		open_crew(&crew, provider);
		begin(&crew, seed + done);
		let_die(&crew, seed + done, is_kill, (limit_ms + 1000) * MS);
		for (unsigned h = 0; h < crew.harm_count; h++)
			add(&samples, &crew, 0, crew.harms[h].member, crew.harms[h].from_ns);
		end(&crew);
	}
	return print(provider, is_kill ? "SIGKILL" : "SIGSTOP", &samples);
}

bool timing_kill(const char *provider, unsigned least, uint64_t seed)
{
	return measure(provider, least, seed, true);
}

bool timing_stop(const char *provider, unsigned least, uint64_t seed)
{
	return measure(provider, least, seed, false);
}

bool timing_cut(const char *provider, unsigned least, uint64_t seed)
{
	struct samples samples = { .limit_ms = LOST_MS + 1000 };
	struct crew crew;
	uint64_t cut_ns, random = round_random(seed);

	/* Both ends of each of three connections see the cut. */
	for (unsigned done = 0; done < least; done += 2 * VICTIMS) {
		open_crew(&crew, provider);
		begin(&crew, seed + done);
		crew_sleep_until(now_ns() + round_draw(&random, SPREAD_NS));
		cut_ns = now_ns();
		hosts_cut(0, 0);
		crew_sleep_until(cut_ns + (LOST_MS + 2000) * MS);
		for (unsigned v = 1; v <= VICTIMS; v++) {
			add(&samples, &crew, 0, v, cut_ns);
			add(&samples, &crew, v, 0, cut_ns);
		}
		end(&crew);
		hosts_mend(0, 0);
	}
	return print(provider, "cut", &samples);
}
