/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cache of registrations: memory of the program's that comes again, and stays registered
 * meanwhile on rails where registering is dear.
 *
 * Each range is an arena (arena.h) that the monitor watches: one that has changed serves nobody,
 * and leaves with the last grant that uses it.  The least recently used range that no grant uses
 * makes room for others.  Without the monitor nothing is kept.
 *
 * Registrations for our own use are kept, as nobody else can use those.  One for a peer to read has
 * a key that works until the range leaves, after the operation has ended, so it is kept only on
 * demand; and that key is of exactly the range that the peer may read.
 *
 * Threads: owner.
 */
#ifndef WF_CACHE_H
#define WF_CACHE_H

#include "memory/arena.h"

#define WF_CACHE_REFUSED_MAX 32 /* not tuned; each is looked at in no time */

struct wf_cache {
	struct wf_list arenas;  /* members are struct wf_arena, the least recently used first */
	uint32_t count;
	uint64_t bytes_max;     /* bound of the bytes registered; 0: nothing is kept */
	bool keys;              /* registrations for peers are kept, too */
	uint64_t changes;       /* wf_monitor_changes() when changed ranges last left */
	/* Ranges that could not be watched, so that they are not looked up with each operation. */
	struct {
		const void *at;
		size_t bytes;
	} refused[WF_CACHE_REFUSED_MAX];
	uint32_t refused_next;
};

void wf_cache_init(struct wf_cache *cache);

/*
 * Keep up to @bytes_max registered from now on; with @keys for peers, too.  Codes and sentence as
 * wf_monitor_open() has them.
 */
int wf_cache_open(struct wf_cache *cache, uint64_t bytes_max, bool keys, struct wf_error *e);

/* Give up all that is left, whatever uses it, and the monitor.  Registrations were closed before. */
void wf_cache_fini(struct wf_cache *cache);

/*
 * Return the arena for a grant of the @bytes at @at on @rail, to us or, with @show, to a peer; it
 * is held for the grant.  NULL: the memory is not kept, so the grant registers it for itself.
 */
struct wf_arena *wf_cache_take(struct wf_cache *cache, const struct wf_rail *rail, void *at,
			       size_t bytes, bool show);

/* Give up all that no grant uses.  Returns whether anything was registered. */
bool wf_cache_clear(struct wf_cache *cache);

/* Let ranges that have changed leave; for each turn of the loop. */
void wf_cache_run(struct wf_cache *cache);

#endif
