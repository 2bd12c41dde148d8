/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A node elsewhere, and what it says of its services.
 *
 * Threads: owner.
 */
#ifndef TOOL_REMOTE_H
#define TOOL_REMOTE_H

#include "rpc/reflect.pb-c.h"
#include "tool/tool.h"

struct remote {
	const struct tool_command *command;
	const char *address;
	uint64_t limit_ns; /* of each call */
	struct weft_node *node;
	struct weft_peer *peer;
	struct weft_stub *reflection;
};

/* What goes wrong is said; each returns TOOL_OK or another status. */
int remote_open(struct remote *r, const struct tool_command *command, const char *address,
		uint64_t limit_ns);
void remote_close(struct remote *r);

/* Wait for @op, and free it. */
int remote_wait(struct remote *r, struct weft_op *op, const char *what);

/* Both are to be freed by their free_unpacked(). */
int remote_names(struct remote *r, Weft__Reflect__Names **names);
int remote_describe(struct remote *r, const char *service, Weft__Reflect__Description **said);

#endif
