/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long after a peer's end does the last operation fail that had to do with
 * it?  A survivor with three peers under full traffic, again and again; the
 * heartbeat is the default.
 */
#ifndef TIMING_H
#define TIMING_H

#include <stdbool.h>
#include <stdint.h>

#define TIMING_MEMBERS 4

/* Measure at least @least deaths of each kind, and print medians and maxima.
 * False: one is above its limit. */
bool timing_kill(const char *provider, unsigned least, uint64_t seed);
bool timing_stop(const char *provider, unsigned least, uint64_t seed);

/* On hosts: the survivor's cable is cut. */
bool timing_cut(const char *provider, unsigned least, uint64_t seed);

#endif
