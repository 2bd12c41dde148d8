/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Check: arguments that many public functions have.  What is wrong is recorded (last.h).
 *
 * Threads: any, callback.
 */
#ifndef WF_API_CHECK_H
#define WF_API_CHECK_H

#include "api/last.h"

struct weft_node;

/* -EINVAL: NULL.  -EOWNERDEAD: this process is a forked child. */
int wf_check_node(const struct weft_node *node);

/*
 * The @known bytes of @options that this library knows, from a struct that may
 * be shorter or longer and begins with its size.  NULL: all zero.
 */
int wf_check_options(const void *options, void *given, size_t known);

#endif
