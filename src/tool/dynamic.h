/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A service that this program was not compiled with: descriptors for protobuf-c, made
 * of what the node that serves it says.  Nothing it says is trusted.
 *
 * Threads: owner.
 */
#ifndef TOOL_DYNAMIC_H
#define TOOL_DYNAMIC_H

#include <stdbool.h>
#include <protobuf-c/protobuf-c.h>

#include "rpc/reflect.pb-c.h"

struct dynamic {
	ProtobufCServiceDescriptor service;
	const bool *streams; /* by method */
	void *memory;        /* all of it */
};

/* Make @d of what is said of the service @name.  NULL, or what is wrong with it. */
const char *dynamic_open(struct dynamic *d, const char *name,
			 const Weft__Reflect__Description *said);
void dynamic_close(struct dynamic *d);

#endif
