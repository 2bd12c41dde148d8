/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bell that operations ring when they end.  A thread that waits for many
 * things takes the number of rings, looks at everything, and sleeps only if
 * the bell has not rung since: so it misses nothing, and holds no lock.
 *
 * Threads: any; init and fini: setup.
 */
#ifndef BELL_H
#define BELL_H

#include <pthread.h>
#include <weft/weft.h>

struct bell {
	pthread_mutex_t lock;
	pthread_cond_t rung;
	uint64_t rings;
};

int bell_init(struct bell *b);
void bell_fini(struct bell *b);
void bell_ring(struct bell *b);

/* Rings so far. */
uint64_t bell_rings(struct bell *b);

/* Sleep until @b has rung more than @rings times, or bell_now() is @until_ns. */
void bell_wait(struct bell *b, uint64_t rings, uint64_t until_ns);

/* Nanoseconds of a clock that only goes forward. */
uint64_t bell_now(void);

/* Options of an operation that rings @b at its end. */
struct weft_op_options bell_options(struct bell *b);

#endif
