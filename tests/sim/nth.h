/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of the library's that fail: the N-th of a kind, or some in a row.
 *
 * A program with nth.c is linked with --wrap for each function there, so calls of
 * the library come by here.  The program's own objects are compiled with names of
 * their own for the allocators (own_malloc and so on): memory of these is counted,
 * because either side frees what the other made, but never refused.
 */
#ifndef WF_SIM_NTH_H
#define WF_SIM_NTH_H

#include "util/base.h"

enum wf_nth_kind {
	WF_NTH_MEMORY, /* allocators, maps, locks */
	WF_NTH_FABRIC, /* calls that the fake fabric may refuse */
	WF_NTH_FILE,   /* calls that make a descriptor or a thread */
	WF_NTH_KINDS
};

struct wf_nth_fault {
	enum wf_nth_kind kind;
	uint64_t first, count; /* calls number @first and so on; the first one is 1 */
	unsigned code;         /* index of the fabric's code that comes first */
};

#define WF_NTH_CODES 3 /* -ENOMEM, -EIO, and -EAGAIN where that is allowed */

/* Count from 0 again, and fail the calls of @fault. */
void wf_nth_fail(const struct wf_nth_fault *fault);

/* Calls since wf_nth_fail, and those of them that have failed. */
uint64_t wf_nth_calls(enum wf_nth_kind kind);
uint64_t wf_nth_failed(void);

/* The kind that is made to fail. */
enum wf_nth_kind wf_nth_kind(void);

/* The last call that failed, for people. */
const char *wf_nth_name(void);

/* The code that @call is to return, for the fake's knob. */
int wf_nth_veto(const char *call);

/* Blocks of memory that are there now, of the library's and of the program's. */
size_t wf_nth_blocks(void);

#endif
