/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pushes of traffic, into landings of the peers, which are found by their keys.
 *
 * A calm push has time enough for its turn: one that ends by its deadline shows that the slots of a
 * landing have run dry.
 *
 * Threads: the one that drives the member.
 */
#ifndef PUSHES_H
#define PUSHES_H

#include <stdbool.h>

struct job;
struct lane;
struct traffic;
struct weft_remote;

/* A landing of a peer's. */
struct pushed {
	struct weft_remote *remote; /* NULL: to be found */
	unsigned found;             /* how often */
};

/* May an operation of @lane begin now? */
bool pushes_may_begin(const struct traffic *t, const struct lane *lane);

/* Begin to seek the landing, or the push @j. */
int pushes_begin(struct traffic *t, struct job *j);

/* Account for @j, which has ended. */
void pushes_check(struct traffic *t, struct job *j);

void pushes_close(struct traffic *t);

#endif
