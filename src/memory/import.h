/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Imports: allocations on CUDA devices of other processes of this host, mapped here.
 *
 * To map and unmap takes 60 us and more, up to 2.6 ms for 4 GiB, and a copy of 16 MiB takes 15 us
 * (one H200): so a mapping is kept for a while after its last use, for the next body of the same
 * allocation.  An allocation that its owner frees meanwhile keeps its memory until it is unmapped
 * here; one in its place has another handle and another number, and so is mapped anew.
 *
 * Threads: owner.
 */
#ifndef WF_IMPORT_H
#define WF_IMPORT_H

#include "memory/cuda.h"
#include "util/clock.h"
#include "util/list.h"

/* how long a mapping is kept unused; the next body is rarer then, and would gain 3 % at most */
#define WF_IMPORT_KEPT_NS (100 * WF_NS_PER_MS)
#define WF_IMPORTS_MAX 64 /* mappings, used and unused, from which on no unused one is kept */

struct wf_import {
	struct wf_list node; /* in imports->list */
	void *start;         /* where the allocation begins here */
	uint64_t bytes;      /* size of the allocation */

	/* private to import.c */
	int device;
	struct wf_cuda_driver_ipc_handle handle;
	uint64_t number;
	unsigned users;
	uint64_t unused_ns; /* since when it has had no user */
};

struct wf_imports {
	struct wf_list list;
	size_t count;
};

void wf_imports_init(struct wf_imports *imports);
/* Unmap all; none is in use. */
void wf_imports_fini(struct wf_imports *imports);

/*
 * Take the mapping, for use by device @ordinal, of the allocation that another process exported
 * with @handle and its @number; make one if there is none.  The caller gives it back.  -ENOMEM;
 * else as wf_cuda_import().
 */
int wf_imports_take(struct wf_imports *imports, int ordinal,
		    const struct wf_cuda_driver_ipc_handle *handle, uint64_t number,
		    struct wf_import **import, struct wf_error *e);

/* Give @import back, from which nothing is copied any more. */
void wf_imports_give(struct wf_imports *imports, struct wf_import *import, uint64_t now_ns);

/* Unmap what has been unused for long.  Returns when to ask again, or 0: all are in use. */
uint64_t wf_imports_trim(struct wf_imports *imports, uint64_t now_ns);

#endif
