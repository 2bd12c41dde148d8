/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where notes go: a callback of the node's owner, silent by default, that is
 * never called twice at once.
 *
 * Threads: owner, but for what says otherwise.
 */
#ifndef WF_LOG_H
#define WF_LOG_H

#include <pthread.h>
#include "util/base.h"

enum wf_log_level { WF_LOG_WARN = 1, WF_LOG_INFO = 2, WF_LOG_DEBUG = 3 };

struct wf_log {
	void (*line)(void *arg, int level, const char *text); /* NULL: silent */
	void *arg;
	int level; /* lines above it are dropped */
	pthread_mutex_t *lock; /* NULL: all lines come from one thread */
};

/* Would a line of @level be heard? */
static inline bool wf_log_hears(const struct wf_log *log, int level)
{
	return log && log->line && level <= log->level;
}

void wf_log(const struct wf_log *log, int level, const char *format, ...) WF_PRINTF(3, 4);

/* The same, unless another thread is in the callback: that may be what it is stuck in.  Threads: any. */
void wf_log_outside(const struct wf_log *log, int level, const char *format, ...) WF_PRINTF(3, 4);

/* A callback that prints to standard error, a line at once. */
void wf_log_print(void *arg, int level, const char *text);

#endif
