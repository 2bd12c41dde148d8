/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A service that this program was not compiled with: descriptors for protobuf-c, made from the
 * description that the serving node gives.  Nothing in the description is trusted.
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
	const bool *streams; /* by method: whether it has a stream */
	void *memory;        /* list of all allocations */
};

/* Make @d of @said, the description of service @name.  NULL, or what is wrong with @said. */
const char *dynamic_open(struct dynamic *d, const char *name,
			 const Weft__Reflect__Description *said);

/* Free the descriptors of @d. */
void dynamic_close(struct dynamic *d);

#endif
