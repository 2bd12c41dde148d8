/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random traffic under random faults.  Whatever happens: each operation ends
 * once, by its deadline and the stated bound; what was delivered is what was
 * sent; a buffer is left alone once its operation has ended; nothing leaks.
 *
 * test_random [FIRST [COUNT]] runs those seeds; a seed that fails is named, and
 * alone does the same again.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/fake/random.h"
#include "tests/sim/world.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define S WF_NS_PER_S
#define TRIPS 30
#define NODES 4
#define BUSY_NS (2 * S)   /* while traffic begins and faults happen */
#define LONG_NS (30 * S)  /* a deadline that is never met unless something hangs */
#define CANARY 0xee

/* Ended some time ago, if at all; and whether what ended was looked at. */
struct trip {
	enum { SEND_AND_RECEIVE, LONELY_SEND, LONELY_RECEIVE, CALL, PING, KINDS } kind;
	unsigned from, to;
	size_t bytes;
	uint64_t seed, begin_ns, limit_ns;
	bool begun;
	uint8_t *source, *target;
	struct wf_flight sent, received; /* calls and pings: sent */
	bool sent_seen, received_seen;
};

struct node {
	bool frozen, killed;
	uint64_t thaw_ns;   /* frozen until then; when it last thawed */
	uint64_t thawed_ns;
};

static struct trip trips[TRIPS];
static struct node nodes[NODES];
static unsigned node_count;
static struct {
	unsigned a, b;
	uint64_t heal_ns; /* 0: all are together */
} parted;
static enum wf_world_shape shape;
static bool harmless;     /* no fault of this run may cost anybody a peer */
static uint64_t quiet_ns; /* the bound of the shape of rail */
static uint64_t chaos;    /* the state of below() */

/* Of its own, so that what the library draws does not move it. */
static uint64_t below(uint64_t n)
{
	uint64_t z = chaos += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return (z ^ (z >> 31)) % n;
}

static bool in_100(unsigned chance)
{
	return below(100) < chance;
}

static size_t some_bytes(void)
{
	switch (below(6)) {
	case 0:
		return below(3);
	case 1:
	case 2:
		return below(300);
	case 3:
		return below(20 * KIB);
	case 4:
		return below(100 * KIB);
	default:
		return below(3 * MIB);
	}
}

/* As likely to fall into a handshake as into a pull or a long wait. */
static uint64_t soon(void)
{
	uint64_t ns = 20 * WF_NS_PER_US << below(16);

	return ns + below(ns);
}

/* Traffic. */

static void plan_trips(void)
{
	for (unsigned i = 0; i < TRIPS; i++) {
		struct trip *t = &trips[i];

		*t = (struct trip){
			.kind = below(10) < 5 ? SEND_AND_RECEIVE : below(KINDS),
			.from = (unsigned)below(node_count),
			.bytes = some_bytes(),
			.seed = below(UINT64_MAX),
			.begin_ns = wf_clock_now() + below(BUSY_NS),
			.limit_ns = in_100(50) ? LONG_NS : soon(),
		};
		t->to = (t->from + 1 + (unsigned)below(node_count - 1)) % node_count;
		if (t->kind == LONELY_SEND || t->kind == LONELY_RECEIVE)
			t->limit_ns = soon();
		t->source = malloc(t->bytes + 1);
		t->target = malloc(t->bytes + 1);
		assert_true(t->source && t->target);
		wf_world_fill(t->source, t->bytes, t->seed);
		memset(t->target, 0, t->bytes);
	}
}

static bool is_away(unsigned number)
{
	return nodes[number].killed || nodes[number].frozen;
}

static bool receives(const struct trip *t)
{
	return t->kind == SEND_AND_RECEIVE || t->kind == LONELY_RECEIVE;
}

/* Whoever is frozen begins nothing: a trip waits for both. */
static void begin(struct trip *t)
{
	uint64_t step = (uint64_t)(t - trips);

	t->begun = true;
	if (receives(t) && step % 2)
		wf_flight_receive(&t->received, t->to, t->from, step, t->target, t->bytes,
				  t->limit_ns);
	if (t->kind == SEND_AND_RECEIVE || t->kind == LONELY_SEND)
		wf_flight_send(&t->sent, t->from, t->to, step, t->source, t->bytes, t->limit_ns);
	if (receives(t) && step % 2 == 0)
		wf_flight_receive(&t->received, t->to, t->from, step, t->target, t->bytes,
				  t->limit_ns);
	if (t->kind == CALL)
		wf_flight_call(&t->sent, t->from, t->to, t->source, t->bytes, t->limit_ns);
	if (t->kind == PING)
		wf_flight_ping(&t->sent, t->from, t->to, t->limit_ns);
}

/* It ended in time; a node that was frozen could not do so before it thawed. */
static void check_end(const struct trip *t, const struct wf_flight *f, unsigned number)
{
	uint64_t due_ns = WF_MAX(f->started_ns + t->limit_ns, nodes[number].thawed_ns);

	assert_int_equal(f->outcomes, 1);
	if (f->ended_ns > due_ns + quiet_ns + 5 * MS)
		fail_msg("operation %d of node %u ended %.3f s late: %s", t->kind, number,
			 (double)(f->ended_ns - due_ns) / S, weft_op_message(f->op));
	if (f->status == WEFT_DEADLINE_EXCEEDED)
		assert_true(f->ended_ns >= f->started_ns + t->limit_ns);
	if (harmless && f->status != WEFT_OK && t->limit_ns == LONG_NS)
		fail_msg("operation %d of node %u, which nothing should harm: %s", t->kind, number,
			 weft_op_message(f->op));
}

static void look_at(struct trip *t)
{
	if (t->sent.outcomes && !t->sent_seen && !nodes[t->from].killed) {
		t->sent_seen = true;
		check_end(t, &t->sent, t->from);
		if (t->kind == CALL) {
			assert_int_equal(t->sent.closures, 1);
			assert_int_equal(t->sent.reply_right, t->sent.status == WEFT_OK);
		} else {
			assert_false(t->bytes && wf_fake_is_open(t->source, t->bytes));
			if (harmless || shape == WF_WORLD_CONNECTED)
				assert_false(t->bytes && wf_fake_is_read(t->source, t->bytes));
			memset(t->source, CANARY, t->bytes); /* nobody may read it any more */
		}
	}
	if (t->received.outcomes && !t->received_seen && !nodes[t->to].killed) {
		t->received_seen = true;
		check_end(t, &t->received, t->to);
		if (t->received.status == WEFT_OK)
			assert_true(wf_world_is_filled(t->target, t->bytes, t->seed));
		memset(t->target, CANARY, t->bytes); /* nor write that */
	}
}

static bool is_over(const struct trip *t)
{
	bool waits = t->begun && !nodes[t->from].killed && t->kind != LONELY_RECEIVE &&
		     !t->sent_seen;

	return !waits && !(t->begun && !nodes[t->to].killed && receives(t) && !t->received_seen);
}

/* Faults. */

static void freeze(uint64_t ns)
{
	unsigned number = (unsigned)below(node_count);

	if (is_away(number))
		return;
	nodes[number].frozen = true;
	nodes[number].thaw_ns = wf_clock_now() + ns;
	wf_world_freeze(number, true);
}

static void thaw(bool all)
{
	for (unsigned i = 0; i < node_count; i++) {
		if (!nodes[i].frozen || (!all && wf_clock_now() < nodes[i].thaw_ns))
			continue;
		nodes[i].frozen = false;
		nodes[i].thawed_ns = wf_clock_now();
		wf_world_freeze(i, false);
	}
}

/* Two don't hear each other for a while. */
static void part(uint64_t ns)
{
	parted.a = (unsigned)below(node_count);
	parted.b = (parted.a + 1) % node_count;
	parted.heal_ns = wf_clock_now() + ns;
	wf_world_part(parted.a, parted.b, true);
}

static void heal(bool now)
{
	if (!parted.heal_ns || (!now && wf_clock_now() < parted.heal_ns))
		return;
	parted.heal_ns = 0;
	wf_world_part(parted.a, parted.b, false);
}

static void kill_one(void)
{
	unsigned number = (unsigned)below(node_count);

	if (is_away(number))
		return;
	nodes[number].killed = true;
	wf_world_kill(number);
}

/* Faults of the fabric end when the next one begins. */
static void turn_knobs(void)
{
	struct wf_fake *fake = wf_fake_knobs();

	fake->eagain = fake->fail = fake->lose = fake->stick = 0;
	switch (below(6)) {
	case 0:
		fake->eagain = (unsigned)below(1001);
		break;
	case 1:
		fake->fail = 1 + (unsigned)below(100);
		break;
	case 2:
		fake->lose = (unsigned)below(300);
		break;
	case 3:
		fake->stick = harmless ? 0 : (unsigned)below(1001);
		break;
	default:
		break;
	}
}

static void do_harm(void)
{
	unsigned a = (unsigned)below(node_count), b = (unsigned)below(node_count);

	switch (below(10)) {
	case 0:
		wf_world_cut_door(a, b);
		break;
	case 4:
		/* Nothing can come between processes of one host. */
		if (!harmless && !parted.heal_ns && shape != WF_WORLD_SAME_HOST)
			part(below(S));
		break;
	case 1:
		freeze(below(150 * MS)); /* half of what makes it lost */
		break;
	case 2:
		if (!harmless)
			freeze(below(S));
		break;
	case 3:
		if (!harmless && in_100(20))
			kill_one();
		break;
	default:
		turn_knobs();
		break;
	}
}

/* A run. */

/* All that live find each other. */
static void meet(void)
{
	for (unsigned i = 0; i < node_count; i++)
		for (unsigned j = 0; j < node_count; j++)
			if (i != j && !nodes[i].killed && !nodes[j].killed)
				wf_world_connect(i, j);
}

static void open_world(uint64_t seed)
{
	struct wf_fake fake = { .seed = seed };

	chaos = seed;
	shape = (enum wf_world_shape)below(3);
	harmless = in_100(50);
	node_count = 2 + (unsigned)below(NODES - 1);
	quiet_ns = shape == WF_WORLD_CONNECTED ? 500 * MS : 2 * S;
	fake.delay_min_ns = below(20 * WF_NS_PER_US);
	fake.delay_max_ns = fake.delay_min_ns + (in_100(50) ? below(100 * WF_NS_PER_US) : below(5 * MS));
	fake.send_ns = in_100(30) ? below(300 * WF_NS_PER_US) : 0;
	fake.shuffle = in_100(50);
	fake.reorder = in_100(50);
	fake.twice = in_100(30) ? 100 : 0;
	fake.nobody = in_100(30) ? 100 : 0;
	fake.mr_mode = in_100(50) ? FI_MR_LOCAL | FI_MR_VIRT_ADDR : 0;
	/* A tenth of the usual patience, so that a run is short. */
	setenv("WEFT_HEARTBEAT", "100ms", 1);
	setenv("WEFT_LOST", "300ms", 1);
	if (in_100(30))
		setenv("WEFT_SLOTS", "24", 1);
	if (in_100(30))
		setenv("WEFT_PACK_BYTES", "64", 1);
	if (in_100(30))
		setenv("WEFT_CHUNK_BYTES", "64K", 1);
	memset(nodes, 0, sizeof(nodes));
	parted.heal_ns = 0;
	wf_world_open(shape, node_count, &fake);
	/* A rail that fails before a link was ever up is not tried again. */
	if (harmless)
		meet();
	plan_trips();
}

/* One step, and all that is due; whether something is under way still. */
static bool go_on(void)
{
	bool busy = false;

	thaw(false);
	heal(false);
	for (unsigned i = 0; i < TRIPS; i++) {
		struct trip *t = &trips[i];

		if (!t->begun && wf_clock_now() >= t->begin_ns && !is_away(t->from) &&
		    !is_away(t->to))
			begin(t);
		look_at(t);
		busy |= !is_over(t);
	}
	wf_world_step();
	return busy;
}

static void run_seed(uint64_t seed)
{
	uint64_t until_ns, harm_ns;

	open_world(seed);
	until_ns = wf_clock_now() + BUSY_NS;
	harm_ns = wf_clock_now() + below(500 * MS);
	while (wf_clock_now() < until_ns) {
		if (wf_clock_now() >= harm_ns) {
			do_harm();
			harm_ns = wf_clock_now() + below(200 * MS);
		}
		go_on();
	}
	thaw(true);
	heal(true);
	wf_fake_knobs()->eagain = wf_fake_knobs()->fail = 0;
	wf_fake_knobs()->lose = wf_fake_knobs()->stick = 0;
	until_ns += LONG_NS + 3 * S;
	while (go_on())
		if (wf_clock_now() > until_ns)
			fail_msg("an operation does not end");
	wf_world_pass(S); /* who was lost while it was frozen learns of it */
	meet();

	for (unsigned i = 0; i < node_count; i++)
		if (harmless)
			assert_int_equal(wf_world_count(i).peers_lost, 0);
	for (unsigned i = 0; i < TRIPS; i++) {
		struct trip *t = &trips[i];

		for (size_t j = 0; t->received_seen && j < t->bytes; j++)
			if (t->target[j] != CANARY)
				fail_msg("byte %zu was written after the end", j);
		wf_flight_free(&t->sent, 1);
		wf_flight_free(&t->received, 1);
	}
	assert_int_equal(wf_world_close(), 0);
	for (unsigned i = 0; i < TRIPS; i++) {
		free(trips[i].source);
		free(trips[i].target);
	}
}

static uint64_t first_seed = 1, seed_count = 50;

/* Seeds that have failed once; they run when none is asked for. */
static const uint64_t known[] = {
	1795263167, /* a control frame that a shared rail delivered twice */
};

/* A process of its own, so that a seed that crashes can be named. */
static unsigned try_seed(uint64_t seed)
{
	int status = 0;
	pid_t child;

	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		/* An assertion that fails leaves by main, with a status of its own. */
		run_seed(seed);
		exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (!status)
		return 0;
	print_error("seed %llu failed: test_random %llu 1 does it again\n",
		    (unsigned long long)seed, (unsigned long long)seed);
	return 1;
}

static void promises_hold_under_random_faults(void **state)
{
	unsigned failed = 0;

	(void)state;
	for (uint64_t seed = first_seed; seed < first_seed + seed_count; seed++)
		failed += try_seed(seed);
	assert_int_equal(failed, 0);
}

static void seeds_that_failed_once_do_not_again(void **state)
{
	unsigned failed = 0;

	(void)state;
	for (size_t i = 0; i < WF_COUNT(known); i++)
		failed += try_seed(known[i]);
	assert_int_equal(failed, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(promises_hold_under_random_faults),
		cmocka_unit_test(seeds_that_failed_once_do_not_again),
	};
	const struct CMUnitTest asked_for[] = { tests[0] };

	if (argc > 1)
		first_seed = strtoull(argv[1], NULL, 0);
	if (argc > 1)
		seed_count = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	if (argc > 1)
		return cmocka_run_group_tests(asked_for, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
