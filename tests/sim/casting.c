/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/sim/casting.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/chance.h"
#include "tests/sim/checker.h"
#include "tests/sim/faults.h"
#include "util/clock.h"

#define MS WF_NS_PER_MS
#define BROADCASTS_MAX 3
#define MEMBERS_MAX (BROADCASTS_MAX * (WF_WORLD_NODES_MAX - 1))
#define FIRST_STEP 200000         /* far beyond the steps of other traffic */
#define BODY_MAX (2 * MIB)        /* a chain of slow receivers has it in time */
#define PULLED_BYTES (64 * KIB)   /* longer bodies never come within a record */
#define DEAD_BYTES 9
#define GUARD_BYTES 64
#define HEARD_BYTES (4 * KIB)     /* looked at each time that a beginning is told */
#define KEY "cast"
#define SLACK_NS (8 * MS)         /* as the checker's */
#define LOSS_NS WF_NS_PER_S       /* as the checker's */

static struct wf_casting_broadcast broadcasts[BROADCASTS_MAX];
static struct wf_casting_member members[MEMBERS_MAX];
static unsigned broadcast_count, member_count, node_count;
static uint64_t steps_ended_ns; /* when every node ended every step; UINT64_MAX: not yet */
static const struct wf_checker_config *checks;

struct wf_casting_broadcast *wf_casting_broadcasts(unsigned *count)
{
	*count = broadcast_count;
	return broadcasts;
}

/* The plan. */

/* Most are long enough to be passed on in pieces. */
static size_t some_bytes(void)
{
	unsigned at = (unsigned)wf_chance_below(100);

	if (at < 30) {
		size_t bytes = wf_traffic_some_bytes();

		return WF_MIN(bytes, BODY_MAX);
	}
	return 1 + wf_chance_below(at < 60 ? 300 * KIB : BODY_MAX);
}

static void plan_receive(struct wf_casting_member *m, uint64_t begin_ns, bool last)
{
	struct wf_casting_receive *r = &m->receives[m->receive_count++];

	*r = (struct wf_casting_receive){
		.member = m,
		.begin_ns = begin_ns,
		.limit_ns = WF_TRAFFIC_LONG_NS,
		.flags = wf_chance_in_100(85) ? WEFT_RELAY : 0,
		.memory = (enum wf_leg_memory)wf_chance_below(3),
		.hears = wf_chance_in_100(50),
		.detached = wf_chance_in_100(2),
	};
	r->from_anybody = !r->flags && wf_chance_in_100(20);
	r->refuses = r->memory == WF_LEG_ALLOC && wf_chance_in_100(4);
	if (!last && wf_chance_in_100(50))
		r->limit_ns = wf_traffic_soon_ns();
	else if (!last)
		r->cancel_ns = begin_ns + wf_traffic_soon_ns();
	if (!last && wf_chance_in_100(10))
		r->flags |= WEFT_DROP;
	m->all->lonely |= !last || r->refuses;
}

static void plan_member(struct wf_casting_broadcast *all, unsigned node)
{
	struct wf_casting_member *m = &members[member_count++];
	uint64_t at_ns = all->begin_ns + wf_chance_below(20 * MS);
	unsigned tries = 1;

	*m = (struct wf_casting_member){ .all = all, .node = node };
	all->count++;
	if (wf_chance_in_100(12)) {
		m->add_ns = all->begin_ns + 1 + wf_chance_below(60 * MS);
		all->lonely = true; /* the broadcast may have ended before */
	}
	if (wf_chance_in_100(10))
		at_ns += wf_chance_below(400 * MS);
	if (wf_chance_in_100(18))
		tries = wf_chance_in_100(20) ? 0 : WF_CASTING_TRIES;
	all->lonely |= tries != 1;
	for (unsigned i = 0; i < tries; i++, at_ns += wf_traffic_soon_ns())
		plan_receive(m, at_ns, i + 1 == tries && (tries > 1 || wf_chance_in_100(88)));
}

static void plan_flags(struct wf_casting_broadcast *all)
{
	if (wf_chance_in_100(4)) {
		all->flags = WEFT_DEAD;
		all->bytes = 0;
	} else if (all->bytes && wf_chance_in_100(20)) {
		all->flags = WEFT_SHARE;
	} else if (wf_chance_in_100(8)) {
		all->flags = WEFT_OPAQUE;
	}
}

static void plan_broadcast(const struct wf_traffic_config *config)
{
	struct wf_casting_broadcast *all = &broadcasts[broadcast_count++];
	uint64_t span_ns = config->until_ns - config->from_ns;
	unsigned first, most;

	*all = (struct wf_casting_broadcast){
		.step = FIRST_STEP + broadcast_count,
		.node = (unsigned)wf_chance_below(config->nodes),
		.begin_ns = config->from_ns + wf_chance_below(span_ns),
		.limit_ns = wf_chance_in_100(85) ? WF_TRAFFIC_LONG_NS : wf_traffic_soon_ns(),
		.bytes = some_bytes(),
		.seed = wf_chance_below(UINT64_MAX),
		.readers = wf_chance_in_100(80) ? 0 : 1 + (unsigned)wf_chance_below(3),
		.summed = wf_chance_in_100(15),
		.detached = wf_chance_in_100(3),
		.members = &members[member_count],
	};
	plan_flags(all);
	if (wf_chance_in_100(8))
		all->cancel_ns = all->begin_ns + wf_traffic_soon_ns();
	if (wf_chance_in_100(8)) {
		all->stop_ns = all->begin_ns + wf_traffic_soon_ns();
		all->stopper = (unsigned)wf_chance_below(config->nodes);
		all->ends = wf_chance_in_100(40);
	}
	all->lonely = all->cancel_ns || all->stop_ns || all->limit_ns != WF_TRAFFIC_LONG_NS;
	first = (unsigned)wf_chance_below(config->nodes - 1);
	most = wf_chance_in_100(70) ? config->nodes - 1
				    : 1 + (unsigned)wf_chance_below(config->nodes - 1);
	for (unsigned i = 0; i < most; i++)
		plan_member(all, (all->node + 1 + (first + i) % (config->nodes - 1)) %
					 config->nodes);
	all->members[0].add_ns = 0; /* a broadcast has a peer */
}

void wf_casting_plan(const struct wf_traffic_config *config, const struct wf_checker_config *given)
{
	uint64_t here = wf_chance_here();
	unsigned count;

	wf_chance_seed(here ^ 0x434153544e47);
	count = wf_chance_in_100(60) ? 1 + (unsigned)wf_chance_below(BROADCASTS_MAX) : 0;
	broadcast_count = member_count = 0;
	steps_ended_ns = UINT64_MAX;
	node_count = config->nodes;
	checks = given;
	while (count--)
		plan_broadcast(config);
	wf_chance_seed(here);
}

/* Failures. */

static double seconds(uint64_t ns)
{
	return (double)ns / WF_NS_PER_S;
}

static void show_flight(const struct wf_flight *f)
{
	if (f->started_ns)
		print_error(", began %.6f", seconds(f->started_ns));
	if (f->outcomes)
		print_error(", ended %.6f %s", seconds(f->ended_ns), weft_status_name(f->status));
	print_error("\n");
}

static const char *sentence(const struct wf_flight *f)
{
	return f->op ? weft_op_message(f->op) : "(detached)";
}

static void show_receive(const struct wf_casting_receive *r)
{
	print_error("    receive, flags %#x, memory %u, limit %.6f, cancelled %.6f, stopped %.6f, "
		    "bereft %.6f, heard of %llu", r->flags, r->memory, seconds(r->limit_ns),
		    seconds(r->cancelled_ns), seconds(r->stopped_ns), seconds(r->bereft_ns),
		    (unsigned long long)r->heard_bytes);
	show_flight(&r->flight);
}

static void show(const struct wf_casting_broadcast *all)
{
	print_error("  broadcast of n%u, %zu bytes, flags %#x, summed %d, readers %u, limit %.6f, "
		    "cancelled %.6f, stopped %d, lonely %d",
		    all->node, all->bytes, all->flags, all->summed, all->readers,
		    seconds(all->limit_ns), seconds(all->cancelled_ns), all->stopped, all->lonely);
	show_flight(&all->flight);
	for (const struct wf_casting_member *m = all->members; m < all->members + all->count; m++) {
		print_error("   to n%u, entered %d at %.6f, live at %.6f, ended by %.6f %s\n", m->node,
			    m->entered, seconds(m->begun_ns), seconds(m->seen_live_ns),
			    seconds(m->ended_ns),
			    m->ended_ns ? weft_status_name(m->status) : "");
		for (unsigned i = 0; i < m->receive_count; i++)
			show_receive(&m->receives[i]);
		if (getenv("WORLD_LOG") && !wf_faults_is_gone(m->node))
			(void)weft_dump(wf_world_node(m->node), stderr);
	}
	if (getenv("WORLD_LOG") && !wf_faults_is_gone(all->node))
		(void)weft_dump(wf_world_node(all->node), stderr);
}

static void wrong(const struct wf_casting_broadcast *all, const char *what)
{
	show(all);
	fail_msg("broadcast %u of node %u %s: %s", (unsigned)(all - broadcasts), all->node, what,
		 sentence(&all->flight));
}

static void wrong_member(const struct wf_casting_member *m, const char *what)
{
	show(m->all);
	fail_msg("member n%u of broadcast %u of node %u %s: %s", m->node,
		 (unsigned)(m->all - broadcasts), m->all->node, what, sentence(&m->all->flight));
}

static void wrong_receive(const struct wf_casting_receive *r, const char *what)
{
	show(r->member->all);
	fail_msg("a receive of node %u of broadcast %u %s: %s", r->member->node,
		 (unsigned)(r->member->all - broadcasts), what, sentence(&r->flight));
}

/* Nodes. */

static bool is_of_the_past(unsigned node, unsigned life)
{
	return wf_faults_is_gone(node) || life != wf_faults_life(node);
}

/* Has @node closed, and not died? */
static bool has_left(unsigned node, unsigned life)
{
	return life == wf_faults_life(node) && !wf_world_node(node);
}

bool wf_casting_is_live(const struct wf_casting_broadcast *all)
{
	return all->begun && !all->refused && !all->flight.outcomes &&
	       !is_of_the_past(all->node, all->life);
}

bool wf_casting_receive_is_live(const struct wf_casting_receive *r)
{
	return r->begun && !r->refused && !r->flight.outcomes &&
	       !is_of_the_past(r->member->node, r->life);
}

/* Has something happened to the two nodes of @m, so that one may not know what the other does? */
static bool may_be_lost(const struct wf_casting_member *m)
{
	return is_of_the_past(m->all->node, m->all->life) || is_of_the_past(m->node, m->life) ||
	       wf_world_count(m->all->node).peers_lost || wf_world_count(m->node).peers_lost;
}

/* Nothing moves bytes of an operation that has ended, but for the stated exception: see the checker. */
static bool is_quiet_run(void)
{
	return checks->harmless || checks->connected;
}

/* Bytes. */

/* Returns how many bytes the tensor of @all has by its shape. */
static size_t capacity_of(const struct wf_casting_broadcast *all)
{
	return all->flags & WEFT_DEAD ? DEAD_BYTES : all->bytes;
}

/* Make memory of @bytes between guards. */
static uint8_t *make_guarded(size_t bytes)
{
	uint8_t *memory = malloc(bytes + 2 * GUARD_BYTES);

	assert_non_null(memory);
	memset(memory, WF_TRAFFIC_CANARY, bytes + 2 * GUARD_BYTES);
	return memory;
}

static bool are_guards_whole(const uint8_t *memory, size_t bytes)
{
	return wf_world_all_are(memory, GUARD_BYTES, WF_TRAFFIC_CANARY) &&
	       wf_world_all_are(memory + GUARD_BYTES + bytes, GUARD_BYTES, WF_TRAFFIC_CANARY);
}

static void came(void *arg, const struct weft_tensor *t, uint64_t bytes)
{
	struct wf_casting_receive *r = arg;
	const struct wf_casting_broadcast *all = r->member->all;
	uint64_t count = WF_MIN(bytes - r->heard_bytes, (uint64_t)HEARD_BYTES);
	bool summed = all->summed || getenv("WEFT_CHECKSUM");

	if (r->flight.outcomes)
		wrong_receive(r, "is told of bytes after its end");
	if (bytes < r->heard_bytes || bytes > all->bytes)
		wrong_receive(r, "is told of bytes that are not there");
	/* The sum of a body may show after its bytes that one is wrong. */
	if ((!checks->tally->injected[WF_FAULT_FLIP] || !summed) &&
	    memcmp((const char *)t->data + bytes - count, all->image + bytes - count, count))
		wrong_receive(r, "is told of bytes before they have come");
	r->heard_bytes = bytes;
}

/* Ends of receives. */

static void check_time(const struct wf_casting_receive *r)
{
	const struct wf_flight *f = &r->flight;
	uint64_t thawed_ns = wf_faults_thawed_ns(r->member->node);
	uint64_t deadline_ns = f->started_ns + r->limit_ns, due_ns = deadline_ns;

	if (r->cancelled_ns)
		due_ns = WF_MIN(due_ns, r->cancelled_ns);
	/* A node that has started anew knows nothing of a step that it stopped before. */
	if (r->stopped_ns && r->stopped_life == r->life)
		due_ns = WF_MIN(due_ns, WF_MAX(r->stopped_ns, f->started_ns));
	/* A receive that has all may serve another for a while. */
	if (r->bereft_ns && f->status != WEFT_OK)
		due_ns = WF_MIN(due_ns, WF_MAX(r->bereft_ns, thawed_ns) + LOSS_NS);
	due_ns = WF_MAX(due_ns, thawed_ns);
	if (f->outcomes != 1)
		wrong_receive(r, "ended more than once");
	if (f->ended_ns > due_ns + checks->quiet_ns + SLACK_NS)
		wrong_receive(r, "ended too late");
	if (f->status == WEFT_DEADLINE_EXCEEDED && f->ended_ns < deadline_ns)
		wrong_receive(r, "missed its deadline before it came");
	if (f->status == WEFT_DATA_LOSS &&
	    (checks->sealed || !checks->tally->injected[WF_FAULT_FLIP]))
		wrong_receive(r, "missed bytes that nobody touched");
	if (checks->harmless && !r->member->all->lonely && f->status != WEFT_OK)
		wrong_receive(r, "should have gone well");
}

/* The receive has all bytes of the broadcast. */
static void check_content(const struct wf_casting_receive *r)
{
	const struct wf_casting_broadcast *all = r->member->all;
	unsigned flags = 0, want = all->flags & (WEFT_DEAD | WEFT_OPAQUE);
	const struct weft_tensor *t = r->flight.op ? weft_op_tensor(r->flight.op, &flags) : NULL;
	const uint8_t *data = t ? t->data : r->buffer ? r->buffer + GUARD_BYTES : NULL;

	/* Memory of the pool is gone with the handle, or with the node. */
	if (r->memory == WF_LEG_POOL && (!t || is_of_the_past(r->member->node, r->life)))
		return;
	if (t && (flags & ~(unsigned)WEFT_READONLY) != want)
		wrong_receive(r, "has other flags than what was sent");
	if (all->bytes && (!data || memcmp(data, all->image, all->bytes)))
		wrong_receive(r, "has other bytes than what was sent");
	for (unsigned i = 0; i < r->member->receive_count; i++) {
		const struct wf_casting_receive *other = &r->member->receives[i];

		if (other != r && other->seen && other->flight.status == WEFT_OK)
			wrong_receive(r, "has what another receive has got");
	}
}

/* Nobody has a key to the memory of a receive that has ended, nor reads of it. */
static void check_buffer(const struct wf_casting_receive *r)
{
	size_t bytes = capacity_of(r->member->all);

	if (!are_guards_whole(r->buffer, bytes))
		wrong_receive(r, "has bytes beside its buffer");
	if (!bytes)
		return;
	if (wf_fake_is_open(r->buffer + GUARD_BYTES, bytes))
		wrong_receive(r, "left its buffer open to others");
	if (is_quiet_run() && wf_fake_is_read(r->buffer + GUARD_BYTES, bytes))
		wrong_receive(r, "ended while somebody read its buffer");
}

static void look_at_receive(struct wf_casting_receive *r)
{
	size_t bytes = capacity_of(r->member->all);

	r->seen = true;
	check_time(r);
	if (r->flight.status == WEFT_OK)
		check_content(r);
	else if (r->flight.op && !weft_op_message(r->flight.op)[0])
		wrong_receive(r, "ended without a sentence");
	if (r->buffer) {
		check_buffer(r);
		memset(r->buffer, WF_TRAFFIC_CANARY, bytes + 2 * GUARD_BYTES);
	}
	weft_op_free(r->flight.op);
	r->flight.op = NULL;
}

/* Ends of members and broadcasts. */

/* Returns when the send to @m is to end. */
static uint64_t member_due_ns(const struct wf_casting_member *m)
{
	const struct wf_casting_broadcast *all = m->all;
	uint64_t thawed_ns = wf_faults_thawed_ns(all->node);
	uint64_t due_ns = m->begun_ns + all->limit_ns;

	if (all->cancelled_ns)
		due_ns = WF_MIN(due_ns, all->cancelled_ns);
	if (all->stopped_ns && all->stopped_life == all->life)
		due_ns = WF_MIN(due_ns, WF_MAX(all->stopped_ns, m->begun_ns));
	if (m->bereft_ns)
		due_ns = WF_MIN(due_ns, WF_MAX(m->bereft_ns, thawed_ns) + LOSS_NS);
	return WF_MAX(due_ns, thawed_ns) + checks->quiet_ns + SLACK_NS;
}

static bool has_received(const struct wf_casting_member *m)
{
	for (unsigned i = 0; i < m->receive_count; i++)
		if (m->receives[i].flight.outcomes && m->receives[i].flight.status == WEFT_OK)
			return true;
	return false;
}

static void check_member(const struct wf_casting_member *m, const char *message)
{
	const struct wf_casting_broadcast *all = m->all;

	/* No look is taken while a call of the program blocks. */
	if (m->seen_live_ns > member_due_ns(m))
		wrong_member(m, "ended too late");
	if (!*message != (m->status == WEFT_OK))
		wrong_member(m, "has a sentence and ended well, or has none");
	if (checks->harmless && !all->lonely && m->status != WEFT_OK)
		wrong_member(m, "should have gone well");
}

/* Note which members of @all have ended since the last look. */
static void look_at_members(struct wf_casting_broadcast *all)
{
	enum weft_status status;
	const char *message;

	for (struct wf_casting_member *m = all->members; m < all->members + all->count; m++) {
		if (!m->entered || m->ended_ns)
			continue;
		assert_int_equal(weft_broadcast_outcome(all->flight.op, m->index, &status, &message), 0);
		if (status == WEFT_UNKNOWN && !*message) {
			m->seen_live_ns = wf_clock_now();
			continue;
		}
		m->status = status;
		m->ended_ns = wf_clock_now();
		check_member(m, message);
	}
}

/* The outcome of the broadcast is that of its first member that failed. */
static void check_outcome(const struct wf_casting_broadcast *all)
{
	const struct wf_casting_member *first = NULL;
	enum weft_status status;
	unsigned failed = 0;
	char count[64];

	for (const struct wf_casting_member *m = all->members; m < all->members + all->count; m++) {
		if (!m->entered)
			continue;
		if (!m->ended_ns)
			wrong_member(m, "has not ended, and its broadcast has");
		if (m->status == WEFT_OK)
			continue;
		failed++;
		if (!first || m->index < first->index)
			first = m;
	}
	if (all->flight.status != (first ? first->status : WEFT_OK))
		wrong(all, "ended otherwise than its members");
	(void)snprintf(count, sizeof(count), "%u of %u peers", failed, all->entered);
	/* Without memory the sentence is a short one. */
	if (first && !wf_faults_has(WF_FAULT_MEMORY) &&
	    !strstr(weft_op_message(all->flight.op), count))
		wrong(all, "counts others than those that failed");
	if (weft_broadcast_outcome(all->flight.op, all->entered, &status, NULL) != -ENOENT)
		wrong(all, "has more members than have entered");
}

static void check_broadcast(const struct wf_casting_broadcast *all)
{
	uint64_t due_ns = 0;

	if (all->flight.outcomes != 1)
		wrong(all, "ended more than once");
	for (const struct wf_casting_member *m = all->members; m < all->members + all->count; m++)
		if (m->entered)
			due_ns = WF_MAX(due_ns, member_due_ns(m));
	if (all->flight.ended_ns > due_ns)
		wrong(all, "ended too late");
	if (checks->harmless && !all->lonely && all->flight.status != WEFT_OK)
		wrong(all, "should have gone well");
	if (!all->buffer || !all->bytes)
		return;
	if (wf_fake_is_open(all->buffer, all->bytes))
		wrong(all, "left its buffer open to others");
	if (is_quiet_run() && wf_fake_is_read(all->buffer, all->bytes))
		wrong(all, "ended while somebody read its buffer");
}

static void look_at(struct wf_casting_broadcast *all)
{
	all->seen = true;
	check_broadcast(all);
	if (all->flight.op)
		check_outcome(all);
	if (all->buffer)
		memset(all->buffer, WF_TRAFFIC_CANARY, all->bytes);
	if (all->shared && !is_of_the_past(all->node, all->life))
		weft_free(wf_world_node(all->node), all->shared);
	all->shared = NULL;
	weft_op_free(all->flight.op);
	all->flight.op = NULL;
}

void wf_casting_look(void)
{
	for (struct wf_casting_member *m = members; m < members + member_count; m++)
		for (unsigned i = 0; i < m->receive_count; i++)
			if (m->receives[i].flight.outcomes && !m->receives[i].seen)
				look_at_receive(&m->receives[i]);
	for (struct wf_casting_broadcast *all = broadcasts; all < broadcasts + broadcast_count; all++) {
		if (!all->begun || all->refused || all->seen)
			continue;
		if (all->flight.op && (all->flight.outcomes || !is_of_the_past(all->node, all->life)))
			look_at_members(all);
		if (all->flight.outcomes)
			look_at(all);
	}
}

/* Begins. */

/* Only memory may be missing. */
static bool is_refused(int err)
{
	if (err && err != -ENOMEM && err != -ENOBUFS)
		fail_msg("a broadcast, or a receive of one, can't be begun: %s", weft_error());
	return err;
}

static void *alloc(void *arg, const struct weft_tensor *want, uint64_t bytes)
{
	struct wf_casting_receive *r = arg;

	(void)want;
	assert_null(r->buffer); /* it is asked once */
	if (r->refuses)
		return NULL;
	assert_int_equal(bytes, r->member->all->bytes);
	r->buffer = make_guarded(bytes);
	return r->buffer + GUARD_BYTES;
}

/* A tensor of the broadcast's shape at @data. */
static struct weft_tensor describe(const struct wf_casting_broadcast *all, void *data, int64_t *shape)
{
	*shape = (int64_t)capacity_of(all);
	return (struct weft_tensor){
		.data = data, .device = { WEFT_CPU, 0 }, .ndim = 1, .dtype = { WEFT_UINT, 8, 1 },
		.shape = shape,
	};
}

static void begin_receive(struct wf_casting_receive *r)
{
	const struct wf_casting_member *m = r->member;
	struct wf_casting_broadcast *all = m->all;
	struct weft_recv_options options = {
		.size = sizeof(options),
		.op = wf_flight_begin(&r->flight, r->limit_ns),
		.flags = r->flags,
		.alloc = r->memory == WF_LEG_ALLOC ? alloc : NULL,
		.alloc_arg = r,
		.came = r->hears ? came : NULL,
		.came_arg = r,
	};
	struct weft_tensor t;
	int64_t shape;

	r->begun = true;
	r->life = wf_faults_life(m->node);
	if (r->memory == WF_LEG_OWN)
		r->buffer = make_guarded(capacity_of(all));
	t = describe(all, r->buffer ? r->buffer + GUARD_BYTES : NULL, &shape);
	r->refused = is_refused(weft_recv(wf_world_node(m->node),
					  r->from_anybody ? NULL : wf_world_peer(m->node, all->node),
					  all->step, KEY, sizeof(KEY) - 1,
					  r->memory == WF_LEG_OWN ? &t : NULL, &options,
					  &r->flight.op));
	all->lonely |= r->refused;
	if (!r->refused && r->detached) {
		weft_op_free(r->flight.op);
		r->flight.op = NULL;
	}
}

/* Note that the broadcast has @m now. */
static void enter(struct wf_casting_member *m)
{
	m->entered = true;
	m->index = m->all->entered++;
	m->life = wf_faults_life(m->node);
	m->begun_ns = wf_clock_now();
}

static void post(struct wf_casting_broadcast *all, void *memory)
{
	struct weft_broadcast_options options = {
		.size = sizeof(options),
		.op = wf_flight_begin(&all->flight, all->limit_ns),
		.flags = all->flags,
		.readers = all->readers,
	};
	struct weft_peer *peers[WF_WORLD_NODES_MAX];
	struct weft_tensor t;
	int64_t shape;
	size_t count = 0;

	if (all->summed)
		options.op.flags = WEFT_CHECKSUM;
	t = describe(all, all->flags & WEFT_DEAD ? NULL : memory, &shape);
	for (unsigned i = 0; i < all->count; i++)
		if (!all->members[i].add_ns)
			peers[count++] = wf_world_peer(all->node, all->members[i].node);
	all->refused = is_refused(weft_broadcast(peers, count, all->step, KEY, sizeof(KEY) - 1, &t,
						 &options, &all->flight.op));
	for (unsigned i = 0; i < all->count && !all->refused; i++)
		if (!all->members[i].add_ns)
			enter(&all->members[i]);
}

static void begin(struct wf_casting_broadcast *all)
{
	void *memory = NULL;

	all->begun = true;
	all->life = wf_faults_life(all->node);
	all->image = malloc(all->bytes + 1);
	assert_non_null(all->image);
	wf_world_fill(all->image, all->bytes, all->seed);
	if (!(all->flags & WEFT_SHARE)) {
		memory = all->buffer = malloc(all->bytes + 1);
		assert_non_null(memory);
	} else if (weft_alloc(wf_world_node(all->node), all->bytes, &memory)) {
		all->refused = all->lonely = true;
		return;
	}
	memcpy(memory, all->image, all->bytes);
	post(all, memory);
	all->lonely |= all->refused;
	if (all->flags & WEFT_SHARE && !all->refused && all->seed % 2)
		all->shared = memory;
	else if (all->flags & WEFT_SHARE)
		weft_free(wf_world_node(all->node), memory);
	if (!all->refused && all->detached) {
		weft_op_free(all->flight.op);
		all->flight.op = NULL;
	}
}

/* Add @m to its broadcast, if that still runs. */
static void add(struct wf_casting_member *m)
{
	struct wf_casting_broadcast *all = m->all;
	int err;

	if (!all->flight.op || !wf_casting_is_live(all)) {
		m->refused = true;
		return;
	}
	err = weft_broadcast_add(all->flight.op, wf_world_peer(all->node, m->node));
	m->refused = err;
	if (err == -EALREADY) {
		if (!all->cancelled_ns && !all->stopped)
			look_at_members(all);
		for (const struct wf_casting_member *o = all->members; o < all->members + all->count; o++)
			if (o->entered && !o->ended_ns && !all->cancelled_ns)
				wrong_member(m, "can't be added, and another has not ended");
	} else if (!is_refused(err)) {
		enter(m);
	}
}

/* Time. */

static void cancel(struct weft_op *op, uint64_t now, uint64_t *cancelled_ns)
{
	*cancelled_ns = now;
	wf_faults_strike_op(WF_FAULT_CANCEL, op);
	weft_cancel(op);
}

/* Returns when @f, of which the rest is the plan, has something to be done next; what is due is done. */
static uint64_t run_flight(const struct wf_flight *f, uint64_t limit_ns, uint64_t cancel_ns, uint64_t now,
			   bool *hit, uint64_t *cancelled_ns)
{
	if (!*hit && now >= f->started_ns + limit_ns) {
		*hit = true;
		if (f->op)
			wf_faults_strike_op(WF_FAULT_DEADLINE, f->op);
	}
	if (!cancel_ns || *cancelled_ns || !f->op)
		return UINT64_MAX;
	if (cancel_ns > now)
		return cancel_ns;
	cancel(f->op, now, cancelled_ns);
	return UINT64_MAX;
}

static uint64_t run_receive(struct wf_casting_receive *r, uint64_t now)
{
	unsigned node = r->member->node;

	if (!r->begun) {
		if (r->begin_ns > now)
			return r->begin_ns;
		if (!wf_faults_is_away(node))
			begin_receive(r);
		return UINT64_MAX;
	}
	if (!wf_casting_receive_is_live(r) || wf_faults_is_away(node))
		return UINT64_MAX;
	return run_flight(&r->flight, r->limit_ns, r->cancel_ns, now, &r->hit_deadline,
			  &r->cancelled_ns);
}

static uint64_t run_member(struct wf_casting_member *m, uint64_t now)
{
	uint64_t next = UINT64_MAX, until_ns;

	if (m->add_ns && !m->entered && !m->refused) {
		if (m->add_ns > now)
			next = m->add_ns;
		else if (!wf_faults_is_away(m->all->node))
			add(m);
	}
	for (unsigned i = 0; i < m->receive_count; i++) {
		until_ns = run_receive(&m->receives[i], now);
		next = WF_MIN(next, until_ns);
	}
	return next;
}

static void strike(struct wf_casting_broadcast *all)
{
	enum wf_fault fault = all->ends ? WF_FAULT_END : WF_FAULT_ABORT;

	if (all->node == all->stopper) {
		all->stopped_ns = wf_clock_now();
		all->stopped_life = wf_faults_life(all->node);
		if (wf_casting_is_live(all) && all->flight.op)
			wf_faults_strike_op(fault, all->flight.op);
		return;
	}
	for (struct wf_casting_member *m = all->members; m < all->members + all->count; m++) {
		if (m->node != all->stopper)
			continue;
		for (unsigned i = 0; i < m->receive_count; i++) {
			m->receives[i].stopped_ns = wf_clock_now();
			m->receives[i].stopped_life = wf_faults_life(m->node);
			if (wf_casting_receive_is_live(&m->receives[i]) && m->receives[i].flight.op)
				wf_faults_strike_op(fault, m->receives[i].flight.op);
		}
	}
}

static uint64_t run_step(struct wf_casting_broadcast *all, uint64_t now)
{
	struct weft_node *node;
	int err;

	if (!all->stop_ns || all->stopped)
		return UINT64_MAX;
	if (all->stop_ns > now)
		return all->stop_ns;
	if (wf_faults_is_away(all->stopper))
		return UINT64_MAX;
	strike(all);
	node = wf_world_node(all->stopper);
	err = all->ends ? weft_step_end(node, all->step)
			: weft_step_abort(node, all->step, WEFT_ABORTED, "as the test wants");
	/* Without memory it is done again. */
	all->stopped = err != -ENOMEM;
	return UINT64_MAX;
}

static uint64_t run_broadcast(struct wf_casting_broadcast *all, uint64_t now)
{
	if (!all->begun) {
		if (all->begin_ns > now)
			return all->begin_ns;
		if (!wf_faults_is_away(all->node))
			begin(all);
		return UINT64_MAX;
	}
	if (!wf_casting_is_live(all) || wf_faults_is_away(all->node))
		return UINT64_MAX;
	return run_flight(&all->flight, all->limit_ns, all->cancel_ns, now, &all->hit_deadline,
			  &all->cancelled_ns);
}

uint64_t wf_casting_run(uint64_t now)
{
	uint64_t next = UINT64_MAX, until_ns;

	for (unsigned i = 0; i < broadcast_count; i++) {
		until_ns = run_broadcast(&broadcasts[i], now);
		next = WF_MIN(next, until_ns);
		until_ns = run_step(&broadcasts[i], now);
		next = WF_MIN(next, until_ns);
	}
	for (unsigned i = 0; i < member_count; i++) {
		until_ns = run_member(&members[i], now);
		next = WF_MIN(next, until_ns);
	}
	return next;
}

void wf_casting_bereave(unsigned number)
{
	for (struct wf_casting_member *m = members; m < members + member_count; m++) {
		unsigned from = m->all->node;

		if (m->node == number && m->entered && !m->ended_ns && wf_casting_is_live(m->all) &&
		    wf_traffic_is_linked(from, number))
			m->bereft_ns = wf_clock_now();
		for (unsigned i = 0; i < m->receive_count && from == number; i++)
			if (wf_casting_receive_is_live(&m->receives[i]) &&
			    !m->receives[i].from_anybody && wf_traffic_is_linked(m->node, number))
				m->receives[i].bereft_ns = wf_clock_now();
	}
}

/* The end of the run. */

bool wf_casting_is_over(void)
{
	for (const struct wf_casting_broadcast *all = broadcasts; all < broadcasts + broadcast_count; all++)
		if (wf_casting_is_live(all) || (!all->begun && !wf_faults_is_gone(all->node)))
			return false;
	for (const struct wf_casting_member *m = members; m < members + member_count; m++)
		for (unsigned i = 0; i < m->receive_count; i++)
			if (wf_casting_receive_is_live(&m->receives[i]) ||
			    (!m->receives[i].begun && !wf_faults_is_gone(m->node)))
				return false;
	return true;
}

void wf_casting_end_steps(void)
{
	steps_ended_ns = wf_clock_now();
	for (unsigned i = 0; i < broadcast_count; i++)
		for (unsigned node = 0; node < node_count; node++)
			if (!wf_faults_is_gone(node))
				assert_int_equal(weft_step_end(wf_world_node(node),
							       broadcasts[i].step), 0);
}

static void finish_receive(const struct wf_casting_receive *r)
{
	size_t bytes = capacity_of(r->member->all);

	if (r->flight.outcomes > 1)
		wrong_receive(r, "ended again");
	if (r->begun && !r->refused && !r->flight.outcomes &&
	    has_left(r->member->node, r->life))
		wrong_receive(r, "has outlived its node");
	if (r->seen && r->buffer &&
	    !wf_world_all_are(r->buffer, bytes + 2 * GUARD_BYTES, WF_TRAFFIC_CANARY))
		wrong_receive(r, "had its buffer written after its end");
	checks->tally->operations += r->begun && !r->refused;
	checks->tally->ended_well += r->seen && r->flight.status == WEFT_OK;
}

/* May the tensor have been dropped at @m, by one of its receives or with its step? */
static bool may_have_dropped(const struct wf_casting_member *m)
{
	for (unsigned i = 0; i < m->receive_count; i++)
		if (m->receives[i].flight.outcomes && m->receives[i].flight.status != WEFT_OK)
			return true;
	return m->ended_ns >= steps_ended_ns || (m->all->stopped && m->all->ends);
}

/* A body that never comes within a record is handed over to a receive, or dropped. */
static void finish_member(const struct wf_casting_member *m)
{
	for (unsigned i = 0; i < m->receive_count; i++)
		finish_receive(&m->receives[i]);
	if (!m->ended_ns || may_be_lost(m))
		return;
	if (m->status == WEFT_OK && m->all->bytes > PULLED_BYTES && !has_received(m) &&
	    !may_have_dropped(m))
		wrong_member(m, "ended well, and nobody has received it");
}

static void finish(const struct wf_casting_broadcast *all)
{
	struct wf_tally *tally = checks->tally;

	for (unsigned i = 0; i < all->count; i++)
		finish_member(&all->members[i]);
	if (all->flight.outcomes > 1)
		wrong(all, "ended again");
	if (all->begun && !all->refused && !all->flight.outcomes && has_left(all->node, all->life))
		wrong(all, "has outlived its node");
	if (all->seen && all->buffer &&
	    !wf_world_all_are(all->buffer, all->bytes, WF_TRAFFIC_CANARY))
		wrong(all, "had its buffer written after its end");
	tally->operations += all->begun && !all->refused;
	tally->ended_well += all->seen && all->flight.status == WEFT_OK;
	tally->broadcasts += all->begun && !all->refused;
	tally->broadcasts_well += all->seen && all->flight.status == WEFT_OK;
}

void wf_casting_finish(void)
{
	for (unsigned i = 0; i < broadcast_count; i++)
		finish(&broadcasts[i]);
}

void wf_casting_release(void)
{
	for (unsigned i = 0; i < broadcast_count; i++) {
		weft_op_free(broadcasts[i].flight.op);
		broadcasts[i].flight.op = NULL;
	}
	for (struct wf_casting_member *m = members; m < members + member_count; m++)
		for (unsigned i = 0; i < m->receive_count; i++) {
			weft_op_free(m->receives[i].flight.op);
			m->receives[i].flight.op = NULL;
		}
}

void wf_casting_free(void)
{
	for (unsigned i = 0; i < broadcast_count; i++) {
		free(broadcasts[i].image);
		free(broadcasts[i].buffer);
	}
	for (struct wf_casting_member *m = members; m < members + member_count; m++)
		for (unsigned i = 0; i < m->receive_count; i++)
			free(m->receives[i].buffer);
	broadcast_count = member_count = 0;
}
