/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/map.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "util/random.h"

#define BUCKETS_FIRST 16

void wf_map_init(struct wf_map *m)
{
	*m = (struct wf_map){ .seed = wf_random_u64(), .bucket_count = 1 };
	m->buckets = &m->first;
}

void wf_map_fini(struct wf_map *m)
{
	if (m->buckets != &m->first)
		free(m->buckets);
	*m = (struct wf_map){ 0 };
}

uint64_t wf_map_hash(const struct wf_map *m, uint64_t more, const void *bytes, size_t count)
{
	/* @more is hashed too, not just added: the seed must not cancel out. */
	uint64_t seed = XXH3_64bits_withSeed(&more, sizeof(more), m->seed);

	return XXH3_64bits_withSeed(bytes, count, seed);
}

uint64_t wf_map_hash_pair(const struct wf_map *m, uint64_t a, uint64_t b)
{
	const uint64_t pair[2] = { a, b };

	return XXH3_64bits_withSeed(pair, sizeof(pair), m->seed);
}

static struct wf_map_node **bucket(const struct wf_map *m, uint64_t hash)
{
	return &m->buckets[hash & (m->bucket_count - 1)];
}

static void push(struct wf_map *m, struct wf_map_node *node)
{
	struct wf_map_node **head = bucket(m, node->hash);

	node->next = *head;
	*head = node;
	m->low = WF_MIN(m->low, (size_t)(head - m->buckets));
}

/* Make more buckets and move every member to its own; without memory, change nothing. */
static void grow(struct wf_map *m)
{
	size_t old_count = m->bucket_count;
	size_t new_count = WF_MAX(2 * old_count, (size_t)BUCKETS_FIRST);
	struct wf_map_node **old = m->buckets;
	struct wf_map_node **buckets = calloc(new_count, sizeof(*buckets));

	if (!buckets)
		return;
	m->buckets = buckets;
	m->bucket_count = new_count;
	for (size_t i = 0; i < old_count; i++) {
		struct wf_map_node *node = old[i];

		while (node) {
			struct wf_map_node *next = node->next;

			push(m, node);
			node = next;
		}
	}
	if (old != &m->first)
		free(old);
}

void wf_map_add(struct wf_map *m, struct wf_map_node *node, uint64_t hash)
{
	/* Grow at an average of one member a bucket. */
	if (m->count >= m->bucket_count)
		grow(m);
	node->hash = hash;
	push(m, node);
	m->count++;
}

void wf_map_remove(struct wf_map *m, struct wf_map_node *node)
{
	struct wf_map_node **at = bucket(m, node->hash);

	while (*at != node)
		at = &(*at)->next;
	*at = node->next;
	m->count--;
}

void wf_map_shrink(struct wf_map *m)
{
	if (m->count || m->buckets == &m->first)
		return;
	free(m->buckets);
	m->buckets = &m->first;
	m->bucket_count = 1;
	m->first = NULL;
}

struct wf_map_node *wf_map_find(const struct wf_map *m, uint64_t hash,
				const struct wf_map_node *after)
{
	struct wf_map_node *node;

	if (!m->bucket_count)
		return NULL;
	node = after ? after->next : *bucket(m, hash);
	while (node && node->hash != hash)
		node = node->next;
	return node;
}

struct wf_map_node *wf_map_first(struct wf_map *m)
{
	while (m->low < m->bucket_count && !m->buckets[m->low])
		m->low++;
	return m->low < m->bucket_count ? m->buckets[m->low] : NULL;
}

struct wf_map_node *wf_map_next(const struct wf_map *m, const struct wf_map_node *after)
{
	size_t i = 0;

	if (after) {
		if (after->next)
			return after->next;
		i = (after->hash & (m->bucket_count - 1)) + 1;
	}
	for (; i < m->bucket_count; i++)
		if (m->buckets[i])
			return m->buckets[i];
	return NULL;
}
