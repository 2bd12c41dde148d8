/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream of a simulated run, with its two ends: the caller writes all that it has and
 * half-closes, the server writes all that it has, each reads when its time comes, and the
 * server finishes when it has read enough.
 *
 * A message that is read is the next one that was written, or the run has failed.
 */
#ifndef WF_SIM_TALK_H
#define WF_SIM_TALK_H

#include "tests/sim/world.h"

struct wf_leg;

struct wf_talk {
	/* the plan */
	unsigned up, down;           /* messages from the caller, and from the server */
	size_t up_bytes, down_bytes; /* no message is longer */
	unsigned asks;               /* messages before the server finishes; beyond @up: the end */
	bool fails;                  /* the server fails with ABORTED */
	bool unwatched;              /* nobody waits for writes */
	uint64_t listen_ns, ask_ns;  /* when caller and server begin to read */
	uint64_t close_ns;           /* when the caller lets go; 0: when all is over */
	uint64_t read_limit_ns;      /* limit of a caller's read, made again then; 0: the call's */

	/* the run */
	struct weft_stream *stream;  /* NULL: not begun, or closed */
	bool closed;                 /* closed before the end */
	struct wf_flight *writes;
	unsigned written;            /* writes that could be begun */
	unsigned heard, asked;       /* messages that caller and server have read */
	bool reading;                /* the caller reads */
	bool heard_end, asked_end;   /* no message is left for caller, or server */
	bool read_failed;            /* the caller's last read failed */
};

/* Draw a plan for @leg. */
void wf_talk_plan(struct wf_leg *leg);

/* Begin the stream.  Codes as of weft_stream_open. */
int wf_talk_begin(struct wf_leg *leg);

/* Do what is due at the caller's end.  Returns when the next thing is. */
uint64_t wf_talk_run(struct wf_leg *leg, uint64_t now);

/* Do what is due at the ends of all servers.  Returns when the next thing is. */
uint64_t wf_talk_serve(uint64_t now);

/* Have all operations of @leg ended, and is its stream closed? */
bool wf_talk_is_over(const struct wf_leg *leg);

/* Give up the handles, before the nodes close. */
void wf_talk_release(struct wf_leg *leg);
/* Free the rest, after the nodes have closed. */
void wf_talk_free(struct wf_leg *leg);
void wf_talk_forget_servers(void);

#endif
