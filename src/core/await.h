/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Await: a thread of the user's that waits for operations to end, or for something else.
 *
 * The thread of a manual node drives it meanwhile; every other thread sleeps until a worker tells
 * of an end, and looks at the worker's health when that takes long.
 *
 * Threads: any, in no callback.
 */
#ifndef WF_CORE_AWAIT_H
#define WF_CORE_AWAIT_H

#include <weft/weft.h>
#include "core/worker.h"

/*
 * Wait until one of the @count operations at @ops, all of one open node, has ended; NULLs among
 * them, but not all, are passed over.  *@index: the first that has.  -ETIMEDOUT, -EOWNERDEAD,
 * -ENOMEM: recorded.
 */
int wf_await_any(struct weft_op *const *ops, size_t count, uint64_t until_ns, size_t *index);

/* Wait until @op has ended, as wf_await_any() does. */
int wf_await(struct weft_op *op, uint64_t until_ns);

/*
 * Wait until @over says so, which is asked again in each wf_await_wake(), by its thread, under the
 * node's lock.  @worker: one of the node.  -ETIMEDOUT, not recorded; -EOWNERDEAD, -ENOMEM:
 * recorded.
 */
int wf_await_that(struct wf_worker *worker, bool (*over)(void *ctx), void *ctx, uint64_t until_ns);

/* Wake the threads whose wait is over.  Threads: any, callback. */
void wf_await_wake(struct weft_node *node);

#endif
