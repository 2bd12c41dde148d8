/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gets and puts of traffic, in windows of the peers, which are found by their keys.
 *
 * Each put has a slot of its own and a note.  Gets read the marks that the owner makes for notes,
 * too; so when traffic drains, each put that ended well is seen to have had its note.
 *
 * Threads: the one that drives the member.
 */
#ifndef ACCESS_H
#define ACCESS_H

#include "windows.h"

#define ACCESS_SLOTS_MAX 4 /* of one get */

struct job;
struct lane;

/* A window of a peer's. */
struct access {
	struct weft_remote *remote; /* NULL: to be found */
	unsigned found;             /* how often */
	bool is_busy[WINDOWS_SLOTS];
	uint64_t marks[WINDOWS_SLOTS]; /* what the owner's must reach: puts that ended well */
	bool lacks;                    /* the last get saw less */
	bool settled;
	uint64_t settle_by_ns;
};

/* A get's or put's part of a job. */
struct access_job {
	unsigned found;
	unsigned slots;  /* of a get; of a put the slot */
	size_t bytes;    /* of a get, from each slot */
	uint64_t marks[WINDOWS_SLOTS];
	bool is_last;    /* a get that no put is under way beside, when traffic drains */
};

/* May an operation of @lane begin now? */
bool access_may_begin(const struct traffic *t, const struct lane *lane);

/* Begin the find, get or put @j. */
int access_begin(struct traffic *t, struct job *j);

/* Account for @j, which has ended. */
void access_check(struct traffic *t, struct job *j);

/* Look for the notes of all puts from now on. */
void access_drain(struct traffic *t);

/* Have all puts had their notes?  One that has had none for long is reported. */
bool access_is_settled(struct traffic *t);

void access_close(struct traffic *t);

#endif
