/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reduce: arrays of numbers combined element by element, as collectives do.  Pure.
 *
 * Arrays are combined in the order in which they are given, in any block of elements, so that the
 * same arrays give the same bits everywhere, in whatever way a thread rounds.  Numbers of 16 bits
 * are combined as float32, and rounded once, at the end.  Sums and products of integers wrap.  Of
 * booleans a sum and the largest are "or", a product and the smallest "and".
 *
 * Threads: any.
 */
#ifndef WF_GROUP_REDUCE_H
#define WF_GROUP_REDUCE_H

#include <weft/collective.h>
#include "util/error.h"

/* Combine @count elements of @in[0] to @in[@arrays - 1] to @out, which may be one of them. */
typedef void (*wf_reduce_function)(void *out, const void *const *in, unsigned arrays,
				   size_t count);

struct wf_reduce {
	wf_reduce_function run;
	size_t element_bytes;
	size_t lanes; /* numbers of an element: two of a complex one */
};

/*
 * Find how arrays of @dtype are combined by @reduction.  -EINVAL: there is no such reduction of
 * these numbers.
 */
int wf_reduce_find(struct weft_dtype dtype, enum weft_reduction reduction,
		   struct wf_reduce *reduce, struct wf_error *e);

/* Combine @arrays at @in, each of @count elements, to @out, which may be one of them. */
void wf_reduce_run(const struct wf_reduce *reduce, void *out, const void *const *in,
		   unsigned arrays, size_t count);

#endif
