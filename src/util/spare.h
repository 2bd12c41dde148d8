/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Spare pieces of memory, all of one size.  What is made and freed all the
 * time, and is longer than the kilobyte that malloc has a fast way for, goes
 * round here.
 *
 * Threads: whoever owns it.
 */
#ifndef WF_SPARE_H
#define WF_SPARE_H

#include "util/list.h"

/*
 * Bytes kept: the pieces of a thousand messages under way.  None in a build with a
 * sanitizer, so that it sees who uses a piece that was given back.
 */
#ifndef WF_SPARE_BYTES_MAX
#define WF_SPARE_BYTES_MAX MIB
#endif

struct wf_spare {
	struct wf_list list; /* the pieces begin with their place in it */
	size_t bytes, zero_from, zero_to;
	size_t count, count_max;
};

/*
 * For pieces of @bytes, at least the size of a wf_list, of which those from @zero_from up to
 * @zero_to are to be zero.
 */
void wf_spare_init(struct wf_spare *s, size_t bytes, size_t zero_from, size_t zero_to);
void wf_spare_fini(struct wf_spare *s);

/* A piece; NULL: no memory.  It may also be freed with free(). */
void *wf_spare_take(struct wf_spare *s);

/* Give @piece back.  Accepts NULL. */
void wf_spare_give(struct wf_spare *s, void *piece);

#endif
