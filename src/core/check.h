/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Check: arguments that many public functions have.  A fault is recorded (last.h).
 *
 * Threads: any, callback.
 */
#ifndef WF_CORE_CHECK_H
#define WF_CORE_CHECK_H

#include <string.h>

#include "core/last.h"

struct weft_node;

/* Check @node.  -EINVAL: NULL.  -EOWNERDEAD: this process is a forked child. */
int wf_check_node(const struct weft_node *node);

/*
 * Check that @memory, which is to be @what ("a landing"), is the host's.  CUDA is asked as by
 * wf_kind_discover().  -ENOTSUP: it is a device's.  Codes of wf_kind_discover().
 */
int wf_check_host(const struct weft_node *node, void *memory, const char *what);

/*
 * Copy to @given the @known bytes that this library knows of @options, a struct that may be
 * shorter or longer and begins with its size.  -EINVAL.
 */
int wf_check_sized_options(const void *options, void *given, size_t known);

/*
 * Check that @out, a struct to be filled in, is not NULL and begins with its size: 0, or -EINVAL
 * and a sentence that names it.
 */
#define WF_NEED_SIZED(out) wf_check_sized(out, #out)
int wf_check_sized(const void *out, const char *name);

/* Copy @options as above, but inline if NULL or of @known bytes, for each call has options. */
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
