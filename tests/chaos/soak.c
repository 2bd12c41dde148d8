/* SPDX-License-Identifier: BSD-2-Clause */
#include "soak.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "judge.h"
#include "rotation.h"
#include "round.h"

#define MEMBERS 2u
#define CREWS_MAX 8

static void begin(struct crew *crew, const char *provider, uint64_t seed, long cores)
{
	uint64_t random = round_random(seed);

	crew_init(crew, MEMBERS);
	crew->provider = provider;
	crew->is_starved = true;
	for (unsigned i = 0; i < MEMBERS; i++) {
		crew_start(crew, i);
		crew_open(crew, i, i, round_draw(&random, UINT32_MAX), 0);
	}
	for (unsigned i = 0; i < MEMBERS; i++)
		crew_hear(crew, i);
	if (cores) {
		crew_say(crew, 0, "burn %ld", cores);
		crew_hear(crew, 0);
	}
	crew_tell_all(crew, "go");
}

static bool end(struct crew *crew)
{
	struct closing c, all = { 0 };
	struct verdict verdict;
	bool good;

	crew_tell_all(crew, "drain");
	crew_tell_all(crew, "hush");
	for (unsigned i = 0; i < MEMBERS; i++)
		crew_say(crew, i, "close");
	for (unsigned i = 0; i < MEMBERS; i++) {
		crew_hear_closing(crew, i, &c);
		all.ended += c.ended;
		all.failed += c.failed;
		all.bytes += c.bytes;
		all.lost += c.lost;
		all.resumed += c.resumed;
		all.pool_bytes += c.pool_bytes;
		all.fds += c.fds;
	}
	verdict = judge(crew);
	crew_fini(crew);
	good = !verdict.broken && !all.lost && !all.pool_bytes && !all.fds && all.ended;
	printf("%-8s %10" PRIu64 " operations, %" PRIu64 " cancelled or out of time, %u failed "
	       "without a reason, %" PRIu64 " GiB, %" PRIu64 " peers lost, %" PRIu64
	       " links resumed: %s\n",
	       crew->provider, all.ended, all.failed, verdict.broken, all.bytes >> 30, all.lost,
	       all.resumed, good ? "ok" : "FAILED");
	return good;
}

bool soak_run(const char *const *providers, unsigned count, unsigned seconds, uint64_t seed)
{
	static struct crew crews[CREWS_MAX];
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	bool good = true;

	for (unsigned i = 0; i < count; i++)
		begin(&crews[i], providers[i], seed + i, i ? 0 : cores);
	crew_sleep_until(now_ns() + seconds * SECOND);
	for (unsigned i = 0; i < count; i++)
		good &= rotation_ends_the_first(providers[i], crews[i].members[0].address);
	for (unsigned i = 0; i < count; i++)
		good &= end(&crews[i]);
	return good;
}
