/* SPDX-License-Identifier: BSD-2-Clause */
#include "access.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

#define CHECKSUM_ONE_IN 4 /* of puts */
/* From drain on, for notes to come: with what has begun by then it ends before members give up. */
#define SETTLE_NS (8 * SECOND)

static struct access *access_of(const struct traffic *t, const struct lane *lane)
{
	return (struct access *)&t->accesses[lane->peer][lane->is->calm];
}

static bool is_busy(const struct access *a)
{
	for (size_t i = 0; i < WINDOWS_SLOTS; i++)
		if (a->is_busy[i])
			return true;
	return false;
}

/* Is a window looked at, be it for notes alone? */
static bool is_used(const struct traffic *t, const struct access *a)
{
	return !t->drains || (!a->settled && now_ns() < a->settle_by_ns);
}

bool access_may_begin(const struct traffic *t, const struct lane *lane)
{
	const struct access *a = access_of(t, lane);

	switch (lane->is->kind) {
	case REPORT_FIND:
		return !a->remote && is_used(t, a);
	case REPORT_GET:
		return a->remote && is_used(t, a);
	default:
		return a->remote && !t->drains;
	}
}

static int begin_find(struct traffic *t, struct job *j)
{
	struct weft_op_options options = job_options(t, j);
	char key[WINDOWS_KEY_BYTES];
	size_t length = windows_key(key, t->config.self, j->lane->is->calm);

	return weft_window_find(t->peers[j->lane->peer], key, length, &options, &j->op);
}

/* The marks, and behind them as many bytes of each of some slots, which lie here the other way round. */
static int begin_get(struct traffic *t, struct job *j, struct access *a)
{
	struct weft_access_options options = { .size = sizeof(options), .op = job_options(t, j) };
	struct access_job *g = &j->access;
	struct weft_block blocks[1 + ACCESS_SLOTS_MAX];
	size_t slot_bytes = j->lane->is->bytes_most;

	g->slots = 1 + (unsigned)job_draw(t, ACCESS_SLOTS_MAX);
	g->bytes = job_draw_scaled(t, CONTENT_BYTES_MIN, slot_bytes);
	g->is_last = t->drains && !is_busy(a);
	memcpy(g->marks, a->marks, sizeof(g->marks));
	j->count = WINDOWS_MARKS_BYTES + g->slots * g->bytes;
	j->bytes = guarded_take(j->count);
	if (!j->bytes)
		return -ENOMEM;
	guarded_mark(j->bytes, j->count);
	blocks[0] = (struct weft_block){ j->bytes, 0, WINDOWS_MARKS_BYTES };
	for (unsigned i = 0; i < g->slots; i++)
		blocks[1 + i] = (struct weft_block){
			.local = j->bytes + WINDOWS_MARKS_BYTES + (g->slots - 1 - i) * g->bytes,
			.remote = windows_get_place(job_draw(t, WINDOWS_SLOTS), slot_bytes),
			.bytes = g->bytes,
		};
	return weft_get(a->remote, blocks, 1 + g->slots, &options, &j->op);
}

/* The slot that was free for longest is the next, as far as puts end in order. */
static unsigned take_slot(struct access *a, uint64_t sequence)
{
	unsigned slot = (unsigned)(sequence % WINDOWS_SLOTS);

	while (a->is_busy[slot])
		slot = (slot + 1) % WINDOWS_SLOTS;
	a->is_busy[slot] = true;
	return slot;
}

/* Cut the body of @j in two blocks, the second of which lies before the first here. */
static size_t cut(struct traffic *t, struct job *j, uint64_t place, struct weft_block blocks[2])
{
	size_t first = j->count ? job_draw(t, j->count) : 0, rest = j->count - first;
	unsigned char *copy = first ? malloc(first) : NULL;

	if (!copy) {
		blocks[0] = (struct weft_block){ j->bytes, place, j->count };
		return j->count ? 1 : 0;
	}
	memcpy(copy, j->bytes, first);
	memmove(j->bytes, j->bytes + first, rest);
	memcpy(j->bytes + rest, copy, first);
	free(copy);
	blocks[0] = (struct weft_block){ j->bytes + rest, place, first };
	blocks[1] = (struct weft_block){ j->bytes, place + first, rest };
	return 2;
}

static int begin_put(struct traffic *t, struct job *j, struct access *a)
{
	struct weft_access_options options = { .size = sizeof(options), .op = job_options(t, j) };
	struct windows_note note;
	struct weft_block blocks[2];
	size_t count;
	int err;

	if (!job_fill(t, j))
		return -ENOMEM;
	j->access.slots = take_slot(a, j->what.sequence);
	count = cut(t, j, windows_put_place(j->access.slots, j->lane->is->bytes_most), blocks);
	note = (struct windows_note){ j->what, j->access.slots, j->count };
	options.flags = WEFT_NOTE;
	options.number = (uint32_t)j->what.sequence;
	options.note = &note;
	options.note_bytes = sizeof(note);
	if (!job_draw(t, CHECKSUM_ONE_IN))
		options.op.flags = WEFT_CHECKSUM;
	err = weft_put(a->remote, blocks, count, &options, &j->op);
	if (err)
		a->is_busy[j->access.slots] = false;
	return err;
}

int access_begin(struct traffic *t, struct job *j)
{
	struct access *a = access_of(t, j->lane);

	j->access.found = a->found;
	switch (j->lane->is->kind) {
	case REPORT_FIND:
		return begin_find(t, j);
	case REPORT_GET:
		return begin_get(t, j, a);
	default:
		return begin_put(t, j, a);
	}
}

static void check_find(struct job *j, struct access *a)
{
	if (weft_op_remote(j->op, &a->remote)) {
		job_tell_of(j, REPORT_WRONG, weft_error());
		return;
	}
	a->found++;
	memset(a->marks, 0, sizeof(a->marks));
}

static void check_get(struct traffic *t, struct job *j, struct access *a)
{
	const struct access_job *g = &j->access;
	uint64_t marks[WINDOWS_SLOTS];
	bool lacks = false;

	memcpy(marks, j->bytes, sizeof(marks));
	for (unsigned i = 0; i < g->slots; i++) {
		struct content what;

		if (!content_get(j->bytes + WINDOWS_MARKS_BYTES + i * g->bytes, g->bytes, &what) ||
		    what.from != j->lane->peer || what.to != t->config.self ||
		    what.lane != j->lane->is->calm)
			job_tell_of(j, REPORT_WRONG, "a get read other bytes than are there");
	}
	if (!guarded_is_quiet(j->bytes, j->count, j->count))
		job_tell_of(j, REPORT_TOUCHED, "bytes beside the blocks of a get have changed");
	t->totals.bytes += j->count;
	if (!g->is_last || g->found != a->found)
		return;
	for (size_t i = 0; i < WINDOWS_SLOTS; i++)
		lacks |= marks[i] < g->marks[i];
	a->lacks = lacks;
	a->settled = !lacks;
}

static void check_put(struct traffic *t, struct job *j, struct access *a)
{
	t->totals.bytes += j->count;
	if (j->access.found == a->found)
		a->marks[j->access.slots] = j->what.sequence + 1;
}

void access_check(struct traffic *t, struct job *j)
{
	struct access *a = access_of(t, j->lane);
	enum weft_status status = weft_op_status(j->op);

	if (j->lane->is->kind == REPORT_PUT)
		a->is_busy[j->access.slots] = false;
	if (status == WEFT_NOT_FOUND && j->access.found == a->found) {
		weft_remote_close(a->remote);
		a->remote = NULL;
	}
	if (status != WEFT_OK)
		return;
	if (j->lane->is->kind == REPORT_FIND)
		check_find(j, a);
	else if (j->lane->is->kind == REPORT_GET)
		check_get(t, j, a);
	else
		check_put(t, j, a);
}

void access_drain(struct traffic *t)
{
	for (uint32_t i = 0; i < t->config.count; i++)
		for (unsigned calm = 0; calm < 2; calm++) {
			t->accesses[i][calm].settled = i == t->config.self;
			t->accesses[i][calm].settle_by_ns = now_ns() + SETTLE_NS;
		}
}

/* An access that can't begin, for want of its owner, has been reported by other means. */
static void give_up(struct traffic *t, uint32_t peer, bool calm)
{
	struct access *a = &t->accesses[peer][calm];
	struct report report = { .member = t->config.self,
				 .peer = peer,
				 .kind = REPORT_PUT,
				 .fault = REPORT_LOST,
				 .is_calm = calm,
				 .due_ns = a->settle_by_ns,
				 .ended_ns = now_ns() };

	a->settled = true;
	snprintf(report.text, JOB_TEXT_BYTES, "a put ended well, and its note has not come");
	if (a->lacks)
		job_tell(t, &report);
}

bool access_is_settled(struct traffic *t)
{
	bool all = true;

	for (uint32_t i = 0; i < t->config.count; i++)
		for (unsigned calm = 0; calm < 2; calm++) {
			struct access *a = &t->accesses[i][calm];

			if (!a->settled && now_ns() > a->settle_by_ns)
				give_up(t, i, calm);
			all &= a->settled;
		}
	return all;
}

void access_close(struct traffic *t)
{
	for (uint32_t i = 0; i < t->config.count; i++)
		for (unsigned calm = 0; calm < 2; calm++)
			weft_remote_close(t->accesses[i][calm].remote);
}
