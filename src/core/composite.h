/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Composite: an operation that is made of others by a floor above, which also ends it.
 *
 * The operation has deadline, callback, queue and cancel as any has, and holds nothing of a peer.
 * Its maker is told when to begin, and to stop when time is over; operations that it is made of are
 * the maker's, and have no deadline of their own.
 */
#ifndef WF_CORE_COMPOSITE_H
#define WF_CORE_COMPOSITE_H

#include <weft/weft.h>
#include "util/error.h"

/* The maker's functions.  All but free() and what describes run on the operation's worker. */
struct wf_composite_functions {
	/* Begin, which may end the operation at once. */
	void (*start)(void *maker);
	/*
	 * End the operation soon, because of @e: it was cancelled, its time is over, or the node has
	 * closed, maybe before the start.
	 */
	void (*stop)(void *maker, const struct wf_error *e);
	/* Free @maker, whose operation nobody has any more.  Threads: any. */
	void (*free)(void *maker);
	/* Returns a number that differs once the operation has come further. */
	uint64_t (*progress)(void *maker);
	/* Append to @text what the operation is. */
	void (*describe)(const void *maker, char *text);
	/* Write what the operation waits for. */
	void (*describe_wait)(const void *maker, char *text, size_t bytes);
};

struct wf_op_composite {
	const struct wf_composite_functions *functions;
	void *maker;
};

/*
 * Make an operation of @node, for @maker, which is the caller's still when this fails.  It is
 * launched by wf_op_launch(), or dropped by wf_op_drop(), which frees @maker.  Failures are recorded.
 */
int wf_composite_new(struct weft_node *node, const struct weft_op_options *options,
		     const struct wf_composite_functions *functions, void *maker,
		     struct weft_op **op);

#endif
