/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of weft that must succeed, in programs of this folder that use it. */
#ifndef BENCH_MUST_H
#define BENCH_MUST_H

#include <weft/weft.h>

#include "tests/bench/bench.h"

/* End the program if @err, which the function @what has returned, is no 0. */
static inline void must(int err, const char *what)
{
	if (err)
		bench_die("%s: %s", what, weft_error());
}

#endif
