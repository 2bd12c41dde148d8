/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chaos: processes that talk to each other over real providers, and are
 * killed, stopped, restarted and cut off while they do.  This process
 * conducts; it starts itself again for each member.
 *
 * usage: chaos [OPTION...]
 *
 *   --provider NAME only this one
 *   --seed N        of what is done to whom; without it, 1
 *   --key FILE      members prove themselves by it, and all that they say is sealed
 *   --rekey MS      put a new key into that file every so many ms
 *   --certificates MS  members prove themselves by certificates, of an authority of which another
 *                   takes the place, one of three steps every so many ms
 *   --rounds N      N rounds of random harm, shared among the providers
 *   --timings N     N deaths of each kind and provider: how soon survivors know
 *   --soak SECONDS  full load on all cores: nobody is taken for dead
 *
 * Each member on a host of its own, with a network that may be a bad one:
 *
 *   --hosts N       so many, and as many members
 *   --loss PERCENT  of the packets that come to each host
 *   --delay MS      of each packet, one way
 *   --cuts MS       mean time from one to the next, so short that nobody may notice
 *
 * Without any of these: one round for each provider.  CHAOS_LOG in the
 * environment lets the nodes log.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "member.h"
#include "rotation.h"
#include "round.h"
#include "soak.h"
#include "timing.h"
#include "weather.h"
#include "tests/hosts/hosts.h"

static const char *const providers[] = { "shm", "tcp", "net", "sockets" };
#define PROVIDERS (sizeof(providers) / sizeof(providers[0]))
#define SKIPPED 77
#define RESETS_ENOUGH 3

static struct {
	const char *provider; /* NULL: all */
	uint64_t seed;
	unsigned rounds, timings, soak_seconds;
	const char *key; /* path of the members' key file; NULL: they have none */
	unsigned hosts, loss, delay_ms, cuts_ms, rekey_ms, certificates_ms;
} asked = { .seed = 1 };

/* Of all rounds. */
static struct {
	uint64_t ended, bytes, baseless, corrupted;
} all;

/* What this host has of what was asked for. */
static const char *offered[PROVIDERS];
static unsigned offered_count;

static bool is_offered(const char *provider)
{
	struct weft_node_options options = { .size = sizeof(options), .provider = provider };
	struct weft_info *info;
	bool used = false;

	if (weft_info_open(&options, &info)) {
		printf("skip: %s: %s\n", provider, weft_error());
		return false;
	}
	for (size_t i = 0; i < weft_info_count(info); i++) {
		struct weft_fabric fabric = { .size = sizeof(fabric) };

		used |= !weft_info_get(info, i, &fabric) && fabric.used;
	}
	weft_info_close(info);
	return used;
}

/* As many rounds with one crew. */
static unsigned play(const char *provider, unsigned first, unsigned rounds)
{
	struct crew crew;
	unsigned failed = 0;

	crew_init(&crew, asked.hosts ? asked.hosts : 3 + (asked.seed + first) % 2);
	crew.provider = provider;
	for (unsigned i = first; i < first + rounds; i++)
		failed += !round_play(&crew, i, asked.seed + i);
	crew_fini(&crew);
	all.ended += crew.all.ended;
	all.bytes += crew.all.bytes;
	all.baseless += crew.all.baseless;
	all.corrupted += crew.all.corrupted;
	/* One may hit a connection that two dials at once had made superfluous, not all. */
	if (crew.all.resets >= RESETS_ENOUGH && !crew.all.resumed) {
		printf("%s: %" PRIu64 " doors were reset, and no link resumed\n", provider,
		       crew.all.resets);
		failed++;
	}
	return failed;
}

static bool play_all(void)
{
	unsigned failed = 0, done = 0;

	for (unsigned i = 0; i < offered_count; i++) {
		unsigned rounds = asked.rounds * (i + 1) / offered_count - done;

		failed += play(offered[i], done, rounds);
		done += rounds;
	}
	printf("%u rounds, %u failed: %" PRIu64 " operations, %" PRIu64 " failed without a reason; %"
	       PRIu64 " MiB, %" PRIu64 " corrupted", done, failed, all.ended, all.baseless,
	       all.bytes >> 20, all.corrupted);
	if (asked.cuts_ms)
		printf("; %u cuts", weather_cuts());
	printf("\n");
	return !failed;
}

/* This process is on one of the hosts from then on. */
static bool make_hosts(unsigned count, const char *what)
{
	const struct hosts_plan plan = {
		.count = count, .networks = 1, .delay_ms = asked.delay_ms,
	};
	char reason[HOSTS_REASON_BYTES];
	bool made = hosts_make(&plan, reason);

	for (unsigned i = 0; made && asked.loss && i < count; i++)
		made = hosts_lose(i, asked.loss, reason);
	if (!made)
		printf("skip: %s: %s\n", what, reason);
	return made;
}

/* No cable leads through memory. */
static bool has_cable(const char *provider)
{
	return strcmp(provider, "shm") != 0;
}

static bool cut_cables(void)
{
	bool good = true;

	if (!asked.hosts && !make_hosts(TIMING_MEMBERS, "cut cable"))
		return true;
	for (unsigned i = 0; i < offered_count; i++)
		if (has_cable(offered[i]))
			good &= timing_cut(offered[i], asked.timings, asked.seed);
	return good;
}

static bool measure_all(void)
{
	bool good = true;

	printf("from a peer's end to the last failed operation of a survivor:\n");
	printf("%-8s %-8s %4s %4s %12s %12s\n", "provider", "end", "seen", "not", "median",
	       "maximum");
	for (unsigned i = 0; i < offered_count; i++) {
		good &= timing_kill(offered[i], asked.timings, asked.seed);
		good &= timing_stop(offered[i], asked.timings, asked.seed);
	}
	return cut_cables() && good;
}

static int usage(void)
{
	fprintf(stderr, "usage: chaos [--provider NAME] [--seed N] [--rounds N] [--timings N] "
			"[--soak SECONDS] [--key FILE [--rekey MS] | --certificates MS] "
			"[--hosts N [--loss PERCENT] [--delay MS] [--cuts MS]]\n");
	return 2;
}

static const struct {
	const char *name;
	unsigned *to;
} numbers[] = {
	{ "--rounds", &asked.rounds }, { "--timings", &asked.timings },
	{ "--soak", &asked.soak_seconds }, { "--hosts", &asked.hosts },
	{ "--loss", &asked.loss }, { "--delay", &asked.delay_ms }, { "--cuts", &asked.cuts_ms },
	{ "--rekey", &asked.rekey_ms }, { "--certificates", &asked.certificates_ms },
};

static bool understand_number(const char *name, const char *value)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!strcmp(name, numbers[i].name)) {
			*numbers[i].to = (unsigned)atoi(value);
			return true;
		}
	return false;
}

static bool understand(int argc, char **argv)
{
	for (int i = 1; i < argc; i += 2) {
		const char *value = argv[i + 1];

		if (i + 1 == argc)
			return false;
		if (!strcmp(argv[i], "--provider"))
			asked.provider = value;
		else if (!strcmp(argv[i], "--seed"))
			asked.seed = strtoull(value, NULL, 10);
		else if (!strcmp(argv[i], "--key"))
			asked.key = value;
		else if (!understand_number(argv[i], value))
			return false;
	}
	return (!asked.hosts || (asked.hosts > 1 && asked.hosts <= CREW_MAX)) &&
	       (asked.key || !asked.rekey_ms) && !(asked.key && asked.certificates_ms) &&
	       (asked.hosts || !(asked.loss || asked.delay_ms || asked.cuts_ms));
}

int main(int argc, char **argv)
{
	bool good = true;

	if (argc == 2 && !strcmp(argv[1], "--member"))
		return member_run();
	signal(SIGPIPE, SIG_IGN);
	if (!understand(argc, argv))
		return usage();
	if (asked.hosts && !make_hosts(asked.hosts, "hosts"))
		return SKIPPED;
	for (size_t i = 0; i < PROVIDERS; i++)
		if ((!asked.provider || !strcmp(asked.provider, providers[i])) &&
		    (!asked.hosts || has_cable(providers[i])) && is_offered(providers[i]))
			offered[offered_count++] = providers[i];
	if (!offered_count)
		return SKIPPED;
	if (!asked.rounds && !asked.timings && !asked.soak_seconds)
		asked.rounds = offered_count;
	printf("seed %llu\n", (unsigned long long)asked.seed);
	if (asked.key)
		setenv("WEFT_KEY_FILE", asked.key, 1);
	if (asked.rekey_ms)
		rotation_of_key(asked.key, asked.rekey_ms);
	if (asked.certificates_ms)
		rotation_of_certificates(asked.certificates_ms);
	if (asked.cuts_ms)
		weather_begin(asked.cuts_ms, asked.seed);
	if (asked.rounds)
		good &= play_all();
	if (asked.soak_seconds)
		good &= soak_run(offered, offered_count, asked.soak_seconds, asked.seed);
	if (asked.timings)
		good &= measure_all();
	rotation_end();
	return good ? 0 : 1;
}
