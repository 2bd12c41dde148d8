/* SPDX-License-Identifier: BSD-2-Clause */
#include "judge.h"

#include <stdio.h>
#include <unistd.h>

/* Until both ends have found each other again, once they know: that takes the heartbeat's limit. */
#define FIND_NS (2 * SECOND)
/* From the end of an operation to its report: what begins meanwhile has the next link. */
#define REPORT_NS (100 * MS)
#define PRINTED_MAX 12        /* of one round; one mistake breaks many */

static const char *const kinds[] = { "send", "receive", "call", "ping",
				     "staying receive", "find", "get", "put", "window",
				     "seek", "push", "landing" };
static const char *const faults[] = { "failed",    "late",    "twice",
				      "wrong bytes", "touched", "lost", "leaked" };

static uint64_t grace_ns(const struct crew *crew)
{
	return crew->lost_ms * MS + FIND_NS;
}

static bool overlaps(const struct harm *harm, uint64_t from_ns, uint64_t until_ns, uint64_t then_ns)
{
	return harm->from_ns <= until_ns &&
	       (harm->until_ns == UINT64_MAX || harm->until_ns + then_ns >= from_ns);
}

/* Long enough that others may take it for dead. */
static bool is_long(const struct crew *crew, const struct harm *harm)
{
	return harm->until_ns == UINT64_MAX ||
	       harm->until_ns - harm->from_ns >= crew->lost_ms * MS / 2;
}

static bool peer_was_killed(const struct crew *crew, const struct report *r)
{
	for (unsigned i = 0; i < crew->harm_count; i++)
		if (crew->harms[i].kind == HARM_KILL && crew->harms[i].member == r->peer &&
		    overlaps(&crew->harms[i], r->begun_ns, r->ended_ns, grace_ns(crew)))
			return true;
	return false;
}

/* A window that was found before its owner was killed may be used long after. */
static bool was_ever_killed(const struct crew *crew, uint32_t peer)
{
	for (unsigned i = 0; i < crew->harm_count; i++)
		if (crew->harms[i].kind == HARM_KILL && crew->harms[i].member == peer)
			return true;
	return false;
}

static bool peer_was_gone(const struct crew *crew, const struct report *r)
{
	if (peer_was_killed(crew, r))
		return true;
	for (unsigned i = 0; i < crew->harm_count; i++) {
		const struct harm *harm = &crew->harms[i];

		if (!overlaps(harm, r->begun_ns, r->ended_ns, grace_ns(crew)))
			continue;
		if (harm->kind == HARM_CUT)
			return true;
		if (harm->kind == HARM_STOP && is_long(crew, harm) &&
		    (harm->member == r->peer || harm->member == r->member))
			return true;
	}
	return false;
}

/* Late, but its own process was stopped and has had no time since. */
static bool was_stopped(const struct crew *crew, const struct report *r)
{
	for (unsigned i = 0; i < crew->harm_count; i++) {
		const struct harm *harm = &crew->harms[i];

		if (harm->kind == HARM_STOP && harm->member == r->member &&
		    overlaps(harm, r->due_ns, r->ended_ns, FIND_NS + SLACK_NS))
			return true;
	}
	return false;
}

static bool is_find(const struct report *r)
{
	return r->kind == REPORT_FIND || r->kind == REPORT_SEEK;
}

static bool is_excused(const struct crew *crew, const struct report *r)
{
	if (r->fault == REPORT_LATE)
		return was_stopped(crew, r);
	if (r->fault != REPORT_FAILED)
		return false;
	switch (r->status) {
	case WEFT_UNAVAILABLE:
		return peer_was_gone(crew, r);
	case WEFT_DEADLINE_EXCEEDED:
		return !r->is_calm || r->cancelled_ns || crew->is_starved;
	case WEFT_CANCELLED:
		return !r->is_calm || r->cancelled_ns;
	case WEFT_NOT_FOUND:
		return !r->is_calm || (!is_find(r) && was_ever_killed(crew, r->peer));
	case WEFT_UNIMPLEMENTED:
		return is_find(r) && !r->is_calm;
	default:
		return false;
	}
}

static void print(const struct crew *crew, const struct report *r)
{
	printf("  member %u with %u (%s): %s %s %s %s, begun %.3f, due %.3f, ended %.3f: %s\n",
	       r->member, r->peer, crew->provider, r->is_calm ? "calm" : "wild", kinds[r->kind],
	       faults[r->fault],
	       r->fault == REPORT_FAILED ? weft_status_name((enum weft_status)r->status) : "",
	       (double)r->begun_ns / SECOND, (double)r->due_ns / SECOND,
	       (double)r->ended_ns / SECOND, r->text);
}

static void print_harms(const struct crew *crew)
{
	static const char *const names[] = { "kill", "stop", "reset", "cut" };

	for (unsigned i = 0; i < crew->harm_count; i++)
		printf("  %s of %u (%u) from %.3f to %.3f\n", names[crew->harms[i].kind],
		       crew->harms[i].member, crew->harms[i].other,
		       (double)crew->harms[i].from_ns / SECOND,
		       (double)crew->harms[i].until_ns / SECOND);
}

static bool next(const struct crew *crew, unsigned n, struct report *r)
{
	return pread(crew->reports_fd, r, sizeof(*r), (off_t)(n * sizeof(*r))) == sizeof(*r);
}

struct verdict judge(struct crew *crew)
{
	struct verdict verdict = { 0 };
	struct report r;

	for (; next(crew, verdict.reports, &r); verdict.reports++) {
		if (is_excused(crew, &r))
			continue;
		verdict.baseless += r.fault == REPORT_FAILED;
		verdict.corrupted += r.fault == REPORT_WRONG || r.fault == REPORT_TOUCHED;
		if (verdict.broken++ < PRINTED_MAX)
			print(crew, &r);
	}
	if (verdict.broken)
		print_harms(crew);
	if (ftruncate(crew->reports_fd, 0))
		crew_give_up("the reports can't be forgotten");
	return verdict;
}

/* Did an operation begin on the link that the harm at @from_ns ended, by a report at @first_ns? */
static bool had_that_link(const struct report *r, uint64_t from_ns, uint64_t first_ns)
{
	return r->begun_ns <= from_ns || r->begun_ns + REPORT_NS <= first_ns;
}

bool judge_last_failed(const struct crew *crew, unsigned i, unsigned peer, uint64_t from_ns,
		       uint64_t *first_ns, uint64_t *last_ns)
{
	struct report r;

	*first_ns = UINT64_MAX;
	*last_ns = 0;
	for (unsigned pass = 0; pass < 2; pass++)
		for (unsigned n = 0; next(crew, n, &r); n++) {
			if (r.member != i || r.peer != peer || r.fault != REPORT_FAILED ||
			    r.status != WEFT_UNAVAILABLE || r.ended_ns < from_ns)
				continue;
			if (!pass && r.ended_ns < *first_ns)
				*first_ns = r.ended_ns;
			else if (pass && had_that_link(&r, from_ns, *first_ns) && r.ended_ns > *last_ns)
				*last_ns = r.ended_ns;
		}
	return *last_ns != 0;
}

void judge_print(const struct crew *crew, unsigned i, unsigned peer, uint64_t last_ns)
{
	unsigned count = 0, at = 0;
	struct report r;

	for (unsigned n = 0; next(crew, n, &r); n++)
		count += r.member == i && r.peer == peer;
	printf("  member %u made %u reports of %u: the first, the last, and that at %.3f\n", i, count,
	       peer, (double)last_ns / SECOND);
	for (unsigned n = 0; next(crew, n, &r); n++) {
		if (r.member != i || r.peer != peer)
			continue;
		if (at < PRINTED_MAX / 2 || count - at <= PRINTED_MAX / 2 || r.ended_ns == last_ns)
			print(crew, &r);
		at++;
	}
}
