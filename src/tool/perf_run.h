/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Agreement of both sides of a measurement, beside perf.proto: limits, keys, the acknowledgement,
 * and how a run's buffers are made, filled and compared.
 *
 * Threads: owner.
 */
#ifndef TOOL_PERF_RUN_H
#define TOOL_PERF_RUN_H

#include "tool/tool.h"

/* Limits of one run. */
#define PERF_BYTES_MAX  (1ull << 30) /* bytes of a tensor or call; protobuf-c ends at 2 GiB */
#define PERF_CALLERS_MAX 1024u       /* callers of a server: more than anyone starts */
#define PERF_PARTS_MAX  1024u        /* tensors of a body: more than a model has */
#define PERF_WINDOW_MAX 1024u        /* bodies on the way */
#define PERF_OPS_MAX    65536u       /* tensors on the way */
#define PERF_MEMORY_MAX (2ull << 30) /* bytes of all buffers of a run on a side */

/* Bytes of all runs of a server: PERF_CALLERS_MAX of them may have two bodies of 16 MiB each. */
#define PERF_SERVER_MEMORY_MAX (32ull << 30)

/* The most that perf_run_window() returns. */
#define PERF_RUN_WINDOW_MAX 16u

/* Keys of a run's tensors and, on the way back, of their acknowledgements. */
#define PERF_KEY     "weft.perf"
#define PERF_ACK_KEY "weft.perf.ack"

/* Acknowledgement that the receiver sends back for each body, in little-endian. */
struct perf_ack {
	uint64_t index; /* index of the body in its run, from 0 */
	uint64_t wrong; /* bytes that were not as expected */
};

/* Place of a run's buffers; all zero: the process's own memory. */
struct perf_place {
	bool pool;     /* memory of the node's pool */
	uint32_t cuda; /* memory of a CUDA device: its number plus 1; 0: none */
};

/* Returns how many bodies are on the way at once for bandwidth, unless the user says. */
unsigned perf_run_window(uint64_t bytes);

/* Make @place ready.  NULL, or why it can't be used, in one sentence. */
const char *perf_run_open(const struct perf_place *place);

/*
 * Describe @bytes at @memory as a tensor of that many UINT 8.  Borrows @shape as long as the
 * tensor is used.  @place NULL: the process's own memory.
 */
struct weft_tensor perf_run_tensor(const struct perf_place *place, void *memory, int64_t *shape,
				   uint64_t bytes);

/* Returns the memory that a buffer of @bytes takes, in whole pages. */
uint64_t perf_run_room(uint64_t bytes);

/* Take a buffer of a run, touched; give it back with perf_run_give().  NULL: no memory. */
void *perf_run_take(struct weft_node *node, const struct perf_place *place, uint64_t bytes);

/* Give back a buffer of perf_run_take(). */
void perf_run_give(struct weft_node *node, const struct perf_place *place, void *memory);

/* Fill a buffer, wherever it lies, as pattern_fill() does.  -EIO. */
int perf_run_fill(const struct perf_place *place, void *memory, uint64_t bytes, uint64_t run,
		  uint64_t index);
/* Compare a buffer as pattern_wrong() does.  Bytes that can't be read count as wrong. */
uint64_t perf_run_wrong(const struct perf_place *place, const void *memory, uint64_t bytes,
			uint64_t run, uint64_t index);

#endif
