/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What travels: bytes that say who sent them, to whom, and in which place, and
 * then a pattern that follows from that.  No two differ in less than half.
 */
#ifndef CONTENT_H
#define CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of one body. */
struct content {
	uint32_t from, to;
	uint64_t lane;
	uint64_t life;     /* of the sender: another for each node it opens */
	uint64_t sequence; /* in its lane */
};

#define CONTENT_BYTES_MIN sizeof(struct content) /* or 0: then it says nothing */

/* Write @count bytes, 0 or CONTENT_BYTES_MIN at least. */
void content_put(void *bytes, size_t count, const struct content *what);

/* Who sent this?  False: nobody, as the pattern shows. */
bool content_get(const void *bytes, size_t count, struct content *what);

/*
 * What has come of a lane, so that nothing comes twice.  A sender's new life
 * begins anew.
 */
struct content_seen {
	uint64_t life, next;
	uint64_t bits[4096]; /* of the sequences below next; more than pass while one waits */
};

/* False: it has come before, or so long after its successors that nobody knows. */
bool content_is_new(struct content_seen *seen, const struct content *what);

/* A buffer between guards.  NULL: no memory. */
unsigned char *guarded_take(size_t count);
void guarded_give(unsigned char *bytes);

/* Nobody writes here: fill @count bytes of it, so that it shows. */
void guarded_mark(unsigned char *bytes, size_t count);

/* Are @count bytes from @from on, and both guards, as they were marked? */
bool guarded_is_quiet(const unsigned char *bytes, size_t from, size_t count);

#endif
