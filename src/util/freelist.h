/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A freelist: spare pieces of memory, all of one size, for objects that are made and freed all
 * the time and are longer than the kilobyte for which malloc has a fast path.
 *
 * Threads: the owner of the struct.
 */
#ifndef WF_FREELIST_H
#define WF_FREELIST_H

#include "util/list.h"

/*
 * Most bytes kept: the pieces of a thousand messages under way.  A build with a sanitizer keeps
 * none, so that the sanitizer sees uses of a piece that was given back.
 */
#ifndef WF_FREELIST_BYTES_MAX
#define WF_FREELIST_BYTES_MAX MIB
#endif

struct wf_freelist {
	struct wf_list list; /* spare pieces; each begins with its node */
	size_t bytes, zero_from, zero_to;
	size_t count, count_max;
};

/*
 * Set up for pieces of @bytes, at least the size of a wf_list; of each piece that is taken, the
 * bytes from @zero_from up to @zero_to are zero.
 */
void wf_freelist_init(struct wf_freelist *s, size_t bytes, size_t zero_from, size_t zero_to);
void wf_freelist_fini(struct wf_freelist *s);

/* Take a piece, which may also be freed with free().  NULL: no memory. */
void *wf_freelist_take(struct wf_freelist *s);

/* Give @piece back.  Accepts NULL. */
void wf_freelist_give(struct wf_freelist *s, void *piece);

#endif
