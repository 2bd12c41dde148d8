/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hash table threaded through its members; the caller compares keys.
 *
 * Keys come from peers, so hashes are seeded: no peer can choose collisions.
 *
 * Threads: owner.
 */
#ifndef WF_MAP_H
#define WF_MAP_H

#include "util/base.h"

struct wf_map_node {
	struct wf_map_node *next;
	uint64_t hash;
};

struct wf_map {
	struct wf_map_node **buckets;
	size_t bucket_count, count; /* bucket_count is a power of two */
	size_t low; /* every bucket before this index is empty */
	uint64_t seed;
	struct wf_map_node *first; /* the only bucket at first, so that adding never fails */
};

/* Set up @m, which must stay at its address from now on. */
void wf_map_init(struct wf_map *m);
/* Free the buckets; the members are the caller's. */
void wf_map_fini(struct wf_map *m);

/* Return XXH3 of the bytes, seeded by the map's own seed and by @more (a step, say). */
uint64_t wf_map_hash(const struct wf_map *m, uint64_t more, const void *bytes, size_t count);

/* Return XXH3 of two numbers, in a fourth of the instructions of wf_map_hash(). */
uint64_t wf_map_hash_pair(const struct wf_map *m, uint64_t a, uint64_t b);

/* Add @node.  Without memory for more buckets the chains just get longer. */
void wf_map_add(struct wf_map *m, struct wf_map_node *node, uint64_t hash);

/* Remove @node, which must be a member. */
void wf_map_remove(struct wf_map *m, struct wf_map_node *node);

/* Free the buckets if there are no members. */
void wf_map_shrink(struct wf_map *m);

/* Return the first member of @hash after @after (NULL: from the start), or NULL. */
struct wf_map_node *wf_map_find(const struct wf_map *m, uint64_t hash,
				const struct wf_map_node *after);

/*
 * Return the first member in bucket order, or NULL.  Emptying a map this way passes each bucket
 * once.
 */
struct wf_map_node *wf_map_first(struct wf_map *m);

/* Return the next member after @after in bucket order (NULL: the first), or NULL. */
struct wf_map_node *wf_map_next(const struct wf_map *m, const struct wf_map_node *after);

#endif
