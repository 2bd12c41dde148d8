/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What both sides of a measurement agree on beside perf.proto: limits, keys,
 * the acknowledgement, and how a run's buffers are made.
 *
 * Threads: owner.
 */
#ifndef TOOL_PERF_RUN_H
#define TOOL_PERF_RUN_H

#include "tool/tool.h"

/* Limits of one run. */
#define PERF_BYTES_MAX  (1ull << 30) /* of one tensor or call; protobuf-c ends at 2 GiB */
#define PERF_CALLERS_MAX 1024u       /* of one server: more than anyone starts */
#define PERF_PARTS_MAX  1024u        /* tensors of one body: more than a model has */
#define PERF_WINDOW_MAX 1024u        /* bodies on the way */
#define PERF_OPS_MAX    65536u       /* tensors on the way */
#define PERF_MEMORY_MAX (2ull << 30) /* of all buffers of a run on one side */

/* Keys of a run's tensors and, on the way back, of their acknowledgements. */
#define PERF_KEY     "weft.perf"
#define PERF_ACK_KEY "weft.perf.ack"

/* What the receiver sends back for each tensor, in little-endian. */
struct perf_ack {
	uint64_t index; /* of the tensor in its run, from 0 */
	uint64_t wrong; /* bytes that were not as expected */
};

/* @bytes at @memory as a tensor of that many UINT 8.  Borrows @shape as long as it is used. */
struct weft_tensor perf_run_tensor(void *memory, int64_t *shape, uint64_t bytes);

/* One buffer of a run, touched.  NULL: there is no memory.  Free with perf_run_give. */
void *perf_run_take(struct weft_node *node, bool pool, uint64_t bytes);
void perf_run_give(struct weft_node *node, bool pool, void *memory);

#endif
