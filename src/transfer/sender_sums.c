/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/sender_sums.h"

#include <stdlib.h>

#include "util/checksum.h"

#define TELL_AGAIN_NS WF_NS_PER_MS /* pause after there was no memory for a record */
#define HELPED_NS (10 * WF_NS_PER_US) /* interval of looks at the helper; not tuned */
#define HELP_BYTES (4 * MIB) /* bytes a job: dropping one waits until it ends, 0.15 ms at 27 GB/s */

void wf_sender_sums_init(struct wf_sender_sums_common *summers, struct wf_loop *loop, bool helper)
{
	*summers = (struct wf_sender_sums_common){ .loop = loop, .helpless = !helper };
}

void wf_sender_sums_fini(struct wf_sender_sums_common *summers)
{
	wf_copy_thread_close(summers->helper);
}

struct wf_sender_sums *wf_sender_sums_open(struct wf_sender_sums_common *summers, void *owner,
					   int (*tell)(struct wf_sender_sums *s,
						       const struct wf_record_sums *record))
{
	struct wf_sender_sums *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->summers = summers;
	s->owner = owner;
	s->tell = tell;
	return s;
}

void wf_sender_sums_close(struct wf_sender_sums *s)
{
	wf_sender_sums_stop(s);
	free(s);
}

void wf_sender_sums_stop(struct wf_sender_sums *s)
{
	if (!s)
		return;
	wf_timer_stop(&s->summers->loop->timers, &s->timer);
	if (s->aside)
		wf_copy_thread_drop(s->summers->helper, s);
	s->aside = false;
}

/* Tell the record, which is full or has the last sums.  -ENOMEM: not yet. */
static int tell(struct wf_sender_sums *s)
{
	int err = s->tell(s, &s->record);

	if (err)
		return err;
	s->record.first += s->record.count;
	s->record.count = 0;
	s->told++;
	return 0;
}

/* Is there room in the record for the sum of another piece, and a piece? */
static bool is_left(const struct wf_sender_sums *s)
{
	return s->record.count < WF_RECORD_SUMS_MAX &&
	       s->record.first + s->record.count < wf_body_piece_count(s->bytes);
}

/* The end of the next piece. */
static uint64_t next_end(const struct wf_sender_sums *s)
{
	return WF_MIN((s->record.first + s->record.count + 1) * wf_body_piece_bytes(s->bytes),
		      s->bytes);
}

/* Sum up the next piece.  Returns its size. */
static uint64_t sum_piece(struct wf_sender_sums *s)
{
	struct wf_record_sums *r = &s->record;
	uint64_t offset = (r->first + r->count) * wf_body_piece_bytes(s->bytes);
	uint64_t bytes = next_end(s) - offset;

	r->sums[r->count++] = wf_checksum(s->buffer + offset % s->buffer_bytes, bytes);
	return bytes;
}

/* Sum up in the helper's thread, to which the worker leaves the record and the body. */
static int sum_aside(const struct wf_copy_thread_job *job)
{
	struct wf_sender_sums *s = job->owner;

	for (uint64_t bytes = 0; bytes < HELP_BYTES && is_left(s) && next_end(s) <= s->until;)
		bytes += sum_piece(s);
	return 0;
}

/* Returns the helper, started if it can be; NULL: it can't. */
static struct wf_copy_thread *helper_of(struct wf_sender_sums_common *summers)
{
	if (!summers->helper && !summers->helpless)
		summers->helpless = wf_copy_thread_open(NULL, NULL, &summers->helper) != 0;
	return summers->helper;
}

static bool give_aside(struct wf_sender_sums *s)
{
	struct wf_copy_thread *helper = helper_of(s->summers);
	const struct wf_copy_thread_job job = { .owner = s, .run = sum_aside };

	s->until = s->ready;
	s->aside = helper && !wf_copy_thread_give(helper, &job);
	return s->aside;
}

/* Take the ended jobs of the helper, for any body. */
static void hear_helper(struct wf_sender_sums_common *summers)
{
	struct wf_sender_sums *s;
	int status;

	while (summers->helper && (s = wf_copy_thread_ended(summers->helper, &status)))
		s->aside = false;
}

static bool may_sum(const struct wf_sender_sums *s)
{
	return is_left(s) && next_end(s) <= s->ready;
}

/* Without a helper a turn sums up one piece: meanwhile reads of this body and others go on. */
static void go_on(struct wf_timer *timer)
{
	struct wf_sender_sums *s = WF_CONTAINER(timer, struct wf_sender_sums, timer);
	struct wf_loop *l = s->summers->loop;

	hear_helper(s->summers);
	if (s->aside || (may_sum(s) && give_aside(s))) {
		wf_loop_timer(l, timer, l->now_ns + HELPED_NS, go_on);
		return;
	}
	if (may_sum(s))
		sum_piece(s);
	if (!is_left(s) && tell(s))
		wf_loop_timer(l, timer, l->now_ns + TELL_AGAIN_NS, go_on);
	else if (s->told < s->asked && may_sum(s))
		wf_loop_timer(l, timer, l->now_ns, go_on);
	if (s->moved)
		s->moved(s);
}

static void start(struct wf_sender_sums *s)
{
	struct wf_loop *l = s->summers->loop;

	if (s->told < s->asked && may_sum(s))
		wf_loop_timer(l, &s->timer, l->now_ns, go_on);
}

void wf_sender_sums_ready(struct wf_sender_sums *s, const void *buffer, uint64_t buffer_bytes,
			  uint64_t ready)
{
	/* A buffer that is set stays: the helper may be reading it. */
	if (!s->ready) {
		s->buffer = buffer;
		s->buffer_bytes = buffer_bytes;
	}
	s->ready = ready;
	if (!s->timer.armed)
		start(s);
}

void wf_sender_sums_ask(struct wf_sender_sums *s, uint64_t bytes, uint64_t pull)
{
	if (!s->asked) {
		s->bytes = bytes;
		s->record = (struct wf_record_sums){ .pull = pull };
	}
	if (s->record.pull == pull &&
	    s->asked * WF_RECORD_SUMS_MAX < wf_body_piece_count(bytes) && s->asked++ == s->told)
		start(s);
}

uint64_t wf_sender_sums_over(const struct wf_sender_sums *s)
{
	uint32_t pieces;

	if (!s || !s->asked)
		return 0;
	pieces = s->record.first + (s->aside ? 0 : s->record.count);
	return WF_MIN(pieces * wf_body_piece_bytes(s->bytes), s->bytes);
}
