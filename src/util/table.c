/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define SIZE_FIRST 16 /* a page holds 256; most tables of a small node stay below */
#define NONE UINT32_MAX /* no index, for @limit is at most this */

/*
 * A generation wraps after 2^32 uses of one place, so a stale id is taken for a fresh one only
 * if it is exactly that many uses old.
 */
struct wf_table_entry {
	void *ptr; /* NULL: free */
	uint32_t generation; /* generation of the id in use, or of the next; never 0 */
	uint32_t next_free;
};

void wf_table_init(struct wf_table *t, uint32_t limit)
{
	*t = (struct wf_table){ .free_head = NONE, .limit = limit };
}

void wf_table_fini(struct wf_table *t)
{
	free(t->entries);
	*t = (struct wf_table){ .free_head = NONE };
}

static int grow(struct wf_table *t)
{
	uint64_t doubled = t->size ? 2 * (uint64_t)t->size : SIZE_FIRST;
	uint32_t size = (uint32_t)WF_MIN(doubled, (uint64_t)t->limit);
	struct wf_table_entry *entries;

	if (size == t->size)
		return -ENOSPC;
	entries = reallocarray(t->entries, size, sizeof(*entries));
	if (!entries)
		return -ENOMEM;

	for (uint32_t i = t->size; i < size; i++)
		entries[i] = (struct wf_table_entry){
			.generation = 1,
			.next_free = i + 1 < size ? i + 1 : NONE,
		};
	t->entries = entries;
	t->free_head = t->size; /* grow() is called only when no entry is free */
	t->size = size;
	return 0;
}

int wf_table_add(struct wf_table *t, void *ptr, uint64_t *id)
{
	struct wf_table_entry *entry;
	int err;

	assert(ptr);
	if (t->free_head == NONE) {
		err = grow(t);
		if (err)
			return err;
	}
	entry = &t->entries[t->free_head];
	*id = (uint64_t)entry->generation << 32 | t->free_head;
	t->free_head = entry->next_free;
	entry->ptr = ptr;
	t->count++;
	return 0;
}

/* The entry that @id names, if it is in use by that id. */
static struct wf_table_entry *find(const struct wf_table *t, uint64_t id)
{
	uint32_t index = (uint32_t)id;
	struct wf_table_entry *entry;

	if (index >= t->size)
		return NULL;
	entry = &t->entries[index];
	return entry->ptr && entry->generation == id >> 32 ? entry : NULL;
}

void *wf_table_get(const struct wf_table *t, uint64_t id)
{
	const struct wf_table_entry *entry = find(t, id);

	return entry ? entry->ptr : NULL;
}

void wf_table_remove(struct wf_table *t, uint64_t id)
{
	struct wf_table_entry *entry = find(t, id);

	if (!entry)
		return;
	entry->ptr = NULL;
	if (!++entry->generation)
		entry->generation = 1;
	entry->next_free = t->free_head;
	t->free_head = (uint32_t)id;
	t->count--;
}

void *wf_table_next(const struct wf_table *t, uint32_t *at)
{
	while (*at < t->size) {
		void *ptr = t->entries[(*at)++].ptr;

		if (ptr)
			return ptr;
	}
	return NULL;
}
