/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A dump: what a node holds, for people.  It is written by the worker, which alone may
 * look at links, and so shows one moment.
 *
 * A worker that does not answer is what a dump is most wanted for: then the thread that
 * asks writes what may be read from outside, and where the worker is.
 */
#ifndef WF_CORE_DUMP_H
#define WF_CORE_DUMP_H

#include <stdio.h>
#include <weft/weft.h>

/* Of all workers, one after the other.  -ENOMEM: recorded.  Threads: any, callback. */
int wf_dump(struct weft_node *node, FILE *out);

#endif
