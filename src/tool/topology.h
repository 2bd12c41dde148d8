/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft info --topology: who publishes memory, and for whom, as a matrix.
 *
 * Threads: owner.
 */
#ifndef TOOL_TOPOLOGY_H
#define TOOL_TOPOLOGY_H

#include <stdbool.h>

/* Show it.  A negative code: weft_error() says why it can't be. */
int topology_show(bool json);

#endif
