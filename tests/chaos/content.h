/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bodies that travel: bytes that say sender, receiver and place, and then a
 * pattern that follows from these.  No two bodies differ in less than half.
 */
#ifndef CONTENT_H
#define CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The facts that a body says. */
struct content {
	uint32_t from, to;
	uint64_t lane;
	uint64_t life;     /* number of the sender's node: a new one for each that it opens */
	uint64_t sequence; /* number of the body in its lane */
};

#define CONTENT_BYTES_MIN sizeof(struct content) /* or 0: the body says nothing */

/* Write @count bytes, 0 or CONTENT_BYTES_MIN at least. */
void content_put(void *bytes, size_t count, const struct content *what);

/* Read what a body says.  False: the pattern is wrong, so nobody sent it. */
bool content_get(const void *bytes, size_t count, struct content *what);

/*
 * Bodies that have come in a lane, so that none comes twice.  A sender's new life
 * begins anew.
 */
struct content_seen {
	uint64_t life, next;
	uint64_t bits[4096]; /* sequences below next; more than pass while one waits */
};

/* Note a body.  False: it has come before, or too long after its successors to know. */
bool content_is_new(struct content_seen *seen, const struct content *what);

/* Allocate a buffer between guards.  NULL: no memory. */
unsigned char *guarded_take(size_t count);
void guarded_give(unsigned char *bytes);

/* Fill @count bytes that nobody may write, so that a write shows. */
void guarded_mark(unsigned char *bytes, size_t count);

/* Are @count bytes from @from on, and both guards, as they were marked? */
bool guarded_is_quiet(const unsigned char *bytes, size_t from, size_t count);

#endif
