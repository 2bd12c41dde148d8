/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handles: a 64-bit id for a pointer, that goes stale when it is given back.
 *
 * The id is generation << 32 | index and never 0.  Ids from the wire, or from a late
 * completion, are looked up here and never trusted: an id that was given back finds nothing,
 * also after its place has been taken again.
 *
 * Threads: owner.
 */
#ifndef WF_TABLE_H
#define WF_TABLE_H

#include "util/base.h"

struct wf_table {
	struct wf_table_entry *entries;
	uint32_t count, size; /* entries in use; entries allocated */
	uint32_t free_head;
	uint32_t limit; /* the most entries there may be */
};

/* Set up an empty table; entries are allocated as needed, never more than @limit. */
void wf_table_init(struct wf_table *t, uint32_t limit);
void wf_table_fini(struct wf_table *t);

/* Give @ptr (not NULL) an id.  -ENOMEM; -ENOSPC: @limit is reached. */
int wf_table_add(struct wf_table *t, void *ptr, uint64_t *id);

/* Return the pointer that @id stands for, or NULL. */
void *wf_table_get(const struct wf_table *t, uint64_t id);

/* Forget @id; harmless if it is stale. */
void wf_table_remove(struct wf_table *t, uint64_t id);

/* Return the first pointer with index >= *@at, or NULL; *@at, 0 at first, moves past it. */
void *wf_table_next(const struct wf_table *t, uint32_t *at);

#endif
