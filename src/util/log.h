/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log: a callback of the node's owner, silent by default and never called twice at once.
 *
 * Threads: owner, except where a function says otherwise.
 */
#ifndef WF_LOG_H
#define WF_LOG_H

#include <pthread.h>
#include "util/base.h"

enum wf_log_level { WF_LOG_WARN = 1, WF_LOG_INFO = 2, WF_LOG_DEBUG = 3 };

struct wf_log {
	void (*line)(void *arg, int level, const char *text); /* NULL: silent */
	void *arg;
	int level; /* lines of a higher level are dropped */
	pthread_mutex_t *lock; /* held around @line; NULL: all lines come from one thread */
};

/* Return whether a line of @level reaches the callback. */
static inline bool wf_log_hears(const struct wf_log *log, int level)
{
	return log && log->line && level <= log->level;
}

void wf_log(const struct wf_log *log, int level, const char *format, ...) WF_PRINTF(3, 4);

/*
 * Log as wf_log() does, unless another thread is in the callback and may be stuck there.
 * Threads: any.
 */
void wf_log_outside(const struct wf_log *log, int level, const char *format, ...) WF_PRINTF(3, 4);

/* A callback that prints to standard error, each line by one call. */
void wf_log_print(void *arg, int level, const char *text);

#endif
