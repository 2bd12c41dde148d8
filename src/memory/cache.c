/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/cache.h"

#include <errno.h>
#include <stdlib.h>

#include "memory/monitor.h"

/* A range costs a look at each search, and the kernel up to two mappings of 65530. */
#define ENTRIES_MAX 1024

struct entry {
	struct wf_arena arena; /* in cache->arenas */
	struct wf_monitor_watch watch;
	struct wf_cache *cache;
};

static struct entry *entry_at(struct wf_list *node)
{
	return WF_CONTAINER(node, struct entry, arena.node);
}

void wf_cache_init(struct wf_cache *cache)
{
	*cache = (struct wf_cache){ .bytes_max = 0 };
	wf_list_init(&cache->arenas);
}

int wf_cache_open(struct wf_cache *cache, uint64_t bytes_max, bool keys, struct wf_error *e)
{
	int err = wf_monitor_open(e);

	if (err)
		return err;
	cache->bytes_max = bytes_max;
	cache->keys = keys;
	return 0;
}

static void left(struct wf_arena *arena)
{
	struct entry *entry = WF_CONTAINER(arena, struct entry, arena);

	wf_monitor_unwatch(&entry->watch);
	entry->cache->count--;
	free(entry);
}

void wf_cache_fini(struct wf_cache *cache)
{
	struct wf_list *node;

	while ((node = wf_list_pop(&cache->arenas)))
		left(&entry_at(node)->arena);
	if (cache->bytes_max)
		wf_monitor_close();
	cache->bytes_max = 0;
}

static uint64_t registered_bytes(const struct wf_arena *arena)
{
	return (uint64_t)arena->own.bytes * (arena->own.count + arena->shown.count);
}

static bool is_idle(const struct wf_arena *arena)
{
	return !arena->grants && !arena->leaving;
}

static void evict(struct wf_arena *arena)
{
	wf_region_evict(&arena->own);
	wf_region_evict(&arena->shown);
	wf_arena_leave(arena);
}

/* Evict the least recently used range that is idle.  Returns whether there was one. */
static bool evict_one(struct wf_cache *cache)
{
	WF_LIST_EACH(node, &cache->arenas) {
		struct entry *entry = entry_at(node);

		if (!is_idle(&entry->arena))
			continue;
		evict(&entry->arena);
		return true;
	}
	return false;
}

/* Make room for @bytes more to be registered.  Returns whether there is. */
static bool make_room(struct wf_cache *cache, uint64_t bytes)
{
	uint64_t used = 0;

	if (bytes > cache->bytes_max)
		return false;
	do {
		used = 0;
		WF_LIST_EACH(node, &cache->arenas)
			used += registered_bytes(&entry_at(node)->arena);
		if (used <= cache->bytes_max - bytes)
			return true;
	} while (evict_one(cache));
	return false;
}

static bool was_refused(const struct wf_cache *cache, const void *at, size_t bytes)
{
	for (size_t i = 0; i < WF_COUNT(cache->refused); i++)
		if (cache->refused[i].at == at && cache->refused[i].bytes == bytes)
			return true;
	return false;
}

static void note_refused(struct wf_cache *cache, const void *at, size_t bytes)
{
	uint32_t next = cache->refused_next++ % WF_COUNT(cache->refused);

	cache->refused[next].at = at;
	cache->refused[next].bytes = bytes;
}

static bool serves(const struct wf_arena *arena, const void *at, size_t bytes, bool show)
{
	uintptr_t from = (uintptr_t)at - (uintptr_t)arena->own.base;

	if (arena->leaving)
		return false;
	if (show)
		return !from && bytes == arena->own.bytes;
	return from <= arena->own.bytes && bytes <= arena->own.bytes - from;
}

/* Find an entry for the range.  -ENOENT: there is none.  -EAGAIN: that can't be told just now. */
static int find(struct wf_cache *cache, const void *at, size_t bytes, bool show,
		struct entry **found)
{
	WF_LIST_EACH(node, &cache->arenas) {
		struct entry *entry = entry_at(node);
		int err;

		if (!serves(&entry->arena, at, bytes, show))
			continue;
		err = wf_monitor_check(&entry->watch);
		if (err == -ESTALE) {
			wf_arena_leave(&entry->arena);
			return -ENOENT;
		}
		*found = entry;
		return err;
	}
	return -ENOENT;
}

/* Add the range.  NULL: the memory can't be watched, or there is no room. */
static struct entry *add(struct wf_cache *cache, void *at, size_t bytes)
{
	struct entry *entry;
	int err;

	if (was_refused(cache, at, bytes) || (cache->count == ENTRIES_MAX && !evict_one(cache)))
		return NULL;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return NULL;
	err = wf_monitor_watch(&entry->watch, at, bytes);
	if (err) {
		if (err != -EAGAIN)
			note_refused(cache, at, bytes);
		free(entry);
		return NULL;
	}
	entry->cache = cache;
	entry->arena.left = left;
	wf_arena_enter(&cache->arenas, &entry->arena, at, bytes);
	entry->arena.own.kind = entry->arena.shown.kind = WF_COUNTERS_CACHED;
	cache->count++;
	return entry;
}

struct wf_arena *wf_cache_take(struct wf_cache *cache, const struct wf_rail *rail, void *at,
			       size_t bytes, bool show)
{
	struct entry *entry = NULL;
	int err;

	if (!cache->bytes_max || bytes > cache->bytes_max || (show && !cache->keys))
		return NULL;
	wf_cache_run(cache);
	err = find(cache, at, bytes, show, &entry);
	if (err == -ENOENT)
		entry = add(cache, at, bytes);
	if (!entry || err == -EAGAIN)
		return NULL;
	wf_list_remove(&entry->arena.node);
	wf_list_append(&cache->arenas, &entry->arena.node);
	/* Held first, so that it does not make room for itself. */
	wf_arena_hold(&entry->arena);
	if (wf_region_knows(show ? &entry->arena.shown : &entry->arena.own, rail) ||
	    make_room(cache, entry->arena.own.bytes))
		return &entry->arena;
	wf_arena_release(&entry->arena);
	return NULL;
}

bool wf_cache_clear(struct wf_cache *cache)
{
	bool any = false;

	while (evict_one(cache))
		any = true;
	return any;
}

void wf_cache_run(struct wf_cache *cache)
{
	uint64_t changes = wf_monitor_changes();
	struct wf_list *node, *next;

	if (!cache->count || changes == cache->changes)
		return;
	cache->changes = changes;
	for (node = cache->arenas.next; node != &cache->arenas; node = next) {
		struct entry *entry = entry_at(node);

		next = node->next;
		if (atomic_load(&entry->watch.changed) && !entry->arena.leaving)
			wf_arena_leave(&entry->arena);
	}
}
