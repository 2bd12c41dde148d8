/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Time from a peer's end to the last failure of an operation that had to do with
 * the peer.  A survivor with three peers under full traffic, again and again; the
 * heartbeat is the default.
 */
#ifndef TIMING_H
#define TIMING_H

#include <stdbool.h>
#include <stdint.h>

#define TIMING_MEMBERS 4

/* Measure at least @least deaths of each kind, and print medians and maxima.
 * False: a figure is above its limit. */
bool timing_kill(const char *provider, unsigned least, uint64_t seed);
bool timing_stop(const char *provider, unsigned least, uint64_t seed);

/* Measure on hosts how a cut of the survivor's cable is noticed. */
bool timing_cut(const char *provider, unsigned least, uint64_t seed);

#endif
