/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A node elsewhere, and the services that it describes.
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
	uint64_t limit_ns; /* deadline of each call */
	struct weft_node *node;
	struct weft_peer *peer;
	struct weft_stub *reflection;
};

/* Open a node and the peer at @address.  Returns TOOL_OK, or another status after saying why. */
int remote_open(struct remote *r, const struct tool_command *command, const char *address,
		uint64_t limit_ns);

/* Close the node and all that belongs to it. */
void remote_close(struct remote *r);

/* Wait for @op, and free it.  Returns as remote_open() does. */
int remote_wait(struct remote *r, struct weft_op *op, const char *what);

/* Ask for the names of all services; owned, for free_unpacked().  Returns as remote_open(). */
int remote_names(struct remote *r, Weft__Reflect__Names **names);

/* Ask for the description of @service; owned, for free_unpacked().  Returns as remote_open(). */
int remote_describe(struct remote *r, const char *service, Weft__Reflect__Description **said);

#endif
