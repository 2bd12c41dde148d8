/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/pace.h"

#include "util/clock.h"

#define STILL_NS (100 * WF_NS_PER_MS) /* longer than a read, except where pacing is not needed */

/* Bytes under way that shares which were passed over may have beyond the bound; not tuned yet. */
#define PASSED_BYTES (WF_PACE_BYTES_MAX / WF_PRIORITY_PASSES)

void wf_pace_init(struct wf_pace *p, struct wf_loop *loop)
{
	*p = (struct wf_pace){ .loop = loop };
	wf_list_init(&p->busy);
	for (unsigned i = 0; i < WF_PRIORITIES; i++)
		wf_list_init(&p->lines[i]);
}

void wf_pace_fini(struct wf_pace *p)
{
	wf_timer_stop(&p->loop->timers, &p->timer);
}

void wf_pace_share_init(struct wf_pace_share *s, struct wf_pace *p, uint8_t priority,
			void (*go_on)(struct wf_pace_share *share))
{
	*s = (struct wf_pace_share){ .go_on = go_on, .pace = p, .priority = priority };
	wf_list_init(&s->busy_node);
	wf_list_init(&s->line_node);
}

static bool has_room(const struct wf_pace_share *s)
{
	return wf_pace_bytes(s->pace, s->priority) + s->next_bytes <=
	       WF_MAX(s->alone_bytes, WF_PACE_BYTES_MAX);
}

static struct wf_pace_share *first_in_line(const struct wf_pace *p, unsigned priority)
{
	return WF_CONTAINER(wf_list_first(&p->lines[priority]), struct wf_pace_share, line_node);
}

/* Returns the share that goes on next; NULL: there is no room for it. */
static struct wf_pace_share *next_in_line(const struct wf_pace *p)
{
	unsigned bits = wf_priority_waiting(p->lines), priority;
	struct wf_pace_share *s;

	if (!bits)
		return NULL;
	priority = wf_priority_next(&p->turns, bits);
	s = first_in_line(p, priority);
	s->has_turn = p->turns.passed[priority] == WF_PRIORITY_PASSES &&
		      p->bytes[priority] + s->next_bytes <= PASSED_BYTES;
	if (s->has_turn || has_room(s))
		return s;
	/* Where one that was passed over has no room, one of a higher priority may have. */
	while (bits >> ++priority) {
		s = wf_list_empty(&p->lines[priority]) ? NULL : first_in_line(p, priority);
		if (s && has_room(s))
			return s;
	}
	return NULL;
}

/* Let shares go on while there is room, the one that has waited longest first. */
static void call_waiting(struct wf_pace *p)
{
	struct wf_pace_share *s;

	while ((s = next_in_line(p))) {
		wf_list_remove(&s->line_node);
		s->go_on(s);
	}
}

static void look_for_still(struct wf_timer *timer)
{
	struct wf_pace *p = WF_CONTAINER(timer, struct wf_pace, timer);
	uint64_t now_ns = p->loop->now_ns;

	WF_LIST_EACH(node, &p->busy) {
		struct wf_pace_share *s = WF_CONTAINER(node, struct wf_pace_share, busy_node);

		if (s->still || now_ns - s->moved_ns < STILL_NS)
			continue;
		s->still = true;
		p->bytes[s->priority] -= s->bytes;
	}
	call_waiting(p);
	if (wf_priority_waiting(p->lines))
		wf_loop_timer(p->loop, timer, now_ns + STILL_NS, look_for_still);
}

bool wf_pace_admits(struct wf_pace_share *s, uint64_t bytes, uint64_t alone_bytes)
{
	struct wf_pace *p = s->pace;

	s->next_bytes = bytes;
	s->alone_bytes = alone_bytes;
	if (has_room(s) || s->has_turn)
		return true;
	if (!wf_pace_waits(s))
		wf_list_append(&p->lines[s->priority], &s->line_node);
	if (!p->timer.armed)
		wf_loop_timer(p->loop, &p->timer, p->loop->now_ns + STILL_NS, look_for_still);
	return false;
}

void wf_pace_begin(struct wf_pace_share *s, uint64_t bytes)
{
	struct wf_pace *p = s->pace;

	if (!s->bytes) {
		s->moved_ns = p->loop->now_ns;
		wf_list_append(&p->busy, &s->busy_node);
	}
	s->bytes += bytes;
	s->has_turn = false;
	if (!s->still)
		p->bytes[s->priority] += bytes;
	wf_priority_took(&p->turns, wf_priority_waiting(p->lines), s->priority);
}

void wf_pace_end(struct wf_pace_share *s, uint64_t bytes)
{
	struct wf_pace *p = s->pace;

	if (s->still)
		p->bytes[s->priority] += s->bytes;
	s->still = false;
	s->moved_ns = p->loop->now_ns;
	s->bytes -= bytes;
	p->bytes[s->priority] -= bytes;
	if (!s->bytes)
		wf_list_remove(&s->busy_node);
	call_waiting(p);
}

void wf_pace_leave(struct wf_pace_share *s)
{
	wf_list_remove(&s->line_node);
	s->has_turn = false;
}
