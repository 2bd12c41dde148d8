/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving side of `weft perf`: receives the tensors of a run and acknowledges each body, and
 * answers calls.  No number of a caller's is trusted.
 *
 * The server serves from open until its node is closed, and is closed after that.
 *
 * Threads: owner.
 */
#ifndef TOOL_PERF_SERVER_H
#define TOOL_PERF_SERVER_H

#include "tool/tool.h"

struct perf_server;

/*
 * Serve on @node, which is borrowed until it closes.  No measurement begins before @callers have
 * joined.  Returns owned.
 */
int perf_server_open(const struct tool_command *command, struct weft_node *node,
		     unsigned callers, struct perf_server **server);

/* Free the server after its node has closed; accepts NULL. */
void perf_server_close(struct perf_server *server);

/* Returns the number of callers that have joined and are still there. */
unsigned perf_server_present(const struct perf_server *server);

/* Returns the number of callers that went away after taking leave. */
unsigned perf_server_left(const struct perf_server *server);

/* Returns the number of callers that went away without taking leave. */
unsigned perf_server_lost(const struct perf_server *server);

#endif
