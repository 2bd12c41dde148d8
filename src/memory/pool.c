/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CHUNK_BYTES_MIN ((size_t)256) /* below this the lists cost more than they save */
#define CHUNK_BYTES_MAX MIB           /* above this sharing a slab saves nothing */
#define SLAB_BYTES (2 * MIB)          /* one huge page */
#define LARGE_STEP (64 * KIB)         /* large slabs come in these steps */
#define CLASS_COUNT 13                /* 256 B ... 1 MiB */

struct wf_slab {
	struct wf_list node; /* in partial or idle */
	struct wf_region region;
	size_t chunk_bytes;
	uint32_t chunk_count, free_count;
	uint32_t free[]; /* indexes, a stack */
};

static unsigned class_of(size_t bytes)
{
	unsigned class = 0;

	while (CHUNK_BYTES_MIN << class < bytes)
		class++;
	return class;
}

static bool is_large(const struct wf_slab *slab)
{
	return slab->chunk_bytes > CHUNK_BYTES_MAX;
}

int wf_pool_init(struct wf_pool *pool, uint64_t budget_bytes)
{
	*pool = (struct wf_pool){ .budget_bytes = budget_bytes };
	for (size_t i = 0; i < WF_COUNT(pool->partial); i++)
		wf_list_init(&pool->partial[i]);
	wf_list_init(&pool->idle);
	wf_list_init(&pool->waiters);
	return -pthread_mutex_init(&pool->lock, NULL);
}

static void free_slab(struct wf_slab *slab)
{
	munmap(slab->region.base, slab->region.bytes);
	free(slab);
}

void wf_pool_fini(struct wf_pool *pool)
{
	for (size_t i = 0; i < pool->slab_count; i++)
		free_slab(pool->slabs[i]);
	free(pool->slabs);
	pthread_mutex_destroy(&pool->lock);
}

/* Where @at is, or would be inserted: the first slab that ends after it. */
static size_t search(const struct wf_pool *pool, const void *at)
{
	size_t low = 0, high = pool->slab_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct wf_region *r = &pool->slabs[middle]->region;

		if ((uintptr_t)at < (uintptr_t)r->base + r->bytes)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static struct wf_slab *find_slab(const struct wf_pool *pool, const void *at)
{
	size_t i = search(pool, at);

	if (i == pool->slab_count || (uintptr_t)at < (uintptr_t)pool->slabs[i]->region.base)
		return NULL;
	return pool->slabs[i];
}

static void remove_slab(struct wf_pool *pool, struct wf_slab *slab)
{
	size_t i = search(pool, slab->region.base);

	memmove(&pool->slabs[i], &pool->slabs[i + 1],
		(--pool->slab_count - i) * sizeof(*pool->slabs));
	pool->slab_bytes -= slab->region.bytes;
	wf_list_remove(&slab->node);
	free_slab(slab);
}

/*
 * Give slabs that nobody uses back until @bytes fit the budget.  Registered
 * ones are left: only their owner may close those, and does when somebody waits.
 */
static void trim(struct wf_pool *pool, size_t bytes)
{
	for (size_t i = pool->slab_count; i-- && pool->slab_bytes + bytes > pool->budget_bytes;) {
		struct wf_slab *slab = pool->slabs[i];

		/* In this order: one in use may be being registered right now. */
		if (slab->free_count == slab->chunk_count && !slab->region.count)
			remove_slab(pool, slab);
	}
}

static int grow(struct wf_pool *pool, size_t chunk_bytes, size_t slab_bytes,
		struct wf_slab **slab)
{
	uint32_t count = (uint32_t)(slab_bytes / chunk_bytes);
	struct wf_slab *fresh, **more;
	size_t at;
	void *base;

	if (slab_bytes > pool->budget_bytes)
		return -ENOBUFS;
	trim(pool, slab_bytes);
	if (pool->slab_bytes + slab_bytes > pool->budget_bytes)
		return -EAGAIN;
	if (pool->slab_count == pool->slab_size) {
		size_t size = pool->slab_size ? 2 * pool->slab_size : 16;

		more = realloc(pool->slabs, size * sizeof(*more));
		if (!more)
			return -ENOMEM;
		pool->slabs = more;
		pool->slab_size = size;
	}
	fresh = malloc(sizeof(*fresh) + count * sizeof(fresh->free[0]));
	if (!fresh)
		return -ENOMEM;
	base = mmap(NULL, slab_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED) {
		free(fresh);
		return -ENOMEM;
	}
	wf_list_init(&fresh->node);
	wf_region_init(&fresh->region, base, slab_bytes);
	fresh->chunk_bytes = chunk_bytes;
	fresh->chunk_count = count;
	fresh->free_count = count;
	for (uint32_t i = 0; i < count; i++)
		fresh->free[i] = count - 1 - i;
	at = search(pool, base);
	memmove(&pool->slabs[at + 1], &pool->slabs[at],
		(pool->slab_count++ - at) * sizeof(*pool->slabs));
	pool->slabs[at] = fresh;
	pool->slab_bytes += slab_bytes;
	*slab = fresh;
	return 0;
}

static void *pop_chunk(struct wf_pool *pool, struct wf_slab *slab)
{
	uint32_t index = slab->free[--slab->free_count];

	if (!slab->free_count)
		wf_list_remove(&slab->node);
	pool->used_bytes += slab->chunk_bytes;
	return (char *)slab->region.base + index * slab->chunk_bytes;
}

static int take_small(struct wf_pool *pool, size_t bytes, void **chunk)
{
	unsigned class = class_of(bytes);
	size_t chunk_bytes = CHUNK_BYTES_MIN << class;
	struct wf_list *node = wf_list_first(&pool->partial[class]);
	struct wf_slab *slab;
	int err;

	if (node) {
		slab = WF_CONTAINER(node, struct wf_slab, node);
	} else {
		err = grow(pool, chunk_bytes, SLAB_BYTES, &slab);
		if (err)
			return err;
		wf_list_append(&pool->partial[class], &slab->node);
	}
	*chunk = pop_chunk(pool, slab);
	return 0;
}

/* Of a slab for one chunk that is larger than those of any class. */
static size_t large_bytes(size_t bytes)
{
	return (bytes + LARGE_STEP - 1) / LARGE_STEP * LARGE_STEP;
}

bool wf_pool_fits(const struct wf_pool *pool, size_t bytes)
{
	if (bytes > SIZE_MAX - LARGE_STEP)
		return false;
	return (bytes <= CHUNK_BYTES_MAX ? SLAB_BYTES : large_bytes(bytes)) <= pool->budget_bytes;
}

static int take_large(struct wf_pool *pool, size_t bytes, void **chunk)
{
	size_t slab_bytes = large_bytes(bytes);
	struct wf_slab *best = NULL;
	int err;

	/* An idle one that wastes at most half of itself. */
	WF_LIST_EACH(node, &pool->idle) {
		struct wf_slab *slab = WF_CONTAINER(node, struct wf_slab, node);

		if (slab->chunk_bytes >= slab_bytes && slab->chunk_bytes <= 2 * slab_bytes &&
		    (!best || slab->chunk_bytes < best->chunk_bytes))
			best = slab;
	}
	if (!best) {
		err = grow(pool, slab_bytes, slab_bytes, &best);
		if (err)
			return err;
	}
	*chunk = pop_chunk(pool, best);
	return 0;
}

int wf_pool_take(struct wf_pool *pool, size_t bytes, void **chunk)
{
	int err;

	if (bytes > SIZE_MAX - LARGE_STEP)
		return -ENOBUFS;
	pthread_mutex_lock(&pool->lock);
	err = bytes <= CHUNK_BYTES_MAX ? take_small(pool, bytes, chunk)
				       : take_large(pool, bytes, chunk);
	pthread_mutex_unlock(&pool->lock);
	return err;
}

int wf_pool_give(struct wf_pool *pool, void *chunk)
{
	struct wf_slab *slab;
	int err = -EINVAL;
	size_t offset;

	if (!chunk)
		return 0;
	pthread_mutex_lock(&pool->lock);
	slab = find_slab(pool, chunk);
	if (!slab)
		goto unlock;
	offset = (size_t)((char *)chunk - (char *)slab->region.base);
	if (offset % slab->chunk_bytes || slab->free_count == slab->chunk_count)
		goto unlock;
	slab->free[slab->free_count++] = (uint32_t)(offset / slab->chunk_bytes);
	pool->used_bytes -= slab->chunk_bytes;
	if (is_large(slab))
		wf_list_append(&pool->idle, &slab->node);
	else if (slab->free_count == 1)
		wf_list_append(&pool->partial[class_of(slab->chunk_bytes)], &slab->node);
	pool->freed = true;
	err = 0;
unlock:
	pthread_mutex_unlock(&pool->lock);
	return err;
}

struct wf_region *wf_pool_region(struct wf_pool *pool, const void *at, size_t count)
{
	struct wf_slab *slab;

	pthread_mutex_lock(&pool->lock);
	slab = find_slab(pool, at);
	if (slab && count > slab->region.bytes -
			    (size_t)((const char *)at - (char *)slab->region.base))
		slab = NULL;
	pthread_mutex_unlock(&pool->lock);
	return slab ? &slab->region : NULL;
}

void wf_pool_forget(struct wf_pool *pool, const struct wf_rail *rail)
{
	pthread_mutex_lock(&pool->lock);
	for (size_t i = 0; i < pool->slab_count; i++)
		wf_region_forget(&pool->slabs[i]->region, rail);
	pthread_mutex_unlock(&pool->lock);
}

void wf_pool_describe(struct wf_pool *pool, uint64_t bytes, char text[WF_POOL_TEXT_BYTES])
{
	uint64_t used_bytes;

	pthread_mutex_lock(&pool->lock);
	used_bytes = pool->used_bytes;
	pthread_mutex_unlock(&pool->lock);
	(void)snprintf(text, WF_POOL_TEXT_BYTES,
		       "%llu bytes of the pool are waited for: %llu of %llu are in use (WEFT_POOL_BYTES)",
		       (unsigned long long)bytes, (unsigned long long)used_bytes,
		       (unsigned long long)pool->budget_bytes);
}

/* Slabs that nobody uses lose their registrations, so that they can make room for others. */
static bool unregister_unused(struct wf_pool *pool)
{
	bool any = false;

	for (size_t i = 0; i < pool->slab_count; i++) {
		struct wf_slab *slab = pool->slabs[i];

		if (slab->free_count != slab->chunk_count || !slab->region.count)
			continue;
		wf_region_forget(&slab->region, NULL);
		any = true;
	}
	return any;
}

void wf_pool_wait(struct wf_pool *pool, struct wf_pool_waiter *waiter)
{
	pthread_mutex_lock(&pool->lock);
	wf_list_append(&pool->waiters, &waiter->node);
	pool->wait_count++;
	if (unregister_unused(pool))
		pool->freed = true;
	pthread_mutex_unlock(&pool->lock);
}

void wf_pool_unwait(struct wf_pool *pool, struct wf_pool_waiter *waiter)
{
	pthread_mutex_lock(&pool->lock);
	wf_list_remove(&waiter->node);
	pthread_mutex_unlock(&pool->lock);
}

void wf_pool_run(struct wf_pool *pool)
{
	struct wf_list due;
	struct wf_list *node;

	/* Without the lock, because this is asked in every turn of the loop. */
	if (!atomic_load_explicit(&pool->freed, memory_order_relaxed))
		return;
	wf_list_init(&due);
	pthread_mutex_lock(&pool->lock);
	wf_list_splice(&due, &pool->waiters);
	pool->freed = false;
	pthread_mutex_unlock(&pool->lock);
	/* A retry may stop another waiter, which takes itself out of @due. */
	while ((node = wf_list_pop(&due))) {
		struct wf_pool_waiter *waiter = WF_CONTAINER(node, struct wf_pool_waiter, node);

		waiter->retry(waiter);
	}
}
