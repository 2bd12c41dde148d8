/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dump: a report for people on what a node holds.  The worker writes it, as no other thread
 * may look at links: some in each turn, so that no peer waits for a long list.
 *
 * A dump is wanted most when a worker does not answer: the calling thread then writes what may
 * be read from outside, and where the worker is.
 */
#ifndef WF_CORE_DUMP_H
#define WF_CORE_DUMP_H

#include <stdio.h>
#include <weft/weft.h>

/* Dump all workers to @out, one after the other.  -ENOMEM: recorded.  Threads: any, callback. */
int wf_dump(struct weft_node *node, FILE *out);

#endif
