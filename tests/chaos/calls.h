/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of traffic, and the service that answers them, some of them later.
 *
 * Threads: the one that drives the member; the service is served on the worker.
 */
#ifndef CALLS_H
#define CALLS_H

#include <pthread.h>
#include <stdbool.h>

#include "content.h"
#include "traffic.h"
#include "tests/chaos/chaos.pb-c.h"

#define CALLS_LANES 2

struct job;
struct owed;

struct calls {
	Chaos__Echo_Service service;
	struct weft_stub *stubs[TRAFFIC_PEERS_MAX];
	struct content_seen seen[TRAFFIC_PEERS_MAX][CALLS_LANES]; /* the worker's */
	pthread_mutex_t lock;
	struct owed *owed; /* calls to answer; under the lock */
};

void calls_init(struct calls *calls);
void calls_fini(struct calls *calls);

/* Begin the call @j. */
int calls_begin(struct traffic *t, struct job *j);

/* Report what is wrong with the replies to @j. */
void calls_check(struct job *j);

/* Answer the calls that are due, or @all. */
void calls_answer(struct traffic *t, bool all);

#endif
