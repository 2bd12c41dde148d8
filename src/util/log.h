/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where notes go: a callback of the node's owner, silent by default.
 *
 * Threads: owner.
 */
#ifndef WF_LOG_H
#define WF_LOG_H

#include "util/base.h"

enum wf_log_level { WF_LOG_WARN = 1, WF_LOG_INFO = 2, WF_LOG_DEBUG = 3 };

struct wf_log {
	void (*line)(void *arg, int level, const char *text); /* NULL: silent */
	void *arg;
	int level; /* lines above it are dropped */
};

void wf_log(const struct wf_log *log, int level, const char *format, ...) WF_PRINTF(3, 4);

#endif
