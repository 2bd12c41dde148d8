/* SPDX-License-Identifier: BSD-2-Clause */
/* Patterns of text, as an administrator writes them: '*' stands for any text, also for none. */
#ifndef WF_PATTERN_H
#define WF_PATTERN_H

#include "util/base.h"

/* Do the @bytes of @text, which may be any, match the @pattern of @pattern_bytes?  Threads: any. */
bool wf_pattern_matches(const char *pattern, size_t pattern_bytes, const char *text, size_t bytes);

#endif
