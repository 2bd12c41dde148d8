/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traffic of one member with all others: tensors, calls and pings, as many at
 * a time as each lane has room for, without end.
 *
 * A lane is one kind and size of operation with one peer.  On calm lanes
 * neither end cancels and deadlines are far, so only a peer's or its own
 * trouble may fail an operation; on wild ones deadlines begin at 50 ms and
 * everything may be cancelled.  Tensors of a lane pass under one step and key,
 * which need no agreement, and say themselves who sent them in which place.
 *
 * Threads: the one that drives the member; what runs on the worker is inside.
 */
#ifndef TRAFFIC_H
#define TRAFFIC_H

#include <stdbool.h>

#include "report.h"

#define TRAFFIC_PEERS_MAX 8

struct traffic;

struct traffic_config {
	const struct weft_node_options *options;  /* of its node */
	unsigned self, count;                     /* members, and which one this is */
	const char *addresses[TRAFFIC_PEERS_MAX]; /* their doors */
	uint64_t seed;
	uint64_t bound_ns;  /* beyond a deadline, as weft_wait(3) gives it */
	unsigned gap_us;    /* mean pause of a lane between two operations */
	int reports_fd;
};

struct traffic_totals {
	uint64_t ended, failed, cancelled, bytes;
};

/* Open a node that serves; nothing begins yet.  NULL: the reason is in weft_error(). */
struct traffic *traffic_open(const struct traffic_config *config);
struct weft_node *traffic_node(const struct traffic *t);

/* Begin. */
void traffic_go(struct traffic *t);

/* One turn: answer, look what has ended, and begin anew. */
void traffic_turn(struct traffic *t);

/* From now on only receive. */
void traffic_drain(struct traffic *t);

/* From now on begin nothing, and cancel what still receives. */
void traffic_hush(struct traffic *t);

/* Has all ended that drain, or hush, leaves to end? */
bool traffic_is_idle(const struct traffic *t);

void traffic_totals(const struct traffic *t, struct traffic_totals *totals);

/* After hush, when it is idle, and before the node closes. */
void traffic_stop(struct traffic *t);

/* After the node has closed. */
void traffic_close(struct traffic *t);

#endif
