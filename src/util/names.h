/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of providers and devices, each kept once for the life of the process.
 *
 * A machine has only so many, so an operation that outlives its node points at names and copies
 * none.
 *
 * Threads: any.
 */
#ifndef WF_NAMES_H
#define WF_NAMES_H

#include "util/base.h"

#define WF_NAMES_BYTES 64
#define WF_NAMES_MAX 256 /* far more than a machine has; bounds a program that invents names */

struct wf_names {
	char provider[WF_NAMES_BYTES];
	char device[WF_NAMES_BYTES]; /* "": the entry is of a provider alone */
};

/* Return the entry of @provider and @device, each cut if too long.  NULL: the table is full. */
const struct wf_names *wf_names_of(const char *provider, const char *device);

#endif
