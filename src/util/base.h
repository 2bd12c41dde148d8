/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The few macros that every file may use.
 *
 * Thread words in headers: any (from any thread), owner (the thread that polls
 * this worker), setup (before the first poll or after the last), callback
 * (also inside a completion callback).
 */
#ifndef WF_BASE_H
#define WF_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

#define WF_NS_PER_US ((uint64_t)1000)
#define WF_NS_PER_MS ((uint64_t)1000000)
#define WF_NS_PER_S ((uint64_t)1000000000)

#define WF_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define WF_MIN(a, b) ((a) < (b) ? (a) : (b))
#define WF_MAX(a, b) ((a) > (b) ? (a) : (b))

/* The struct of @type whose @member is at @ptr. */
#define WF_CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr) - offsetof(type, member)))

/*
 * True in the build without flight recorder and heartbeats, with which tests/bench/cost
 * measures their cost.
 */
#ifdef WF_BENCH_SILENT
#define WF_SILENT true
#else
#define WF_SILENT false
#endif

#define WF_PRINTF(text, first) __attribute__((format(printf, text, first)))

#endif
