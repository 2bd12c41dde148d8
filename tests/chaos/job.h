/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of traffic: lanes, their operations, and the state of one member.
 *
 * Threads: the one that drives the member, but for what is said to be written by the worker.
 */
#ifndef JOB_H
#define JOB_H

#include <stdatomic.h>

#include "access.h"
#include "calls.h"
#include "content.h"
#include "landings.h"
#include "pushes.h"
#include "staying.h"
#include "traffic.h"
#include "windows.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

#define JOB_CALM_NS (20 * SECOND) /* deadline of what should not need one */
#define JOB_NO_DEADLINE_NS (UINT64_MAX / 2)
#define JOB_LANES_MAX 28
#define JOB_KEY_BYTES 32
#define JOB_TEXT_BYTES sizeof(((struct report *)0)->text)

/* Work of a lane. */
struct lane_kind {
	enum report_kind kind;
	bool calm;
	size_t bytes_most;
	unsigned limit;
};

struct lane {
	const struct lane_kind *is;
	uint32_t peer;
	uint64_t step; /* counts lanes of a kind; of tensors the step, the same on both ends */
	uint64_t next_sequence;
	unsigned under_way;
	bool is_met; /* an operation with the peer has ended well */
	uint64_t not_before_ns;
	struct content_seen seen;
};

/* Where a received tensor lies. */
enum place { PLACE_OWN, PLACE_POOL, PLACE_ASKED, PLACES };

/* One operation, and its buffer until that was watched for a while. */
struct job {
	struct job *next;
	struct traffic *traffic;
	struct lane *lane;
	struct weft_op *op;
	enum place place;
	unsigned char *bytes; /* guarded */
	size_t count;
	void *view; /* what came and is looked at where it is, for as long as the buffer is watched */
	size_t view_count;
	struct content what;
	struct job *parts; /* memory for tensors of a receive that stays, which are on their way */
	struct access_job access;
	uint64_t begun_ns, due_ns, cancel_ns, cancelled_ns, watched_until_ns;
	bool is_told_late;
	/* Written by the worker. */
	_Atomic uint64_t ended_ns;
	atomic_uint ends, replies;
	atomic_bool reply_is_wrong;
};

struct traffic {
	struct traffic_config config;
	struct weft_node *node;
	struct weft_peer *peers[TRAFFIC_PEERS_MAX];
	struct lane lanes[TRAFFIC_PEERS_MAX][JOB_LANES_MAX];
	struct job *running;
	struct job *watched, **last_watched; /* in the order of their ends */
	size_t watched_bytes;
	uint64_t life, random;
	bool goes, drains, hushed;
	struct traffic_totals totals;
	struct calls calls;
	struct staying staying;
	struct window windows[TRAFFIC_PEERS_MAX][2];  /* the wild and the calm one for a peer */
	struct access accesses[TRAFFIC_PEERS_MAX][2]; /* those of a peer */
	struct landing landings[2];                   /* the wild and the calm one for all */
	struct pushed pushed[TRAFFIC_PEERS_MAX][2];   /* those of a peer */
};

/* Draw one of @count, from 0. */
uint64_t job_draw(struct traffic *t, uint64_t count);

/* Draw from @least to @most, each doubling as likely as the next. */
uint64_t job_draw_scaled(struct traffic *t, uint64_t least, uint64_t most);

/* Draw the bytes of a body: 0, or enough to say whose they are. */
size_t job_draw_bytes(struct traffic *t, size_t most);

/* Report to the conductor.  Threads: any, callback. */
void job_tell(struct traffic *t, const struct report *report);
void job_tell_of(struct job *j, enum report_fault fault, const char *text);

/* Report of what this member owns for @peer, or for all: @peer is itself then. */
void job_tell_owned(struct traffic *t, enum report_kind kind, uint32_t peer, bool calm,
		    enum report_fault fault, uint64_t begun_ns, const char *text);

/* Choose deadline and cancellation of @j, whose end the worker writes down. */
struct weft_op_options job_options(struct traffic *t, struct job *j);

/* Write the key under which tensors pass.  Returns its length. */
size_t job_key(char key[JOB_KEY_BYTES], uint32_t from, uint32_t to);

/* A tensor of @count bytes; borrows both. */
struct weft_tensor job_tensor(void *bytes, int64_t *count);

/* Give @j a new buffer with what comes next in its lane.  False: no memory. */
bool job_fill(struct traffic *t, struct job *j);

/* Free @j, which accounts for nothing any more. */
void job_free(struct job *j);

#endif
