/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream of a simulated run, with both of its ends: the caller writes all that it has and
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
	unsigned asks;               /* the server finishes after so many; beyond @up: after the end */
	bool fails;                  /* with ABORTED */
	bool unwatched;              /* nobody waits for writes */
	uint64_t listen_ns, ask_ns;  /* when caller and server begin to read */
	uint64_t close_ns;           /* the caller lets go; 0: when all is over */
	uint64_t read_limit_ns;      /* of each read of the caller's, which is made again; 0: the call's */

	/* what became of it */
	struct weft_stream *stream;  /* NULL: not begun, or closed */
	bool closed;                 /* before it was over */
	struct wf_flight *writes;
	unsigned written;            /* that could be begun */
	unsigned heard, asked;       /* messages that caller and server have read */
	bool reading;                /* the caller does */
	bool heard_end, asked_end;   /* there are no more */
	bool read_failed;            /* the caller's last one */
};

/* Draw a plan for @leg. */
void wf_talk_plan(struct wf_leg *leg);

/* Begin; as weft_stream_open. */
int wf_talk_begin(struct wf_leg *leg);

/* Do what is due at the caller's end; when the next is. */
uint64_t wf_talk_run(struct wf_leg *leg, uint64_t now);

/* The same at the ends of all servers. */
uint64_t wf_talk_serve(uint64_t now);

/* All operations of @leg have ended, and its stream is closed. */
bool wf_talk_is_over(const struct wf_leg *leg);

/* Give up the handles, before the nodes close; the rest, after that. */
void wf_talk_release(struct wf_leg *leg);
void wf_talk_free(struct wf_leg *leg);
void wf_talk_forget_servers(void);

#endif
