/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The measuring side of `weft perf`: moves bodies to servers and times them.  A body is a call, or
 * one tensor or several that belong together.  A body counts as moved when the receiver's word of
 * it is here; messages in one direction all do when the receiver's word of the last is here.
 *
 * Threads: owner.
 */
#ifndef TOOL_PERF_CLIENT_H
#define TOOL_PERF_CLIENT_H

#include "tool/histogram.h"
#include "tool/perf_run.h"
#include "tool/tool.h"

/* PERF_MESSAGE is a tensor.  For bandwidth neither it nor a body of a stream is acknowledged. */
enum perf_test { PERF_TENSOR, PERF_CALL, PERF_MESSAGE, PERF_STREAM, PERF_ATTACHMENT };

/* Plan of a measurement. */
struct perf_plan {
	enum perf_test test;
	const uint64_t *parts; /* bytes of each tensor of a body, or of one call */
	size_t part_count;
	/* Bodies on the way to each server at once, for bandwidth and at a rate. */
	unsigned window;
	/*
	 * Bodies that are due in a second, for latency, as arrivals.h has it; each is timed from
	 * when it was due.  0: one after another.
	 */
	uint64_t rate;
	uint64_t time_ns; /* limit: half for latency, half for bandwidth */
	uint64_t count;   /* bodies in each half, in place of a time; 0: by time */
	struct perf_place place; /* memory of the buffers, on both sides */
	bool check;       /* some bodies are compared first, byte by byte */
	uint64_t metadata_bytes; /* metadata with each call; 0: none */
	uint64_t idle_streams;   /* streams to each server, open beside what is measured */
};

static inline bool perf_has_tensors(const struct perf_plan *plan)
{
	return plan->test == PERF_TENSOR || plan->test == PERF_MESSAGE ||
	       plan->test == PERF_ATTACHMENT;
}

struct perf_result {
	/* From send, or at a rate from when a body was due, to the receiver's word. */
	struct histogram latency;
	uint64_t latency_took_ns; /* time that the bodies of latency took */
	uint64_t count;           /* bodies moved for bandwidth */
	uint64_t took_ns;         /* time that these bodies took */
	/* Processor time of all processes: for the bodies of latency, and of bandwidth. */
	uint64_t latency_spent_ns, spent_ns;
	uint64_t wrong;           /* bytes that arrived otherwise than sent */
	bool checked;
	/* Path of the last body: copies by both sides, registered by either. */
	struct weft_path path;
};

#define PERF_SERVERS_MAX 16u

struct perf_client;

/*
 * Join the @count servers at @addresses, which get the bodies in turn; borrows the addresses.
 * @listen is the own node's, as tool_node_open() has it.  Returns TOOL_OK and owned, or another
 * exit status after saying why.
 */
int perf_client_open(const struct tool_command *command, const char *listen,
		     char *const *addresses, size_t count, struct perf_client **client);

/*
 * Measure as @plan says.  Returns TOOL_OK, TOOL_FAILED after saying why, or TOOL_INTERRUPTED;
 * after the last two the client is good for closing only.
 */
int perf_client_measure(struct perf_client *client, const struct perf_plan *plan,
			struct perf_result *result);

/* Take leave, so that no server calls the client lost.  Returns as perf_client_measure(). */
int perf_client_leave(struct perf_client *client);

/* Close the client; accepts NULL. */
void perf_client_close(struct perf_client *client);

#endif
