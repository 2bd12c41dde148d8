/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The measuring side of `weft perf`: moves bodies of one size to a server and
 * times them.  A body counts as moved when the receiver's word of it is here.
 *
 * Threads: owner.
 */
#ifndef TOOL_PERF_CLIENT_H
#define TOOL_PERF_CLIENT_H

#include "tool/histogram.h"
#include "tool/tool.h"

enum perf_test { PERF_TENSOR, PERF_CALL };

/* What to measure. */
struct perf_plan {
	enum perf_test test;
	uint64_t bytes;
	unsigned window;  /* bodies on the way at once, for bandwidth */
	uint64_t time_ns; /* half for latency, half for bandwidth */
	uint64_t count;   /* of bodies in each half, in place of a time; 0: by time */
	bool pool;        /* buffers of the pool */
	bool check;       /* first compare some bodies, byte by byte */
};

struct perf_result {
	struct histogram latency; /* from send to the receiver's word, one at a time */
	uint64_t count;           /* bodies moved for bandwidth */
	uint64_t took_ns;         /* by them */
	uint64_t wrong;           /* bytes that arrived otherwise than sent */
	bool checked;
	struct weft_path path; /* of the last body: copies by both sides, registered by either */
};

struct perf_client;

/*
 * Join the server at @address.  @listen is the own node's, as tool_node_open
 * has it.  Returns TOOL_OK and owned, or another exit status after saying why.
 */
int perf_client_open(const struct tool_command *command, const char *listen,
		     const char *address, struct perf_client **client);

/*
 * Measure.  Returns TOOL_OK, TOOL_FAILED after saying why, or TOOL_INTERRUPTED;
 * after these two the client is good for closing only.
 */
int perf_client_measure(struct perf_client *client, const struct perf_plan *plan,
			struct perf_result *result);

/* Take leave: the server will not call the client lost.  Returns as perf_client_measure does. */
int perf_client_leave(struct perf_client *client);

/* Accepts NULL. */
void perf_client_close(struct perf_client *client);

#endif
