/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traffic of one member with all others: tensors, receives that stay, windows, landings, calls and
 * pings, as many at a time as each lane has room for, without end.
 *
 * A lane is one kind and size of operation with one peer.  On calm lanes
 * neither end cancels and deadlines are far, so only a peer's or its own
 * trouble may fail an operation; on wild lanes deadlines begin at 50 ms and
 * everything may be cancelled.  Tensors of a lane pass under one step and key,
 * which need no agreement, and say themselves their sender and place.
 *
 * Threads: the one that drives the member; callbacks on the worker are inside.
 */
#ifndef TRAFFIC_H
#define TRAFFIC_H

#include <stdbool.h>

#include "report.h"

#define TRAFFIC_PEERS_MAX 8

struct traffic;

struct traffic_config {
	const struct weft_node_options *options;  /* options of the member's node */
	unsigned self, count;                     /* number of the member, and of all members */
	const char *addresses[TRAFFIC_PEERS_MAX]; /* doors of the members */
	uint64_t seed;
	uint64_t bound_ns;  /* bound beyond a deadline, as weft_wait(3) gives it */
	unsigned gap_us;    /* mean pause of a lane between two operations */
	int reports_fd;
};

struct traffic_totals {
	uint64_t ended, failed, cancelled, bytes;
};

/* Open a node that serves; nothing begins yet.  NULL: the reason is in weft_error(). */
struct traffic *traffic_open(const struct traffic_config *config);
struct weft_node *traffic_node(const struct traffic *t);

/* Begin the traffic. */
void traffic_go(struct traffic *t);

/* Take a turn: answer, look what has ended, and begin anew. */
void traffic_turn(struct traffic *t);

/* Has an operation with each of the others ended well? */
bool traffic_has_met_all(struct traffic *t);

/* Send no more, and only receive from now on. */
void traffic_drain(struct traffic *t);

/* Begin nothing from now on, and cancel receives that still run. */
void traffic_hush(struct traffic *t);

/* Have all operations ended that drain, or hush, leaves to end? */
bool traffic_is_idle(struct traffic *t);

void traffic_totals(const struct traffic *t, struct traffic_totals *totals);

/* Stop after hush, when the traffic is idle, and before the node closes: its windows close. */
void traffic_stop(struct traffic *t);

/* Free @t after the node has closed. */
void traffic_close(struct traffic *t);

#endif
