/* SPDX-License-Identifier: BSD-2-Clause */
#include "bell.h"

#include <errno.h>
#include <time.h>

int bell_init(struct bell *b)
{
	pthread_condattr_t attributes;
	int err = pthread_condattr_init(&attributes);

	if (err)
		return -err;
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	err = pthread_cond_init(&b->rung, &attributes);
	pthread_condattr_destroy(&attributes);
	if (err)
		return -err;

	err = pthread_mutex_init(&b->lock, NULL);
	if (err)
		pthread_cond_destroy(&b->rung);
	b->rings = 0;
	return -err;
}

void bell_fini(struct bell *b)
{
	pthread_mutex_destroy(&b->lock);
	pthread_cond_destroy(&b->rung);
}

void bell_ring(struct bell *b)
{
	pthread_mutex_lock(&b->lock);
	b->rings++;
	pthread_cond_broadcast(&b->rung);
	pthread_mutex_unlock(&b->lock);
}

uint64_t bell_rings(struct bell *b)
{
	uint64_t rings;

	pthread_mutex_lock(&b->lock);
	rings = b->rings;
	pthread_mutex_unlock(&b->lock);
	return rings;
}

void bell_wait(struct bell *b, uint64_t rings, uint64_t until_ns)
{
	struct timespec t = { (time_t)(until_ns / 1000000000),
			      (long)(until_ns % 1000000000) };
	int err = 0;

	pthread_mutex_lock(&b->lock);
	while (b->rings == rings && err == 0)
		err = pthread_cond_timedwait(&b->rung, &b->lock, &t);
	pthread_mutex_unlock(&b->lock);
}

uint64_t bell_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void ring_when_done(struct weft_op *op, void *bell)
{
	(void)op;
	bell_ring(bell);
}

struct weft_op_options bell_options(struct bell *b)
{
	struct weft_op_options options = WEFT_OP_OPTIONS_INIT;

	options.done = ring_when_done;
	options.arg = b;
	return options;
}
