/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What `weft perf` measures against: receives the tensors of a run and
 * acknowledges each, and answers calls.  It trusts no number of a caller's.
 *
 * It serves from open until its node is closed, and is closed after that.
 *
 * Threads: owner.
 */
#ifndef TOOL_PERF_SERVER_H
#define TOOL_PERF_SERVER_H

#include "tool/tool.h"

struct perf_server;

/*
 * Serve on @node, which it borrows until the node closes.  Nobody's measurement
 * begins before @callers have joined.  Returns owned.
 */
int perf_server_open(const struct tool_command *command, struct weft_node *node,
		     unsigned callers, struct perf_server **server);

/* The node is closed by now.  Accepts NULL. */
void perf_server_close(struct perf_server *server);

/* Callers that have joined and are still there. */
unsigned perf_server_present(const struct perf_server *server);

/* Callers that went away: as they said they would, or not. */
unsigned perf_server_left(const struct perf_server *server);
unsigned perf_server_lost(const struct perf_server *server);

#endif
