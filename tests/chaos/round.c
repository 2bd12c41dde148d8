/* SPDX-License-Identifier: BSD-2-Clause */
#include "round.h"

#include <inttypes.h>
#include <stdio.h>

#include "judge.h"
#include "tests/hosts/hosts.h"

#define TRAFFIC_NS (700 * MS)      /* without harm, in all */
#define HARMS_MOST 3
#define APART_NS (400 * MS)        /* most time between two harms */
#define BACK_NS (400 * MS)         /* most time until who was killed starts again */
#define STOP_LEAST_NS (50 * MS)
#define STOP_MOST_NS (5 * SECOND)  /* rarely: each doubling is as likely as the next */
#define GAP_US 1500                /* of a lane between two operations: leaves time to others */
/* Caches of libfabric's grow for some rounds, by 170 KiB at most in 15; a leak never stops. */
#define HEAP_CACHE_BYTES (512 * 1024)
#define HEAP_ROUND_BYTES (16 * 1024)

/* What is to be done when. */
struct plan {
	enum { PLAN_HARM, PLAN_THAW, PLAN_START } what;
	unsigned member;
	uint64_t at_ns;
};

struct round {
	struct crew *crew;
	uint64_t random;
	struct plan plans[3 * HARMS_MOST];
	size_t plan_count;
	struct files dead; /* what the killed had in /dev/shm */
	unsigned faults; /* beside reports */
	unsigned kills, stops, resets;
	uint64_t ended, failed, bytes, resumed;
	uint64_t heap_grown; /* of the member that grew most, since its first round */
};

uint64_t round_random(uint64_t seed)
{
	uint64_t x = (seed + 1) * 0x9e3779b97f4a7c15u;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31) ? x ^ (x >> 31) : 1;
}

uint64_t round_draw(uint64_t *random, uint64_t count)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return (*random >> 11) % count;
}

static void plan(struct round *r, int what, unsigned member, uint64_t in_ns)
{
	r->plans[r->plan_count++] = (struct plan){ what, member, now_ns() + in_ns };
}

/* Take the next plan.  False: there is none. */
static bool take(struct round *r, struct plan *first)
{
	size_t at = 0;

	if (!r->plan_count)
		return false;
	for (size_t i = 1; i < r->plan_count; i++)
		if (r->plans[i].at_ns < r->plans[at].at_ns)
			at = i;
	*first = r->plans[at];
	r->plans[at] = r->plans[--r->plan_count];
	return true;
}

static bool is_running(const struct round *r, unsigned i)
{
	return r->crew->members[i].pid && !r->crew->members[i].stopped;
}

static void open_node(struct round *r, unsigned i)
{
	if (!r->crew->members[i].pid)
		crew_start(r->crew, i);
	crew_open(r->crew, i, round_draw(&r->random, 2), round_draw(&r->random, UINT32_MAX),
		  GAP_US);
}

/* Harm. */

static void do_kill(struct round *r, unsigned i)
{
	crew_files(r->crew, i, &r->dead);
	crew_kill(r->crew, i);
	r->kills++;
	plan(r, PLAN_START, i, round_draw(&r->random, BACK_NS));
}

static void do_stop(struct round *r, unsigned i)
{
	uint64_t ns = STOP_LEAST_NS << round_draw(&r->random, 7);

	ns += round_draw(&r->random, ns);
	crew_stop(r->crew, i);
	r->stops++;
	plan(r, PLAN_THAW, i, ns < STOP_MOST_NS ? ns : STOP_MOST_NS);
}

static void do_reset(struct round *r, unsigned i, unsigned other)
{
	if (i == other || !is_running(r, other))
		return;
	r->resets += crew_reset(r->crew, i, other);
}

static void harm(struct round *r)
{
	unsigned i = (unsigned)round_draw(&r->random, r->crew->count);
	unsigned other = (unsigned)round_draw(&r->random, r->crew->count);
	unsigned kind = (unsigned)round_draw(&r->random, 3);

	if (!is_running(r, i))
		return;
	if (kind == 0)
		do_kill(r, i);
	else if (kind == 1)
		do_stop(r, i);
	else
		do_reset(r, i, other);
}

static void carry_out(struct round *r)
{
	struct plan p;

	while (take(r, &p)) {
		crew_sleep_until(p.at_ns);
		if (p.what == PLAN_HARM) {
			harm(r);
		} else if (p.what == PLAN_THAW) {
			crew_thaw(r->crew, p.member);
		} else {
			open_node(r, p.member);
			crew_hear(r->crew, p.member);
			crew_say(r->crew, p.member, "go");
			crew_hear(r->crew, p.member);
			crew_is_back(r->crew, p.member);
		}
	}
}

/* Account. */

static void fault(struct round *r, unsigned i, const char *what, uint64_t amount)
{
	printf("  member %u (%s): %s: %" PRIu64 "\n", i, r->crew->provider, what, amount);
	r->faults++;
}

static void check_closing(struct round *r, unsigned i)
{
	struct member *m = &r->crew->members[i];
	struct closing c;
	uint64_t grown;

	crew_hear_closing(r->crew, i, &c);
	r->ended += c.ended;
	r->failed += c.failed;
	r->bytes += c.bytes;
	r->resumed += c.resumed;
	if (c.fds)
		fault(r, i, "descriptors were left open", (uint64_t)c.fds);
	if (c.pool_bytes)
		fault(r, i, "bytes of the pool were left in use", c.pool_bytes);
	if (!c.ended)
		fault(r, i, "operations ended", c.ended);
	/* Its first round fills libfabric's own caches. */
	if (!m->rounds++)
		m->heap_bytes = c.heap_bytes;
	if (c.heap_bytes <= m->heap_bytes)
		return;
	grown = c.heap_bytes - m->heap_bytes;
	if (grown > r->heap_grown)
		r->heap_grown = grown;
	if (grown > HEAP_CACHE_BYTES + m->rounds * HEAP_ROUND_BYTES)
		fault(r, i, "bytes of the heap were left in use", grown);
}

static void check_files(struct round *r, const struct files *files, const char *whose)
{
	char name[96];
	size_t count = crew_files_left(files, name);

	if (!count)
		return;
	printf("  %s left %zu files in /dev/shm: %s, ...\n", whose, count, name);
	r->faults++;
}

static void close_all(struct round *r)
{
	struct files files = { .count = 0 };

	for (unsigned i = 0; i < r->crew->count; i++)
		crew_files(r->crew, i, &files);
	for (unsigned i = 0; i < r->crew->count; i++)
		crew_say(r->crew, i, "close");
	for (unsigned i = 0; i < r->crew->count; i++)
		check_closing(r, i);
	check_files(r, &files, "the living");
	check_files(r, &r->dead, "the dead");
}

bool round_play(struct crew *crew, unsigned number, uint64_t seed)
{
	struct round r = { .crew = crew, .random = round_random(seed) };
	uint64_t began = now_ns();
	struct verdict verdict;
	bool good;

	crew_forget_harms(crew);
	/*
	 * The default, or sooner: not so soon that a busy machine looks like a dead peer, nor a
	 * network where TCP waits a second before it dials again.
	 */
	crew->beat_ms = round_draw(&r.random, 4) && !hosts_count() ? 500 : 1000;
	crew->lost_ms = 3 * crew->beat_ms;
	for (unsigned i = 0; i < crew->count; i++)
		open_node(&r, i);
	for (unsigned i = 0; i < crew->count; i++)
		crew_hear(crew, i);
	crew_tell_all(crew, "go");
	for (uint64_t n = 1 + round_draw(&r.random, HARMS_MOST), at = 100 * MS; n; n--) {
		at += round_draw(&r.random, APART_NS);
		plan(&r, PLAN_HARM, 0, at);
	}
	carry_out(&r);
	crew_sleep_until(now_ns() + round_draw(&r.random, TRAFFIC_NS));
	crew_tell_all(crew, "drain");
	crew_tell_all(crew, "hush");
	close_all(&r);
	verdict = judge(crew);
	crew->all.resets += r.resets;
	crew->all.resumed += r.resumed;
	crew->all.ended += r.ended;
	crew->all.bytes += r.bytes;
	crew->all.baseless += verdict.baseless;
	crew->all.corrupted += verdict.corrupted;
	good = !verdict.broken && !r.faults;
	printf("round %u, %s, seed %" PRIu64 ": %u members, %u kills, %u stops, %u resets; %" PRIu64
	       " operations, %" PRIu64 " failed, %" PRIu64 " MiB, heap +%" PRIu64
	       " KiB, %.1f s: %s\n",
	       number, crew->provider, seed, crew->count, r.kills, r.stops, r.resets, r.ended,
	       r.failed, r.bytes >> 20, r.heap_grown >> 10, (double)(now_ns() - began) / SECOND,
	       good ? "ok" : "FAILED");
	fflush(stdout);
	return good;
}
