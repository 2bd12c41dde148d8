/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pace at which bodies are fetched: how many bytes of all bodies together may be asked for
 * and not there yet, so that many senders can't swamp one receiver.
 *
 * A body has a share.  Where there is no room for its next bytes the share stands in line, and
 * the one of the highest priority that has stood there longest goes on first.  Bytes of lower
 * priorities take no room of a share, so that bulk under way does not hold up what is urgent; and a
 * share that was passed over for long gets some room beyond the bound (util/priority.h).  A share
 * that gets nothing for long, because its peer is frozen say, leaves its room to others until it
 * moves again.
 *
 * Threads: owner.
 */
#ifndef WF_PACE_H
#define WF_PACE_H

#include "loop/loop.h"
#include "util/priority.h"

/*
 * Bound on bytes under way.  With 16 MiB the slowest of 8 senders of 16 MiB bodies, two on the
 * way from each, got 1.13 of its rate under reno and 0.5 under bbr, and all together 0.85 and
 * 0.73: loopback, two processors for all nine, medians of 4.
 */
#define WF_PACE_BYTES_MAX (64 * MIB)

struct wf_pace {
	struct wf_loop *loop;
	/* bytes under way by priority, but for shares that stand still */
	uint64_t bytes[WF_PRIORITIES];
	struct wf_list busy;   /* shares with bytes under way */
	struct wf_list lines[WF_PRIORITIES]; /* shares that wait for room, by priority */
	struct wf_priority turns;
	struct wf_timer timer; /* looks for shares that stand still, while others wait */
};

struct wf_pace_share {
	/* set by the owner: go on, for there is room, though maybe too little */
	void (*go_on)(struct wf_pace_share *share);

	/* private to pace.c */
	struct wf_pace *pace;
	uint8_t priority;
	bool has_turn;        /* was passed over for long: the next bytes need no room */
	struct wf_list busy_node, line_node;
	uint64_t bytes;       /* bytes under way */
	uint64_t next_bytes;  /* bytes that the share waits for */
	uint64_t alone_bytes; /* bytes that the share may always have, if no other has any */
	uint64_t moved_ns;    /* when bytes last came, or the first were asked for */
	bool still;           /* nothing has come for long: @bytes do not count in the pace */
};

/* Returns the bytes under way of shares of @priority and higher. */
static inline uint64_t wf_pace_bytes(const struct wf_pace *p, unsigned priority)
{
	uint64_t bytes = 0;

	for (unsigned i = priority; i < WF_PRIORITIES; i++)
		bytes += p->bytes[i];
	return bytes;
}

void wf_pace_init(struct wf_pace *p, struct wf_loop *loop);
void wf_pace_fini(struct wf_pace *p);

void wf_pace_share_init(struct wf_pace_share *s, struct wf_pace *p, uint8_t priority,
			void (*go_on)(struct wf_pace_share *share));

/*
 * Returns whether there is room for @bytes more of @s, which may have @alone_bytes when it is
 * alone.  If not, @s stands in line: go_on follows.
 */
bool wf_pace_admits(struct wf_pace_share *s, uint64_t bytes, uint64_t alone_bytes);

/* Count @bytes as asked for. */
void wf_pace_begin(struct wf_pace_share *s, uint64_t bytes);

/* Count @bytes as there, or as never to come; others may go on inside. */
void wf_pace_end(struct wf_pace_share *s, uint64_t bytes);

/* Take @s out of the line: it needs no more room. */
void wf_pace_leave(struct wf_pace_share *s);

/* Returns whether @s stands in line. */
static inline bool wf_pace_waits(const struct wf_pace_share *s)
{
	return !wf_list_empty(&s->line_node);
}

#endif
