/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The service of calls that are measured: Reflect returns the message that it gets; Talk fails,
 * unless there is a handler of its streams.
 */
#ifndef BENCH_MIRROR_H
#define BENCH_MIRROR_H

#include "tests/bench/must.h"
#include "tests/sim/mirror.pb-c.h"

/* Serve it on @node, one of the process. */
void mirror_serve(struct weft_node *node);

/* The same, with @handle for the streams of Talk. */
void mirror_serve_streams(struct weft_node *node,
			  void (*handle)(struct weft_stream *stream, void *arg));

#endif
