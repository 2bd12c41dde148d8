/* SPDX-License-Identifier: BSD-2-Clause */
/* The service of calls that are measured: Reflect returns the message that it gets. */
#ifndef BENCH_MIRROR_H
#define BENCH_MIRROR_H

#include "tests/bench/must.h"
#include "tests/sim/mirror.pb-c.h"

/* Serve it on @node, one of the process. */
void mirror_serve(struct weft_node *node);

#endif
