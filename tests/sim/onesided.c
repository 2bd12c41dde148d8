/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/sim/onesided.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/node.h"
#include "tests/sim/chance.h"
#include "tests/sim/checker.h"
#include "tests/sim/faults.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define WINDOWS_MAX 4
#define ACCESSES_MAX 48
#define BLOCKS_MAX 40            /* more than a put offers at a time */
#define LIST_MAX 700             /* blocks of some puts and gets: a list in several records */
#define LISTS_MAX 4
#define HEARTBEAT_NS (100 * MS)  /* as the run sets it; a manual node may sleep until the next */
#define WORD sizeof(uint64_t)
#define GAP 24                   /* most bytes between two blocks here */
#define SLACK_NS (8 * MS)        /* as the checker's */
#define LOSS_NS WF_NS_PER_S      /* as the checker's */
#define LATE_NS WF_NS_PER_S      /* until the last note is there, after the last operation */
#define RETRY_NS MS              /* after memory was missing */

static struct wf_onesided_window windows[WINDOWS_MAX];
static unsigned window_count;
static struct wf_onesided_access accesses[ACCESSES_MAX];
static unsigned access_count;
static struct weft_block blocks[ACCESSES_MAX * BLOCKS_MAX + LISTS_MAX * LIST_MAX];
static unsigned block_count, list_count;
static bool without_sums; /* bodies have no checksums, unless an operation asks for one */
static const struct wf_checker_config *checks;
static uint64_t busy_until_ns; /* end of the faults */
static uint64_t over_ns;       /* when no operation was left; 0: some is */
static bool idle;              /* no note comes any more */

struct wf_onesided_access *wf_onesided_accesses(unsigned *count)
{
	*count = access_count;
	return accesses;
}

/* The plan. */

static size_t some_window_bytes(void)
{
	size_t most = wf_chance_in_100(60) ? 20 * KIB : wf_chance_in_100(95) ? 300 * KIB : 3 * MIB;

	return (64 + wf_chance_below(most)) / WORD * WORD;
}

static void plan_window(const struct wf_traffic_config *config)
{
	struct wf_onesided_window *w = &windows[window_count++];
	uint64_t span_ns = config->until_ns - config->from_ns;

	*w = (struct wf_onesided_window){
		.owner = (unsigned)wf_chance_below(config->nodes),
		.open_ns = config->from_ns + wf_chance_below(span_ns / 2),
		.bytes = some_window_bytes(),
		.seed = wf_chance_below(UINT64_MAX),
		.written = wf_chance_in_100(70),
		.registered = wf_chance_in_100(25),
	};
	if (wf_chance_in_100(35))
		w->close_ns = w->open_ns + wf_chance_below(span_ns);
}

/* Blocks that do not overlap in the window, one in each of as many equal parts of it. */
static void plan_blocks(struct wf_onesided_access *a)
{
	size_t unit = a->puts ? WORD : 1;
	size_t part = a->window->bytes / a->count / WORD * WORD, local = 0;
	bool backwards = wf_chance_in_100(30), whole = wf_chance_in_100(20);

	for (unsigned i = 0; i < a->count; i++) {
		struct weft_block *block = &a->blocks[i];
		unsigned at = backwards ? a->count - 1 - i : i;
		size_t drawn = wf_traffic_some_bytes();
		size_t bytes = whole ? part : WF_MIN(drawn, part) / unit * unit;
		size_t skip = wf_chance_below((part - bytes) / unit + 1) * unit;

		local += whole ? 0 : wf_chance_below(GAP);
		*block = (struct weft_block){
			.local = (void *)(uintptr_t)local, /* made a pointer at the start */
			.remote = at * part + skip,
			.bytes = bytes,
		};
		local += bytes;
	}
	a->buffer_bytes = local + wf_chance_below(GAP);
	/* An operation without a byte is a mistake of the program's, unless it is a note alone. */
	for (unsigned i = 0; i < a->count; i++)
		if (a->blocks[i].bytes)
			return;
	a->blocks[0].bytes = WORD;
	a->blocks[0].remote = a->blocks[0].remote / WORD * WORD;
	if (a->blocks[0].remote == a->window->bytes)
		a->blocks[0].remote -= WORD;
	for (unsigned i = 1; i < a->count; i++)
		a->blocks[i].local = (uint8_t *)a->blocks[i].local + WORD;
	a->buffer_bytes += WORD;
}

/* With checksums each of many blocks would be asked for alone, which takes long. */
static bool may_have_list(const struct wf_onesided_access *a)
{
	return list_count < LISTS_MAX && without_sums && !a->summed &&
	       a->window->bytes / (2 * WORD) >= LIST_MAX;
}

static unsigned some_count(const struct wf_onesided_access *a)
{
	unsigned most = (unsigned)WF_MIN(a->window->bytes / (2 * WORD), (size_t)BLOCKS_MAX);

	if (wf_chance_in_100(10) && may_have_list(a)) {
		list_count++;
		return LIST_MAX - (unsigned)wf_chance_below(LIST_MAX / 2);
	}
	if (wf_chance_in_100(40))
		return 1;
	return 1 + (unsigned)wf_chance_below(wf_chance_in_100(80) ? WF_MIN(6u, most) : most);
}

static void plan_access(const struct wf_traffic_config *config)
{
	struct wf_onesided_access *a = &accesses[access_count++];
	struct wf_onesided_window *w = &windows[wf_chance_below(window_count)];
	uint64_t span_ns = config->until_ns - w->open_ns;

	*a = (struct wf_onesided_access){
		.window = w,
		.puts = w->written && wf_chance_in_100(60),
		.node = (w->owner + 1 + (unsigned)wf_chance_below(config->nodes - 1)) %
			config->nodes,
		.begin_ns = w->open_ns + wf_chance_below(span_ns),
		.limit_ns = wf_chance_in_100(70) ? WF_TRAFFIC_LONG_NS : wf_traffic_soon_ns(),
		.seed = wf_chance_below(UINT64_MAX),
		.blocks = &blocks[block_count],
		.noted = wf_chance_in_100(50),
		.summed = wf_chance_in_100(10),
		.detached = wf_chance_in_100(2),
		.registered = wf_chance_in_100(30),
		.gives_up_window = wf_chance_in_100(10),
	};
	/* Several begin at once, and share a loan. */
	if (access_count > 1 && wf_chance_in_100(40) && accesses[access_count - 2].window == w)
		a->begin_ns = accesses[access_count - 2].begin_ns;
	if (wf_chance_in_100(10))
		a->cancel_ns = a->begin_ns + wf_traffic_soon_ns();
	if (a->noted)
		a->note_bytes = wf_chance_below(wf_chance_in_100(90) ? 100
								     : WEFT_NOTE_BYTES_MAX + 1);
	a->count = some_count(a);
	/* A note alone. */
	if (a->puts && a->noted && wf_chance_in_100(10))
		a->count = 0;
	block_count += a->count;
	if (a->count)
		plan_blocks(a);
}

/* Let no node want checksums: a window is lent as a whole, and a list of blocks is one body, then. */
static void forget_sums(unsigned nodes)
{
	assert_int_equal(setenv("WEFT_CHECKSUM", "no", 1), 0);
	for (unsigned i = 0; i < nodes; i++) {
		struct weft_node *node = wf_world_node(i);

		node->terms.checksum = false;
		for (unsigned k = 0; k < node->worker_count; k++)
			node->workers[k].engine.options.checksum = 0;
	}
}

void wf_onesided_plan(const struct wf_traffic_config *config, const struct wf_checker_config *given)
{
	unsigned count = wf_chance_in_100(50) ? 6 + (unsigned)wf_chance_below(ACCESSES_MAX - 5) : 0;
	unsigned most = count ? 1 + (unsigned)wf_chance_below(WINDOWS_MAX) : 0;

	window_count = access_count = block_count = list_count = 0;
	over_ns = 0;
	idle = false;
	busy_until_ns = config->until_ns;
	checks = given;
	without_sums = count && wf_chance_in_100(60) && !wf_faults_has(WF_FAULT_FLIP);
	if (without_sums)
		forget_sums(config->nodes);
	while (window_count < most)
		plan_window(config);
	while (access_count < count)
		plan_access(config);
}

/* Patterns. */

static uint64_t word_of(uint64_t seed, uint64_t at)
{
	uint64_t z = at * 0x9e3779b97f4a7c15 + (seed ^ 0x5851f42d4c957f2d) * 0xbf58476d1ce4e5b9;

	return (z ^ z >> 29) * 0x94d049bb133111eb;
}

/* Write the pattern of @seed as it is at the @bytes from @from on. */
static void fill(uint8_t *to, uint64_t seed, uint64_t from, uint64_t bytes)
{
	for (uint64_t at = from; at < from + bytes;) {
		uint64_t word = word_of(seed, at / WORD), skip = at % WORD;
		uint64_t part = WF_MIN(WORD - skip, from + bytes - at);

		memcpy(to + (at - from), (uint8_t *)&word + skip, part);
		at += part;
	}
}

static bool is_gone(const struct wf_onesided_window *w)
{
	return wf_faults_is_gone(w->owner) || w->life != wf_faults_life(w->owner);
}

/* The bytes of @w as peers have left them. */
static const uint8_t *content_of(const struct wf_onesided_window *w)
{
	return w->copy ? w->copy : w->memory;
}

/* May somebody move bytes of an operation that has ended?  The stated exception, as the checker's. */
static bool is_quiet_run(void)
{
	return checks->harmless || checks->connected;
}

static bool covers(const struct wf_onesided_access *a, uint64_t word)
{
	for (unsigned i = 0; i < a->count; i++)
		if (word * WORD >= a->blocks[i].remote &&
		    word * WORD < a->blocks[i].remote + a->blocks[i].bytes)
			return true;
	return false;
}

static bool has_ended_well(const struct wf_onesided_access *a)
{
	return a->flight.outcomes && a->flight.status == WEFT_OK;
}

/* Has a put overwritten word @word for certain before @at_ns, after @put had ended?  NULL: ever. */
static bool is_overwritten(const struct wf_onesided_window *w, const struct wf_onesided_access *put,
			   uint64_t word, uint64_t at_ns)
{
	if (put && !put->flight.outcomes)
		return false;
	for (const struct wf_onesided_access *m = accesses; m < accesses + access_count; m++)
		if (m != put && m->puts && m->window == w && has_ended_well(m) &&
		    m->flight.ended_ns < at_ns &&
		    (!put || m->flight.started_ns > put->flight.ended_ns) && covers(m, word))
			return true;
	return false;
}

/* May the bytes of word @word be those of a put that has damaged or lost them? */
static bool may_be_spoilt(const struct wf_onesided_window *w, uint64_t word, const uint8_t *bytes,
			  uint64_t count)
{
	static const uint8_t let_go[WORD] = { 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee, 0xee };
	bool late = !memcmp(bytes, let_go, count) && !is_quiet_run();

	if (!late && !checks->tally->injected[WF_FAULT_FLIP])
		return false;
	for (const struct wf_onesided_access *m = accesses; m < accesses + access_count; m++)
		if (m->puts && m->window == w && m->begun && !has_ended_well(m) && covers(m, word))
			return true;
	return false;
}

static bool matches(uint64_t seed, uint64_t word, const uint8_t *bytes, uint64_t skip,
		    uint64_t count)
{
	uint64_t want = word_of(seed, word);

	return !memcmp(bytes, (uint8_t *)&want + skip, count);
}

/*
 * May the @count bytes at @bytes have been in word @word of @w, after @skip bytes of it, at some
 * time since @since_ns?
 */
static bool may_be(const struct wf_onesided_window *w, uint64_t word, const uint8_t *bytes,
		   uint64_t skip, uint64_t count, uint64_t since_ns)
{
	if (matches(w->seed, word, bytes, skip, count) && !is_overwritten(w, NULL, word, since_ns))
		return true;
	for (const struct wf_onesided_access *m = accesses; m < accesses + access_count; m++)
		if (m->puts && m->window == w && m->begun && covers(m, word) &&
		    matches(m->seed, word, bytes, skip, count) &&
		    !is_overwritten(w, m, word, since_ns))
			return true;
	return may_be_spoilt(w, word, bytes, count);
}

/* As may_be(); two reads may have met in the word, and a put may have written it between them. */
static bool may_be_read(const struct wf_onesided_window *w, uint64_t word, const uint8_t *bytes,
			uint64_t skip, uint64_t count, uint64_t since_ns)
{
	if (may_be(w, word, bytes, skip, count, since_ns))
		return true;
	for (uint64_t k = 1; k < count; k++)
		if (may_be(w, word, bytes, skip, k, since_ns) &&
		    may_be(w, word, bytes + k, skip + k, count - k, since_ns))
			return true;
	return false;
}

/* For people who look for a fault: whose the bytes of word @word are, and who wrote there. */
static void show_word(const struct wf_onesided_window *w, uint64_t word, const uint8_t *bytes,
		      uint64_t skip, uint64_t count)
{
	print_error("  word %llu%s", (unsigned long long)word,
		    matches(w->seed, word, bytes, skip, count) ? " is the window's own\n" : ":\n");
	for (const struct wf_onesided_access *m = accesses; m < accesses + access_count; m++)
		if (m->puts && m->window == w && m->begun && covers(m, word))
			print_error("  put %u, from %.6f to %.6f %s%s\n", (unsigned)(m - accesses),
				    (double)m->flight.started_ns / 1e9,
				    (double)m->flight.ended_ns / 1e9,
				    m->flight.outcomes ? weft_status_name(m->flight.status) : "",
				    matches(m->seed, word, bytes, skip, count) ? ", has written it" : "");
}

/* Checks. */

static void wrong(const struct wf_onesided_access *a, const char *what)
{
	const struct wf_flight *f = &a->flight;
	unsigned number = (unsigned)(a - accesses);

	print_error("  window of n%u, %zu bytes, opened %d, closed %d\n", a->window->owner,
		    a->window->bytes, a->window->opened, a->window->closed);
	print_error("  %u blocks, note %d of %zu, summed %d, began %.6f, limit %.6f, cancel %.6f", a->count,
		    a->noted, a->note_bytes, a->summed, (double)f->started_ns / 1e9,
		    (double)a->limit_ns / 1e9, (double)a->cancel_ns / 1e9);
	if (f->outcomes)
		print_error(", ended %.6f %s", (double)f->ended_ns / 1e9,
			    weft_status_name(f->status));
	print_error("\n");
	for (unsigned i = 0; getenv("WORLD_LOG") && i < 2; i++)
		if (!wf_faults_is_gone(i ? a->window->owner : a->node))
			(void)weft_dump(wf_world_node(i ? a->window->owner : a->node), stderr);
	fail_msg("%s %u of node %u %s: %s", a->puts ? "put" : "get", number, a->node, what,
		 f->op ? weft_op_message(f->op) : "(detached)");
}

/* The blocks of get @a have what was in the window while it ran, and nothing beside them changed. */
static void check_got(const struct wf_onesided_access *a)
{
	const struct wf_onesided_window *w = a->window;
	size_t at = 0;

	for (unsigned i = 0; i < a->count; i++) {
		const struct weft_block *block = &a->blocks[i];
		size_t begin = (size_t)((uint8_t *)block->local - a->buffer);
		uint64_t from = block->remote, end = from + block->bytes;

		if (at < begin && !wf_world_all_are(a->buffer + at, begin - at, WF_TRAFFIC_CANARY))
			wrong(a, "has written beside its blocks");
		at = WF_MAX(at, begin);
		while (from < end) {
			uint64_t skip = from % WORD, part = WF_MIN(WORD - skip, end - from);

			if (!may_be_read(w, from / WORD, a->buffer + at, skip, part,
					 a->flight.started_ns)) {
				show_word(w, from / WORD, a->buffer + at, skip, part);
				wrong(a, "read what was not in the window");
			}
			from += part;
			at += part;
		}
	}
	if (!wf_world_all_are(a->buffer + at, a->buffer_bytes - at, WF_TRAFFIC_CANARY))
		wrong(a, "has written beside its blocks");
}

/* Put @a, all of whose bytes are there, is in the window, but for what others wrote since it began. */
static void check_put(const struct wf_onesided_access *a)
{
	const uint8_t *content = content_of(a->window);

	for (unsigned i = 0; i < a->count; i++) {
		const struct weft_block *block = &a->blocks[i];

		for (uint64_t at = block->remote; at < block->remote + block->bytes; at += WORD) {
			if (matches(a->seed, at / WORD, content + at, 0, WORD))
				continue;
			if (!may_be(a->window, at / WORD, content + at, 0, WORD, UINT64_MAX)) {
				show_word(a->window, at / WORD, content + at, 0, WORD);
				wrong(a, "is not in the window");
			}
			/* A word that was there before the put is not there after it. */
			if (matches(a->window->seed, at / WORD, content + at, 0, WORD))
				wrong(a, "ended well before it was in the window");
		}
	}
}

/* Note which words of put @a, which has failed, are in the window. */
static void note_landed(struct wf_onesided_access *a)
{
	const uint8_t *content = content_of(a->window);
	uint64_t words = a->window->bytes / WORD;

	a->landed = calloc(1, words / 8 + 1);
	assert_non_null(a->landed);
	for (uint64_t word = 0; word < words; word++)
		if (matches(a->seed, word, content + word * WORD, 0, WORD))
			a->landed[word / 8] |= (uint8_t)(1u << word % 8);
}

static void check_landed(const struct wf_onesided_access *a)
{
	const uint8_t *content = content_of(a->window);

	for (uint64_t word = 0; word < a->window->bytes / WORD; word++)
		if (matches(a->seed, word, content + word * WORD, 0, WORD) &&
		    !(a->landed[word / 8] & 1u << word % 8))
			wrong(a, "has changed the window after its end");
}

static bool overlap(const struct weft_block *a, const struct weft_block *b)
{
	return a->remote < b->remote + b->bytes && b->remote < a->remote + a->bytes;
}

/* Did a put write where @a did or read, while @a ran?  Then a checksum of @a says nothing. */
static bool was_disturbed(const struct wf_onesided_access *a)
{
	for (const struct wf_onesided_access *m = accesses; m < accesses + access_count; m++) {
		if (m == a || !m->puts || !m->begun || m->window != a->window ||
		    m->flight.started_ns > a->flight.ended_ns ||
		    (m->flight.outcomes && m->flight.ended_ns < a->flight.started_ns))
			continue;
		for (unsigned i = 0; i < a->count; i++)
			for (unsigned k = 0; k < m->count; k++)
				if (overlap(&a->blocks[i], &m->blocks[k]))
					return true;
	}
	return false;
}

/* Could nothing but the run's faults keep @a from going well? */
static bool is_plain(const struct wf_onesided_access *a)
{
	return !a->cancel_ns && a->limit_ns == WF_TRAFFIC_LONG_NS && !a->window->close_ns;
}

static void check_end(const struct wf_onesided_access *a)
{
	const struct wf_flight *f = &a->flight;
	uint64_t deadline_ns = f->started_ns + a->limit_ns, due_ns = deadline_ns;

	if (a->bereft_ns)
		due_ns = WF_MIN(due_ns,
				WF_MAX(a->bereft_ns, wf_faults_thawed_ns(a->node)) + LOSS_NS);
	due_ns = WF_MAX(due_ns, wf_faults_thawed_ns(a->node));
	if (f->outcomes != 1)
		wrong(a, "ended more than once");
	if (f->ended_ns > due_ns + checks->quiet_ns + SLACK_NS)
		wrong(a, "ended too late");
	if (f->status == WEFT_DEADLINE_EXCEEDED && f->ended_ns < deadline_ns)
		wrong(a, "missed its deadline before it came");
	if (f->status == WEFT_CANCELLED && !a->cancelled && checks->harmless)
		wrong(a, "was cancelled by nobody");
	if (f->status == WEFT_DATA_LOSS && was_disturbed(a))
		return;
	if (f->status == WEFT_DATA_LOSS &&
	    (checks->sealed || !checks->tally->injected[WF_FAULT_FLIP]))
		wrong(a, "missed bytes that nobody touched");
	if (f->status == WEFT_PERMISSION_DENIED || f->status == WEFT_OUT_OF_RANGE)
		wrong(a, "was refused what it may do");
	if (checks->harmless && is_plain(a) && f->status != WEFT_OK)
		wrong(a, "should have gone well");
}

/* Register memory of node @number.  Without memory, or a rail's consent, it stays as it is. */
static struct weft_region *register_memory(unsigned number, void *memory, size_t bytes)
{
	struct weft_region *region = NULL;
	int err = weft_register(wf_world_node(number), memory, bytes, &region);

	if (err && !wf_faults_has(WF_FAULT_MEMORY) && !wf_faults_has(WF_FAULT_REGISTER))
		fail_msg("memory can't be registered: %s", weft_error());
	return err ? NULL : region;
}

/* Let the memory of an operation or window that is over go. */
static void unregister(struct weft_region **region)
{
	uint64_t begin_ns = wf_clock_now();

	assert_int_equal(weft_unregister(*region), 0);
	if (wf_clock_now() - begin_ns > HEARTBEAT_NS + SLACK_NS)
		fail_msg("memory that nobody uses stays registered");
	*region = NULL;
}

/* Check the end of @a, whose memory is the test's again. */
static void look_at(struct wf_onesided_access *a)
{
	const struct wf_flight *f = &a->flight;

	a->seen = true;
	a->executed = f->op ? weft_op_executed(f->op) : WEFT_EXECUTED_MAYBE;
	check_end(a);
	/* Registered memory is open for as long as that. */
	if (a->puts && a->buffer_bytes) {
		if (!a->region && wf_fake_is_open(a->buffer, a->buffer_bytes))
			wrong(a, "left its memory open to others");
		if (is_quiet_run() && wf_fake_is_read(a->buffer, a->buffer_bytes))
			wrong(a, "ended while somebody read its memory");
	}
	memset(a->buffer, WF_TRAFFIC_CANARY, a->buffer_bytes);
	weft_op_free(f->op);
	a->flight.op = NULL;
	if (a->region && !wf_faults_is_gone(a->node) && a->life == wf_faults_life(a->node) &&
	    !wf_faults_is_away(a->node))
		unregister(&a->region);
}

void wf_onesided_look(void)
{
	for (struct wf_onesided_access *a = accesses; a < accesses + access_count; a++)
		if (a->flight.outcomes && !a->seen)
			look_at(a);
}

static void ended(struct weft_op *op, void *arg)
{
	struct wf_onesided_access *a = arg;
	struct wf_flight *f = &a->flight;

	assert_true(!f->op || f->op == op);
	f->outcomes++;
	f->status = weft_op_status(op);
	f->ended_ns = wf_clock_now();
	if (f->status != WEFT_OK && a->puts)
		note_landed(a);
	if (f->status == WEFT_OK && a->puts)
		check_put(a);
	if (f->status == WEFT_OK && !a->puts)
		check_got(a);
}

/* Notes. */

static void note_of(const struct wf_onesided_access *a, uint8_t *bytes)
{
	fill(bytes, a->seed + 1, 0, a->note_bytes);
}

/* The note of an operation that had ended before @a began comes before the note of @a. */
static void check_note_order(const struct wf_onesided_access *a)
{
	for (const struct wf_onesided_access *b = accesses; b < accesses + access_count; b++)
		if (b->noted && b->window == a->window && b->node == a->node && b->life == a->life &&
		    has_ended_well(b) && b->flight.ended_ns < a->flight.started_ns && !b->taken)
			wrong(a, "has a note that overtook an earlier one");
}

static void check_note(const struct wf_onesided_window *w, const struct weft_op *op)
{
	static uint8_t want[WEFT_NOTE_BYTES_MAX + WORD];
	const struct weft_note *note = weft_op_note(op);
	struct wf_onesided_access *a;

	assert_non_null(note);
	if (note->number >= access_count)
		fail_msg("a note has number %u", note->number);
	a = &accesses[note->number];
	note_of(a, want);
	if (!a->begun || !a->noted || a->window != w || note->of_get == a->puts ||
	    note->bytes != a->note_bytes || memcmp(note->data, want, note->bytes))
		wrong(a, "has another note");
	if (a->taken++)
		wrong(a, "has a note that comes twice");
	if (a->puts)
		check_put(a);
	else if (!a->flight.outcomes)
		check_got(a);
	check_note_order(a);
	checks->tally->notes++;
}

static void next_ended(struct weft_op *op, void *arg)
{
	struct wf_flight *f = arg;
	struct wf_onesided_window *w = windows;

	while (f < w->nexts || f >= w->nexts + WF_ONESIDED_NEXTS)
		w++;
	f->outcomes++;
	w->next_busy[f - w->nexts] = false;
	if (weft_op_status(op) == WEFT_OK)
		check_note(w, op);
	wf_flight_free(f, 1); /* the run may have given up its handle before */
}

/* Take notes again.  Returns when to try again. */
static uint64_t run_nexts(struct wf_onesided_window *w, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	if (!w->opened || w->closed || is_gone(w) || wf_faults_is_away(w->owner))
		return next;
	for (unsigned i = 0; i < WF_ONESIDED_NEXTS; i++) {
		struct weft_op_options options;
		struct wf_flight *f = &w->nexts[i];

		if (w->next_busy[i] && idle && f->op)
			weft_cancel(f->op);
		if (w->next_busy[i] || idle)
			continue;
		options = wf_flight_begin(f, 5 * MS << 4 * i);
		options.done = next_ended;
		w->next_busy[i] = !weft_window_next(w->window, &options, &f->op);
		if (!w->next_busy[i])
			next = now + RETRY_NS;
	}
	return next;
}

/* Windows. */

static void open_window(struct wf_onesided_window *w)
{
	int err;

	w->memory = malloc(w->bytes);
	assert_non_null(w->memory);
	fill(w->memory, w->seed, 0, w->bytes);
	err = weft_window_open(wf_world_node(w->owner), w->memory, w->bytes,
			       w->written ? WEFT_WINDOW_READ | WEFT_WINDOW_WRITE : WEFT_WINDOW_READ,
			       &w->window);
	if (err && err != -ENOMEM)
		fail_msg("a window can't be opened: %s", weft_error());
	w->refused = err != 0;
	w->opened = !err;
	if (err)
		return;
	if (w->registered)
		w->region = register_memory(w->owner, w->memory, w->bytes);
	w->life = wf_faults_life(w->owner);
	w->descriptor_bytes = sizeof(w->descriptor);
	assert_int_equal(weft_window_describe(w->window, w->descriptor, &w->descriptor_bytes), 0);
}

/* The memory of @w is the test's again. */
static void check_closed(struct wf_onesided_window *w)
{
	if (!w->region && wf_fake_is_open(w->memory, w->bytes))
		fail_msg("a window of node %u has closed, and is open to others", w->owner);
	if (is_quiet_run() && wf_fake_is_read(w->memory, w->bytes))
		fail_msg("a window of node %u has closed, and somebody reads it", w->owner);
	w->closed = true;
	w->copy = malloc(w->bytes);
	assert_non_null(w->copy);
	memcpy(w->copy, w->memory, w->bytes);
	memset(w->memory, WF_TRAFFIC_CANARY, w->bytes);
}

static void check_puts_count(const struct wf_onesided_window *w)
{
	uint64_t counted = weft_window_puts(w->window), least = 0, most = 0;

	for (const struct wf_onesided_access *a = accesses; a < accesses + access_count; a++) {
		if (!a->puts || a->window != w || !a->begun || a->refused)
			continue;
		least += has_ended_well(a);
		most += !a->seen || a->executed != WEFT_EXECUTED_NO;
	}
	if (counted < least || counted > most)
		fail_msg("a window of node %u counts %llu puts, and there were %llu to %llu", w->owner,
			 (unsigned long long)counted, (unsigned long long)least,
			 (unsigned long long)most);
}

static void close_window(struct wf_onesided_window *w)
{
	uint64_t begin_ns = wf_clock_now();

	check_puts_count(w);
	if (weft_window_close(w->window))
		fail_msg("a window can't be closed: %s", weft_error());
	if (wf_clock_now() - begin_ns > checks->quiet_ns + SLACK_NS)
		fail_msg("a window of node %u took %llu ms to close", w->owner,
			 (unsigned long long)((wf_clock_now() - begin_ns) / MS));
	for (unsigned i = 0; i < WF_ONESIDED_NEXTS; i++)
		if (w->next_busy[i])
			fail_msg("a window of node %u has closed, and somebody takes its notes",
				 w->owner);
	check_closed(w);
	if (w->region)
		unregister(&w->region);
}

static uint64_t run_window(struct wf_onesided_window *w, uint64_t now)
{
	bool begins = !w->opened && !w->refused;

	if (begins && w->open_ns > now)
		return w->open_ns;
	if (begins && wf_faults_is_gone(w->owner))
		w->refused = true;
	else if (begins && !wf_faults_is_away(w->owner))
		open_window(w);
	if (!w->opened || w->closed)
		return UINT64_MAX;
	/* The node of the window has closed, and not died. */
	if (is_gone(w)) {
		if (!wf_world_node(w->owner) && w->life == wf_faults_life(w->owner))
			check_closed(w);
		return UINT64_MAX;
	}
	if (!w->close_ns)
		return UINT64_MAX;
	if (w->close_ns > now)
		return w->close_ns;
	if (!wf_faults_is_away(w->owner))
		close_window(w);
	return UINT64_MAX;
}

/* Returns the window of @a as its node knows it.  NULL: no memory. */
static struct weft_remote *remote_of(const struct wf_onesided_access *a)
{
	struct wf_onesided_window *w = a->window;
	struct weft_remote **remote = &w->remotes[a->node];
	int err;

	if (*remote && w->remote_lives[a->node] == wf_faults_life(a->node))
		return *remote;
	*remote = NULL;
	err = weft_window_import(wf_world_peer(a->node, w->owner), w->descriptor,
				 w->descriptor_bytes, remote);
	if (err && err != -ENOMEM)
		fail_msg("a window can't be imported: %s", weft_error());
	w->remote_lives[a->node] = wf_faults_life(a->node);
	return *remote;
}

static void close_remote(struct wf_onesided_window *w, unsigned node)
{
	if (w->remotes[node] && !wf_faults_is_gone(node) &&
	    w->remote_lives[node] == wf_faults_life(node))
		weft_remote_close(w->remotes[node]);
	w->remotes[node] = NULL;
}

/* Gets and puts. */

static void make_buffer(struct wf_onesided_access *a)
{
	a->buffer = malloc(a->buffer_bytes + 1);
	assert_non_null(a->buffer);
	memset(a->buffer, WF_TRAFFIC_CANARY, a->buffer_bytes);
	for (unsigned i = 0; i < a->count; i++) {
		struct weft_block *block = &a->blocks[i];

		block->local = a->buffer + (uintptr_t)block->local;
		if (a->puts)
			fill(block->local, a->seed, block->remote, block->bytes);
	}
}

static void begin(struct wf_onesided_access *a)
{
	uint8_t note[WEFT_NOTE_BYTES_MAX + WORD];
	struct weft_remote *remote = remote_of(a);
	struct weft_access_options options = {
		.size = sizeof(options), .op = wf_flight_begin(&a->flight, a->limit_ns),
	};
	int err;

	a->begun = true;
	a->life = wf_faults_life(a->node);
	a->refused = !remote;
	if (a->refused)
		return;
	make_buffer(a);
	if (a->registered && a->buffer_bytes)
		a->region = register_memory(a->node, a->buffer, a->buffer_bytes);
	options.op.done = ended;
	options.op.arg = a;
	options.op.flags = a->summed ? WEFT_CHECKSUM : 0;
	if (a->noted) {
		note_of(a, note);
		options.flags = WEFT_NOTE;
		options.number = (uint32_t)(a - accesses);
		options.note = a->note_bytes ? note : NULL;
		options.note_bytes = a->note_bytes;
	}
	err = (a->puts ? weft_put : weft_get)(remote, a->blocks, a->count, &options, &a->flight.op);
	if (err && err != -ENOMEM && err != -ENOBUFS)
		fail_msg("a get or put can't be begun: %s", weft_error());
	a->refused = err != 0;
	if (err && a->region)
		unregister(&a->region);
	if (!err && a->detached) {
		weft_op_free(a->flight.op);
		a->flight.op = NULL;
	}
	if (a->gives_up_window)
		close_remote(a->window, a->node);
}

bool wf_onesided_is_live(const struct wf_onesided_access *a)
{
	return a->begun && !a->refused && !a->flight.outcomes &&
	       a->life == wf_faults_life(a->node) && !wf_faults_is_gone(a->node);
}

/* Is there nothing left to do about @a? */
static bool is_over(const struct wf_onesided_access *a)
{
	if (a->begun)
		return !wf_onesided_is_live(a);
	return a->window->refused || wf_faults_is_gone(a->node);
}

static uint64_t run_access(struct wf_onesided_access *a, uint64_t now)
{
	if (!a->begun) {
		if (a->begin_ns > now)
			return a->begin_ns;
		if (a->window->opened && !wf_faults_is_away(a->node))
			begin(a);
		return UINT64_MAX;
	}
	if (!wf_onesided_is_live(a) || wf_faults_is_away(a->node))
		return UINT64_MAX;
	if (now >= a->flight.started_ns + a->limit_ns && !a->hit_deadline) {
		a->hit_deadline = true;
		if (a->flight.op)
			wf_faults_strike_op(WF_FAULT_DEADLINE, a->flight.op);
	}
	if (!a->cancel_ns || a->cancelled || !a->flight.op)
		return UINT64_MAX;
	if (a->cancel_ns > now)
		return a->cancel_ns;
	a->cancelled = true;
	wf_faults_strike_op(WF_FAULT_CANCEL, a->flight.op);
	weft_cancel(a->flight.op);
	return UINT64_MAX;
}

static bool are_over(void)
{
	for (unsigned i = 0; i < access_count; i++)
		if (!is_over(&accesses[i]))
			return false;
	return true;
}

uint64_t wf_onesided_run(uint64_t now)
{
	uint64_t next = UINT64_MAX, until_ns;

	for (unsigned i = 0; i < access_count; i++) {
		until_ns = run_access(&accesses[i], now);
		next = WF_MIN(next, until_ns);
	}
	for (unsigned i = 0; i < window_count; i++) {
		until_ns = run_nexts(&windows[i], now);
		next = WF_MIN(next, until_ns);
		until_ns = run_window(&windows[i], now);
		next = WF_MIN(next, until_ns);
	}
	return next;
}

bool wf_onesided_is_over(void)
{
	bool busy = false;

	if (!are_over()) {
		over_ns = 0;
		return false;
	}
	if (!over_ns)
		over_ns = wf_clock_now();
	if (window_count && wf_clock_now() < WF_MAX(over_ns, busy_until_ns) + LATE_NS)
		return false;
	idle = true;
	for (unsigned i = 0; i < window_count; i++)
		for (unsigned k = 0; k < WF_ONESIDED_NEXTS; k++)
			busy |= windows[i].next_busy[k] && !is_gone(&windows[i]);
	return !busy;
}

void wf_onesided_bereave(unsigned number)
{
	for (struct wf_onesided_access *a = accesses; a < accesses + access_count; a++)
		if (a->begun && a->window->owner == number && wf_onesided_is_live(a) &&
		    wf_traffic_is_linked(a->node, number))
			a->bereft_ns = wf_clock_now();
}

/* The end of the run. */

void wf_onesided_close(void)
{
	for (struct wf_onesided_window *w = windows; w < windows + window_count; w++)
		for (unsigned node = 0; node < WF_WORLD_NODES_MAX; node++)
			if (w->remotes[node])
				close_remote(w, node);
	for (struct wf_onesided_window *w = windows; w < windows + window_count; w++)
		if (w->opened && !w->closed && !is_gone(w))
			close_window(w);
}

/* Check that each word of @w is its own, or of a put that nobody has overwritten. */
static void finish_window(const struct wf_onesided_window *w)
{
	const uint8_t *content = content_of(w);

	for (uint64_t word = 0; word < w->bytes / WORD; word++)
		if (!may_be(w, word, content + word * WORD, 0, WORD, UINT64_MAX))
			fail_msg("word %llu of a window of node %u is nobody's: %llx",
				 (unsigned long long)word, w->owner,
				 (unsigned long long)*(const uint64_t *)(const void *)(content + word * WORD));
	if (w->copy && is_quiet_run() && !wf_world_all_are(w->memory, w->bytes, WF_TRAFFIC_CANARY))
		fail_msg("a byte of a closed window of node %u was written", w->owner);
}

/* The note of an operation that ended well has come, unless the window was closed before. */
static void finish_note(const struct wf_onesided_access *a)
{
	const struct wf_onesided_window *w = a->window;

	if (a->noted && has_ended_well(a) && !a->taken && !w->close_ns && !is_gone(w))
		wrong(a, "ended well, and its note did not come");
}

void wf_onesided_finish(void)
{
	struct wf_tally *tally = checks->tally;

	for (const struct wf_onesided_window *w = windows; w < windows + window_count; w++)
		if (w->opened && (w->closed || !is_gone(w)))
			finish_window(w);
	for (const struct wf_onesided_access *a = accesses; a < accesses + access_count; a++) {
		if (a->flight.outcomes > 1)
			wrong(a, "ended again");
		if (a->seen && !wf_world_all_are(a->buffer, a->buffer_bytes, WF_TRAFFIC_CANARY))
			wrong(a, "had its memory written after its end");
		if (a->landed && is_quiet_run() && a->window->closed)
			check_landed(a);
		finish_note(a);
		tally->operations += a->begun && !a->refused;
		tally->ended_well += a->seen && a->flight.status == WEFT_OK;
		tally->gets += a->begun && !a->refused && !a->puts;
		tally->puts += a->begun && !a->refused && a->puts;
	}
}

void wf_onesided_release(void)
{
	for (unsigned i = 0; i < access_count; i++) {
		weft_op_free(accesses[i].flight.op);
		accesses[i].flight.op = NULL;
	}
	for (unsigned i = 0; i < window_count; i++)
		wf_flight_free(windows[i].nexts, WF_ONESIDED_NEXTS);
}

void wf_onesided_free(void)
{
	for (unsigned i = 0; i < access_count; i++) {
		free(accesses[i].buffer);
		free(accesses[i].landed);
	}
	for (unsigned i = 0; i < window_count; i++) {
		free(windows[i].memory);
		free(windows[i].copy);
	}
	window_count = access_count = block_count = 0;
}
