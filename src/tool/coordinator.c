/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/coordinator.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tool/perf_run.h"
#include "tool/rounds.h"

/* Keys of what rank 0 and the others say, whose steps are the numbers of rounds, from 1. */
#define GO "weft.pairs.go"
#define REPORT "weft.pairs.report"

/* Time for a word to arrive: that in which two processes meet. */
#define WORD_NS PAIRS_MEET_NS

/* Word of rank 0 to another, in little-endian. */
struct go {
	uint64_t round;          /* from 0; GO_END: there is no other */
	uint64_t skip;           /* 1: the partner is gone */
	uint64_t bytes, time_ns; /* the plan, the same in each round */
};

#define GO_END UINT64_MAX

/* Report of another rank: what it has measured in a round, numbers in little-endian. */
struct report {
	uint64_t p50_ns, p99_ns, bytes_per_s, rails;
	char provider[64], device[64], way[16], failed[256];
};

/* Another rank, as rank 0 sees it; of another rank's, the first is rank 0. */
struct member {
	struct weft_peer *peer;
	struct weft_op *go_op, *report_op;
	struct go go;
	struct report report;
	uint32_t partner; /* whom it meets in this round; the number of ranks: nobody */
	char gone[200];   /* why it takes no part any more; "": it does */
};

struct coordinator {
	const struct tool_command *command;
	struct weft_node *node;
	struct weft_group *group;
	struct pairs *pairs;
	struct pairs_plan plan;
	uint32_t rank, size;
	uint64_t words;          /* words of rank 0 so far */
	struct member members[]; /* by rank; of another rank than 0, rank 0 alone */
};

static const struct perf_place here;

struct coordinator *coordinator_open(const struct tool_command *command, struct weft_node *node,
				     struct weft_group *group)
{
	uint32_t rank = weft_group_rank(group), size = weft_group_size(group);
	uint32_t first = rank ? 0 : 1, end = rank ? 1 : size;
	struct coordinator *c = calloc(1, sizeof(*c) + (rank ? 1 : size) * sizeof(c->members[0]));

	if (!c) {
		tool_fail(command, "no memory");
		return NULL;
	}
	*c = (struct coordinator){
		.command = command, .node = node, .group = group, .rank = rank, .size = size
	};
	for (uint32_t i = first; i < end; i++)
		if (weft_group_peer(group, i, &c->members[i].peer)) {
			tool_fail(command, "rank %" PRIu32 ": %s", i, weft_error());
			coordinator_close(c);
			return NULL;
		}
	return c;
}

void coordinator_close(struct coordinator *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < (c->rank ? 1 : c->size); i++) {
		weft_op_free(c->members[i].go_op);
		weft_op_free(c->members[i].report_op);
	}
	pairs_close(c->pairs);
	free(c);
}

/* Limits */

/* Time for a pair: both ways, and until they meet. */
static uint64_t pair_ns(const struct coordinator *c)
{
	return 2 * c->plan.time_ns + WORD_NS;
}

/* Time for a round: a rank hears of it, measures, and its report arrives. */
static uint64_t round_ns(const struct coordinator *c)
{
	return pair_ns(c) + 2 * WORD_NS;
}

/*
 * Time until the next word of rank 0: it waits for all, whose rounds begin and end a word later.
 * The first comes as soon as rank 0 has memory.
 */
static uint64_t go_ns(const struct coordinator *c)
{
	return c->pairs ? round_ns(c) + 2 * WORD_NS : 2 * WORD_NS;
}

/* Words */

static int send_bytes(const struct coordinator *c, struct weft_peer *peer, const char *key,
		      void *data, size_t bytes, struct weft_op **op)
{
	struct weft_send_options options = WEFT_SEND_OPTIONS_INIT;
	int64_t shape;
	struct weft_tensor tensor = perf_run_tensor(&here, data, &shape, bytes);

	options.op.timeout_ns = WORD_NS;
	return weft_send(peer, c->words, key, strlen(key), &tensor, &options, op);
}

static int receive_bytes(const struct coordinator *c, struct weft_peer *peer, const char *key,
			 void *data, size_t bytes, uint64_t timeout_ns, struct weft_op **op)
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;
	int64_t shape;
	struct weft_tensor tensor = perf_run_tensor(&here, data, &shape, bytes);

	options.op.timeout_ns = timeout_ns;
	return weft_recv(c->node, peer, c->words, key, strlen(key), &tensor, &options, op);
}

/* Wait for *@op and free it.  0; or -E, and a sentence in @why. */
static int settle(struct weft_op **op, char *why, size_t room)
{
	int err = *op ? tool_wait(*op) : 0;

	if (!*op)
		return 0;
	if (err) {
		snprintf(why, room, "%s", weft_error());
		return err;
	}
	if (weft_op_status(*op) == WEFT_OK) {
		weft_op_free(*op);
		*op = NULL;
		return 0;
	}
	snprintf(why, room, "%s: %s", weft_status_name(weft_op_status(*op)), weft_op_message(*op));
	return -EIO;
}

/* A pair, in both of its ranks. */

/*
 * Measure with @partner in @round: the lower rank sends first.  Where that fails the way back is not
 * tried: a peer that is dead would be dialled until the time is over.  @cell: what this rank measured.
 */
static void meet(struct coordinator *c, uint32_t round, uint32_t partner, struct matrix_cell *cell)
{
	struct pairs_pair there = { .number = 2 * (uint64_t)round + 1,
				    .until_ns = tool_now_ns() + pair_ns(c) };
	struct pairs_pair back;
	const char *why;

	if (weft_group_peer(c->group, partner, &there.peer)) {
		snprintf(cell->failed, sizeof(cell->failed), "%s", weft_error());
		return;
	}
	back = there;
	back.number++;
	if (c->rank < partner) {
		pairs_measure(c->pairs, &there, cell);
		if (matrix_measured(cell))
			pairs_answer(c->pairs, &back);
		return;
	}
	why = pairs_answer(c->pairs, &there);
	if (why)
		snprintf(cell->failed, sizeof(cell->failed), "the other way failed: %s", why);
	else
		pairs_measure(c->pairs, &back, cell);
}

static int open_pairs(struct coordinator *c, const struct pairs_plan *plan)
{
	c->plan = *plan;
	c->pairs = pairs_open(c->node, plan);
	return c->pairs ? TOOL_OK
			: tool_fail(c->command, "no memory for bodies of %" PRIu64 " bytes",
				    plan->bytes);
}

/* Rank 0 */

static void set_gone(struct member *m, const char *why)
{
	if (!*m->gone)
		snprintf(m->gone, sizeof(m->gone), "%s", why);
}

/* Begin a round, or the end, in the process of @m. */
static void tell(struct coordinator *c, struct member *m, uint64_t round)
{
	m->go = (struct go){ htole64(round), htole64(m->partner == c->size), htole64(c->plan.bytes),
			     htole64(c->plan.time_ns) };
	if (receive_bytes(c, m->peer, REPORT, &m->report, sizeof(m->report),
			  round == GO_END ? WORD_NS : round_ns(c), &m->report_op))
		set_gone(m, weft_error());
	else if (send_bytes(c, m->peer, GO, &m->go, sizeof(m->go), &m->go_op))
		set_gone(m, weft_error());
}

/* Copy text of a peer, which may lack its end. */
static void copy_text(char *to, const char *from, size_t room)
{
	memcpy(to, from, room - 1);
	to[room - 1] = '\0';
}

static void read_report(const struct report *r, struct matrix_cell *cell)
{
	cell->p50_ns = le64toh(r->p50_ns);
	cell->p99_ns = le64toh(r->p99_ns);
	cell->bytes_per_s = le64toh(r->bytes_per_s);
	cell->rails = (uint32_t)le64toh(r->rails);
	copy_text(cell->provider, r->provider, sizeof(cell->provider));
	copy_text(cell->device, r->device, sizeof(cell->device));
	copy_text(cell->way, r->way, sizeof(cell->way));
	copy_text(cell->failed, r->failed, sizeof(cell->failed));
}

/* Take note that a rank's pair can't be measured for want of rank @gone. */
static void lose(struct coordinator *c, struct matrix *matrix, uint32_t from, uint32_t to,
		 uint32_t gone)
{
	struct matrix_cell *cell = matrix_at(matrix, from, to);

	snprintf(cell->failed, sizeof(cell->failed), "rank %" PRIu32 " is gone: %s", gone,
		 c->members[gone].gone);
}

/* Choose whom a rank meets: nobody where one of the two is gone. */
static void pair_up(struct coordinator *c, uint32_t round, uint32_t rank, struct matrix *matrix)
{
	uint32_t partner = rounds_partner(c->size, round, rank);

	c->members[rank].partner = c->size;
	if (partner == c->size)
		return;
	if (*c->members[rank].gone)
		lose(c, matrix, rank, partner, rank);
	else if (*c->members[partner].gone)
		lose(c, matrix, rank, partner, partner);
	else
		c->members[rank].partner = partner;
}

/* Wait for the report of a rank that was told to begin.  A rank that gives none is gone. */
static void hear(struct coordinator *c, uint32_t rank, struct matrix *matrix)
{
	struct member *m = &c->members[rank];
	char why[sizeof(m->gone)];

	if (!*m->gone &&
	    (settle(&m->go_op, why, sizeof(why)) || settle(&m->report_op, why, sizeof(why))))
		set_gone(m, why);
	if (m->partner == c->size)
		return;
	if (*m->gone)
		lose(c, matrix, rank, m->partner, rank);
	else
		read_report(&m->report, matrix_at(matrix, rank, m->partner));
}

/* Lead a round, after which each of its cells is set. */
static void lead_round(struct coordinator *c, uint32_t round, struct matrix *matrix)
{
	uint32_t own;

	c->words++;
	for (uint32_t i = 0; i < c->size; i++)
		pair_up(c, round, i, matrix);
	for (uint32_t i = 1; i < c->size; i++)
		if (!*c->members[i].gone)
			tell(c, &c->members[i], round);
	own = c->members[0].partner;
	if (own < c->size)
		meet(c, round, own, matrix_at(matrix, 0, own));
	for (uint32_t i = 1; i < c->size && !tool_ending(); i++)
		hear(c, i, matrix);
}

int coordinator_lead(struct coordinator *c, const struct pairs_plan *plan, struct matrix *matrix)
{
	int status = open_pairs(c, plan);

	for (uint32_t round = 0; !status && round < rounds_count(c->size); round++) {
		lead_round(c, round, matrix);
		if (tool_ending())
			status = TOOL_INTERRUPTED;
	}
	return status;
}

void coordinator_dismiss(struct coordinator *c)
{
	char why[sizeof(c->members[0].gone)];

	c->words++;
	for (uint32_t i = 1; i < c->size; i++) {
		const struct member *m = &c->members[i];

		/* A rank with words under way, of a round that was interrupted, hears that this node closes. */
		if (!*m->gone && !m->go_op && !m->report_op)
			tell(c, &c->members[i], GO_END);
	}
	/* The end is heard once it is answered: a node that closes takes its last words with it. */
	for (uint32_t i = 1; i < c->size && !tool_ending(); i++)
		if (!*c->members[i].gone && !settle(&c->members[i].go_op, why, sizeof(why)))
			settle(&c->members[i].report_op, why, sizeof(why));
}

/* The others */

static int say_why(const struct coordinator *c, const char *what, const char *why)
{
	if (tool_ending())
		return TOOL_INTERRUPTED;
	return tool_fail(c->command, "rank %" PRIu32 " %s rank 0: %s", c->rank, what, why);
}

/* Wait for the next word of rank 0, into members[0].go. */
static int listen_for_go(struct coordinator *c)
{
	struct member *zero = &c->members[0];
	char why[256];

	c->words++;
	if (receive_bytes(c, zero->peer, GO, &zero->go, sizeof(zero->go), go_ns(c), &zero->go_op))
		return say_why(c, "hears nothing of", weft_error());
	if (settle(&zero->go_op, why, sizeof(why)))
		return say_why(c, "hears nothing of", why);
	return TOOL_OK;
}

/* Returns 0; or -E, and a sentence in @why. */
static int send_report(struct coordinator *c, const struct matrix_cell *cell, char *why,
		       size_t room)
{
	struct member *zero = &c->members[0];
	struct report *r = &zero->report;
	int err;

	*r = (struct report){ htole64(cell->p50_ns),
			      htole64(cell->p99_ns),
			      htole64(cell->bytes_per_s),
			      htole64(cell->rails),
			      "",
			      "",
			      "",
			      "" };
	copy_text(r->provider, cell->provider, sizeof(r->provider));
	copy_text(r->device, cell->device, sizeof(r->device));
	copy_text(r->way, cell->way, sizeof(r->way));
	copy_text(r->failed, cell->failed, sizeof(r->failed));
	err = send_bytes(c, zero->peer, REPORT, r, sizeof(*r), &zero->report_op);
	if (err)
		snprintf(why, room, "%s", weft_error());
	return err ? err : settle(&zero->report_op, why, room);
}

static int follow_round(struct coordinator *c, const struct go *go)
{
	const struct pairs_plan plan = { le64toh(go->bytes), le64toh(go->time_ns) };
	struct matrix_cell cell = { 0 };
	uint64_t round = le64toh(go->round);
	char why[256];
	uint32_t partner;

	if (!pairs_plan_fits(&plan) || round >= rounds_count(c->size))
		return tool_fail(c->command, "rank 0 asks for what nobody measures");
	if (!c->pairs && open_pairs(c, &plan))
		return TOOL_FAILED;
	partner = rounds_partner(c->size, (uint32_t)round, c->rank);
	if (partner < c->size && !go->skip)
		meet(c, (uint32_t)round, partner, &cell);
	if (tool_ending())
		return TOOL_INTERRUPTED;
	if (send_report(c, &cell, why, sizeof(why)))
		return say_why(c, "can't report to", why);
	return TOOL_OK;
}

int coordinator_follow(struct coordinator *c)
{
	const struct go *go = &c->members[0].go;
	const struct matrix_cell nothing = { 0 };
	int status = listen_for_go(c);
	char why[256];

	while (!status && le64toh(go->round) != GO_END) {
		status = follow_round(c, go);
		if (!status)
			status = listen_for_go(c);
	}
	/* Rank 0 waits for the answer, and does without if there is none. */
	if (!status)
		send_report(c, &nothing, why, sizeof(why));
	return status;
}
