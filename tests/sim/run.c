/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/sim/run.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/node.h"
#include "tests/sim/casting.h"
#include "tests/sim/chance.h"
#include "tests/sim/checker.h"
#include "tests/sim/faults.h"
#include "tests/sim/fusing.h"
#include "tests/sim/keys.h"
#include "tests/sim/nonces.h"
#include "tests/sim/nth.h"
#include "tests/sim/onesided.h"
#include "tests/sim/pushing.h"
#include "tests/sim/staying.h"
#include "tests/sim/traffic.h"
#include "util/clock.h"
#include "wire/frame.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define BUSY_NS (800 * MS)  /* while traffic begins and faults happen */
#define MEET_NS (5 * S)     /* until all that live have found each other */
#define SETTLE_NS (3 * S)   /* after it: the lost learn of it, and reads that nobody waits for are ended */

static struct {
	enum wf_world_shape shape;
	unsigned nodes;
	unsigned stranger;                 /* his number; 0: there is none */
	bool harmless, checksum, limited;
	const char *security;              /* NULL: there are no keys */
	uint64_t quiet_ns;
	uint64_t chunk_bytes, eager_bytes; /* 0: as the provider's row says */
} run;

/* Mostly few, for what happens among many happens among few, and sooner. */
static unsigned some_nodes(void)
{
	if (wf_chance_in_100(85))
		return 2 + (unsigned)wf_chance_below(3);
	return 5 + (unsigned)wf_chance_below(wf_chance_in_100(80) ? 4 : 16);
}

static void set(const char *name, const char *value)
{
	assert_int_equal(setenv(name, value, 1), 0);
}

static void draw_settings(unsigned workers)
{
	char pool[16];

	/* A tenth of the usual patience, so that a run is short. */
	set("WEFT_HEARTBEAT", "100ms");
	set("WEFT_LOST", "300ms");
	/*
	 * Each worker has its part: four slabs, for which sizes compete.  Where all must go well
	 * each size has its own, for a message may hold copies of some attachments, and wait for
	 * that of another.
	 */
	(void)snprintf(pool, sizeof(pool), "%uM", (run.harmless ? 32 : 8) * workers);
	set("WEFT_POOL_BYTES", pool);
	if (wf_chance_in_100(30) && run.nodes <= 4)
		set("WEFT_SLOTS", "24");
	if (wf_chance_in_100(30))
		set("WEFT_PACK_BYTES", "64");
	if (wf_chance_in_100(20))
		set("WEFT_WINDOW", "4");
	run.checksum = wf_chance_in_100(85);
	set("WEFT_CHECKSUM", run.checksum ? "yes" : "no");
	run.chunk_bytes = wf_chance_in_100(50) ? 1 * KIB << wf_chance_below(7) : 0;
	run.eager_bytes = wf_chance_in_100(50) ? 16 << wf_chance_below(8) : 0;
}

/* In every fourth run; not drawn, so that the rest of a run is as it was without them. */
static void set_limits(uint64_t seed)
{
	const struct weft_serve_options limits = { .calls_max = 2, .calls_per_peer = 1,
						   .queue_max = 1000 };

	run.limited = seed % 4 == 3;
	wf_world_set_limits(run.limited ? &limits : NULL);
}

/* Room for all that comes again, for little of it, and for none; not drawn, as above. */
static void set_cache(uint64_t seed)
{
	static const char *const bytes[] = { "256M", "64K", "0" };

	set("WEFT_CACHED_BYTES", bytes[seed % 3]);
}

static struct wf_fake draw_fake(uint64_t seed)
{
	struct wf_fake fake = { .seed = seed };

	fake.delay_min_ns = wf_chance_below(20 * WF_NS_PER_US);
	fake.delay_max_ns = fake.delay_min_ns + (wf_chance_in_100(50) ?
		wf_chance_below(100 * WF_NS_PER_US) : wf_chance_below(5 * MS));
	fake.send_ns = wf_chance_in_100(30) ? wf_chance_below(300 * WF_NS_PER_US) : 0;
	fake.mr_mode = wf_chance_in_100(50) ? FI_MR_LOCAL | FI_MR_VIRT_ADDR : 0;
	/* Where a chunk takes a millisecond the longest messages would take longer than they have. */
	if (run.chunk_bytes && (fake.delay_max_ns > MS || run.shape == WF_WORLD_SAME_HOST))
		run.chunk_bytes = WF_MAX(run.chunk_bytes, 8 * KIB);
	return fake;
}

/* Shorter than the options allow, so that small bodies are pulled, in many chunks. */
static void shrink(unsigned number)
{
	struct weft_node *node = wf_world_node(number);

	for (unsigned i = 0; i < node->worker_count; i++) {
		struct wf_options *o = &node->workers[i].engine.options;

		if (run.chunk_bytes)
			o->chunk_bytes = run.chunk_bytes;
		if (run.eager_bytes)
			o->eager_bytes = run.eager_bytes;
	}
}

static bool is_connected(void)
{
	return run.shape == WF_WORLD_CONNECTED || run.shape == WF_WORLD_LANES;
}

/* Are frames sealed, which those within one host are not? */
static bool are_frames_sealed(void)
{
	return run.security && run.shape != WF_WORLD_SAME_HOST;
}

/* Are bodies sealed as well? */
static bool is_sealed(void)
{
	return are_frames_sealed() && !strcmp(run.security, "sealed");
}

/* A message leaves a node: it is a frame, which must be sealed. */
static void expect_sealed(const void *bytes, size_t count)
{
	struct wf_frame frame;

	assert_int_equal(wf_frame_get(bytes, count, &frame), 0);
	if (!frame.sealed)
		fail_msg("a frame leaves in clear");
}

/* What a node needs in this run once it is open. */
static void prepare(unsigned number)
{
	shrink(number);
	for (unsigned i = 0; i < run.nodes; i++)
		if (i != number)
			(void)wf_world_stub(number, i);
	/* Known by address, to be looked at; but nobody dials it. */
	if (run.stranger)
		(void)wf_world_peer(number, run.stranger);
}

static void plan(struct wf_tally *tally)
{
	static struct wf_checker_config checks;
	uint64_t now = wf_clock_now();
	struct wf_faults_config faults = {
		.nodes = run.nodes,
		.from_ns = now,
		.until_ns = now + BUSY_NS,
		.chance = wf_chance_in_100(40) ? 15 : wf_chance_in_100(80) ? 40 : 70,
		.harmless = run.harmless,
		.same_host = run.shape == WF_WORLD_SAME_HOST,
		.checksum = run.checksum || is_sealed(), /* a tag finds a wrong byte, too */
		.lanes = run.shape == WF_WORLD_LANES,
		.tally = tally,
		.restarted = prepare,
	};
	struct wf_traffic_config traffic = {
		.nodes = run.nodes, .from_ns = now, .until_ns = now + BUSY_NS,
	};

	wf_traffic_plan(&traffic);
	wf_faults_plan(&faults);
	wf_traffic_plan_streams(&traffic);
	wf_traffic_plan_cargo(&traffic);
	/* Where each handler has a place that its own calls may wait for, trees stand still. */
	if (!run.limited)
		wf_traffic_plan_trees(&traffic);
	wf_faults_plan_drain();
	wf_faults_plan_lane();
	if (run.security)
		wf_faults_plan_rekey();
	if (are_frames_sealed()) {
		wf_faults_plan_tamper();
		wf_fake_knobs()->sent = expect_sealed;
	}
	wf_traffic_plan_meddlers(&traffic);
	checks = (struct wf_checker_config){
		.connected = is_connected(),
		.harmless = run.harmless,
		.sealed = is_sealed(),
		.tally = tally,
		.quiet_ns = run.quiet_ns,
		.healed_ns = run.harmless ? 0 : now + BUSY_NS,
	};
	wf_onesided_plan(&traffic, &checks);
	wf_staying_plan(&traffic, &checks);
	wf_casting_plan(&traffic, &checks);
	wf_fusing_plan(&traffic, &checks);
	wf_pushing_plan(&traffic, &checks);
	wf_checker_start(&checks);
}

static uint64_t preference;

/* Most operations of a run have the default.  A generator apart: all else is as it was without. */
static uint32_t draw_priority(void)
{
	preference = preference * 6364136223846793005u + 1442695040888963407u;
	return preference >> 62 ? 0 : (uint32_t)(preference >> 60 & WEFT_PRIORITY_MAX);
}

static void open_world(uint64_t seed, unsigned nodes, unsigned workers)
{
	struct wf_fake fake;

	wf_chance_seed(seed);
	run.shape = (enum wf_world_shape)wf_chance_below(3);
	run.harmless = wf_chance_in_100(40);
	run.nodes = some_nodes();
	run.stranger = 0;
	if (nodes)
		run.nodes = nodes;
	/* Seeds keep what they were before there were lanes, but for these. */
	if (run.shape == WF_WORLD_CONNECTED && seed % 7 == 3)
		run.shape = WF_WORLD_LANES;
	run.quiet_ns = is_connected() ? 500 * MS : 2 * S;
	wf_fake_clock_reset();
	draw_settings(workers);
	/* Bodies go over both only when they are long. */
	if (run.shape == WF_WORLD_LANES)
		run.chunk_bytes = run.eager_bytes = 4 * KIB;
	fake = draw_fake(seed);
	wf_world_set_workers(workers);
	set_limits(seed);
	set_cache(seed);
	/* Keys in every third run, in half of those with a stranger; not drawn, as above. */
	run.security = seed % 6 != 1 && seed % 6 != 2 ? NULL : seed % 12 == 2 ? "keyed" : "sealed";
	wf_keys_use(run.security);
	wf_world_open(run.shape, run.nodes, &fake);
	preference = seed;
	if (seed % 2)
		wf_world_prefer(draw_priority);
	for (unsigned i = 0; i < run.nodes; i++)
		prepare(i);
}

/* In every third run: not drawn, so that the rest of a run is as it was without him. */
static struct wf_flight lies[WF_WORLD_NODES_MAX];
static unsigned lie_count;

/*
 * A stranger who says to all that he is one of them, before they have met that one.  He
 * gets nothing of what is sent to it, and keeps nobody from it.
 */
static void let_in_stranger(uint64_t seed)
{
	unsigned whom = (unsigned)(seed / 3 % run.nodes);

	lie_count = 0;
	if (seed % 3 != 1 || run.nodes == WF_WORLD_NODES_MAX)
		return;
	run.stranger = wf_world_add();
	wf_world_lie(run.stranger, whom, 1 + (unsigned)(seed / 3 % 3));
	for (unsigned i = 0; i < run.nodes; i++) {
		(void)wf_world_peer(i, run.stranger);
		if (i != whom)
			wf_flight_ping(&lies[lie_count++], run.stranger, i, S);
	}
	wf_world_pass(20 * MS);
}

/* One step, at most to @until_ns. */
static void go_on(uint64_t until_ns, bool busy)
{
	uint64_t next_ns = wf_traffic_run();

	next_ns = WF_MIN(next_ns, until_ns);
	if (busy)
		next_ns = WF_MIN(next_ns, wf_faults_run());
	wf_world_leap(next_ns);
	wf_checker_look();
}

/* For people who look for a fault. */
static bool show_nodes(void)
{
	for (unsigned i = 0; getenv("WORLD_LOG") && i < run.nodes; i++)
		if (!wf_faults_is_gone(i))
			(void)weft_dump(wf_world_node(i), stderr);
	return false;
}

/* All that live find each other. */
static void meet(void)
{
	static struct wf_flight flights[WF_WORLD_NODES_MAX * WF_WORLD_NODES_MAX];
	unsigned from[WF_COUNT(flights)];
	size_t count = 0;

	for (unsigned i = 0; i < run.nodes; i++) {
		for (unsigned j = 0; j < run.nodes; j++) {
			if (i == j || wf_faults_is_gone(i) || wf_faults_is_gone(j))
				continue;
			from[count] = i;
			wf_flight_ping(&flights[count++], i, j, MEET_NS);
		}
	}
	wf_flight_land(flights, count, 2 * MEET_NS);
	for (size_t i = 0; i < count; i++)
		if (flights[i].status != WEFT_OK && !show_nodes())
			fail_msg("node %u can't reach one that lives: %s", from[i],
				 weft_op_message(flights[i].op));
	wf_flight_free(flights, count);
}

static unsigned count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	(void)closedir(dir);
	return count;
}

static void add_pairs(struct wf_tally *tally)
{
	for (unsigned i = 0; i < WF_FAULTS; i++) {
		tally->seeds[i] = tally->injected[i] > 0;
		for (unsigned j = 0; j < WF_FAULTS; j++)
			tally->pairs[i][j] = tally->injected[i] && tally->injected[j];
	}
}

void wf_run_seed(uint64_t seed, unsigned nodes, unsigned workers, struct wf_tally *sum)
{
	static struct wf_tally tally;
	unsigned descriptors = count_descriptors();
	size_t blocks = wf_nth_blocks();
	uint64_t until_ns;

	memset(&tally, 0, sizeof(tally));
	open_world(seed, nodes, workers);
	let_in_stranger(seed);
	plan(&tally);
	until_ns = wf_clock_now() + BUSY_NS;
	while (wf_clock_now() < until_ns)
		go_on(until_ns, true);
	wf_faults_heal();
	until_ns += 2 * WF_TRAFFIC_LONG_NS + 5 * S; /* what a call brought is received after it */
	while (!wf_traffic_is_over()) {
		if (wf_clock_now() > until_ns && !show_nodes())
			fail_msg("an operation does not end");
		go_on(until_ns, false);
	}
	wf_checker_let_go();
	until_ns = wf_clock_now() + SETTLE_NS;
	while (wf_clock_now() < until_ns)
		wf_world_leap(until_ns);
	meet();
	wf_traffic_end_steps();
	wf_onesided_close();
	wf_pushing_close();
	wf_world_pass(100 * MS); /* what was dropped is told */
	wf_checker_finish(run.nodes);
	/* With keys there are none, either, where nobody has met anybody. */
	if (!are_frames_sealed())
		assert_int_equal(wf_nonces_used(), 0);
	wf_traffic_release();
	wf_flight_land(lies, lie_count, S);
	wf_flight_free(lies, lie_count);
	assert_int_equal(wf_world_close(), 0);
	wf_nonces_reset();
	wf_traffic_free();
	assert_int_equal(count_descriptors(), descriptors);
	assert_int_equal(wf_nth_blocks(), blocks);
	tally.runs = 1;
	add_pairs(&tally);
	wf_tally_add(sum, &tally);
}
