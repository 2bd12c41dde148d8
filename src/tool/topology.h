/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft info --topology: publishers of memory and their clients, as a matrix.
 *
 * Threads: owner.
 */
#ifndef TOOL_TOPOLOGY_H
#define TOOL_TOPOLOGY_H

#include <stdbool.h>

/* Print the topology.  A negative code: weft_error() says why there is none. */
int topology_show(bool json);

#endif
