/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives of traffic that stay, told by a completion queue: each of their tensors becomes a job
 * that has ended, and is held to account as one.
 *
 * Threads: the one that drives the member.
 */
#ifndef STAYING_H
#define STAYING_H

#include <pthread.h>

#include <weft/weft.h>

struct job;
struct traffic;

struct staying {
	struct weft_queue *queue; /* ends of all receives that stay, and their tensors */
	pthread_mutex_t lock;     /* guards job.parts, which the worker lengthens */
};

/* Open the queue of @t's node.  A negative code: the reason is in weft_error(). */
int staying_open(struct traffic *t);
void staying_close(struct traffic *t);

/* Begin the receive @j, which stays. */
int staying_begin(struct traffic *t, struct job *j);

/* Take the next tensor that has come, or failed.  NULL: there is none now. */
struct job *staying_next(struct traffic *t);

/* Take memory that @j gave for a tensor which has not come; @j has ended.  NULL: there is none. */
struct job *staying_rest(struct job *j);

#endif
