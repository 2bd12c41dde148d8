/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of providers and devices, each kept once for the life of the process.
 *
 * There are as many as the machine has, so an operation that outlives its node may point
 * at them, and copies none.
 *
 * Threads: any.
 */
#ifndef WF_NAMES_H
#define WF_NAMES_H

#include "util/base.h"

#define WF_NAMES_BYTES 64
#define WF_NAMES_MAX 256 /* far more than a machine has: a bound for a program that makes names up */

struct wf_names {
	char provider[WF_NAMES_BYTES];
	char device[WF_NAMES_BYTES]; /* "": a provider alone */
};

/* Those of @provider and @device, each cut if it is too long.  NULL: there are too many. */
const struct wf_names *wf_names_of(const char *provider, const char *device);

#endif
