/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Check: arguments that many public functions have.  What is wrong is recorded (last.h).
 *
 * Threads: any, callback.
 */
#ifndef WF_CORE_CHECK_H
#define WF_CORE_CHECK_H

#include <string.h>

#include "core/last.h"

struct weft_node;

/* -EINVAL: NULL.  -EOWNERDEAD: this process is a forked child. */
int wf_check_node(const struct weft_node *node);

/*
 * The @known bytes of @options that this library knows, from a struct that may
 * be shorter or longer and begins with its size.
 */
int wf_check_sized_options(const void *options, void *given, size_t known);

/* The same; inline for the size that this library knows, and for none: each call has some. */
static inline int wf_check_options(const void *options, void *given, size_t known)
{
	size_t size;

	if (!options) {
		memset(given, 0, known);
		return 0;
	}
	memcpy(&size, options, sizeof(size));
	if (size != known)
		return wf_check_sized_options(options, given, known);
	memcpy(given, options, known);
	return 0;
}

#endif
