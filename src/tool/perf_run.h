/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What both sides of a measurement agree on beside perf.proto: limits, keys,
 * the acknowledgement, and how a run's buffers are made, filled and compared.
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

/* Whose memory a run's buffers lie in; neither: the process's own. */
struct perf_place {
	bool pool;     /* the node's pool's */
	uint32_t cuda; /* a CUDA device's: its number and 1, and 0 for none */
};

/* Can it be used?  NULL, or why not, in one sentence. */
const char *perf_run_open(const struct perf_place *place);

/*
 * @bytes at @memory as a tensor of that many UINT 8.  Borrows @shape as long as it is used.
 * @place NULL: the process's own memory.
 */
struct weft_tensor perf_run_tensor(const struct perf_place *place, void *memory, int64_t *shape,
				   uint64_t bytes);

/* One buffer of a run, touched.  NULL: there is no memory.  Free with perf_run_give. */
void *perf_run_take(struct weft_node *node, const struct perf_place *place, uint64_t bytes);
void perf_run_give(struct weft_node *node, const struct perf_place *place, void *memory);

/* pattern.h's two, wherever the buffer lies.  -EIO. */
int perf_run_fill(const struct perf_place *place, void *memory, uint64_t bytes, uint64_t run,
		  uint64_t index);
/* What can't be read is wrong. */
uint64_t perf_run_wrong(const struct perf_place *place, const void *memory, uint64_t bytes,
			uint64_t run, uint64_t index);

#endif
