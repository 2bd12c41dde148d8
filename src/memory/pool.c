/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "util/fork.h"

#define CHUNK_BYTES_MIN ((size_t)256) /* smaller chunks cost more in lists than they save */
#define CHUNK_BYTES_MAX MIB           /* larger chunks save nothing by sharing a slab */
#define SLAB_BYTES WF_PLACEMENT_PAGE_BYTES
#define LARGE_STEP (64 * KIB)         /* large slabs come in these steps */
#define CLASS_COUNT 13                /* 256 B ... 1 MiB */

/* A chunk that peers may read. */
struct shown {
	struct wf_list node; /* member of revoked, once the chunk has lost its last share */
	struct wf_slab *slab;
	uint32_t index;
	struct wf_region region;
};

struct wf_slab {
	struct wf_list node; /* member of partial, idle or leaving */
	struct wf_region region;
	struct wf_sealed file; /* base NULL: no other process can map it */
	struct wf_pool_guest *guest; /* owner of the memory; NULL: the pool */
	bool huge; /* the memory has huge pages */
	size_t chunk_bytes;
	uint32_t chunk_count, free_count;
	struct shown **shown; /* per chunk, if it is shown; NULL: none ever was */
	uint32_t *shares; /* shares of each chunk; 0: it is free, or revoked */
	uint32_t free[];  /* stack of free indexes; then the shares */
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
	wf_list_init(&pool->leaving);
	wf_list_init(&pool->revoked);
	wf_list_init(&pool->waiters);
	wf_list_init(&pool->arenas);
	wf_cache_init(&pool->cache);
	return -pthread_mutex_init(&pool->lock, NULL);
}

void wf_pool_open_to_others(struct wf_pool *pool, size_t files_max, _Atomic uint64_t *retired)
{
	pool->files_max = files_max;
	pool->retired = retired;
}

static void free_slab(struct wf_slab *slab)
{
	for (uint32_t i = 0; slab->shown && i < slab->chunk_count; i++)
		free(slab->shown[i]);
	free(slab->shown);
	if (slab->guest)
		slab->guest->left(slab->guest);
	else if (slab->file.base)
		wf_sealed_close(&slab->file);
	else
		munmap(slab->region.base, slab->region.bytes);
	free(slab);
}

void wf_pool_fini(struct wf_pool *pool)
{
	wf_cache_fini(&pool->cache);
	for (size_t i = 0; i < pool->slab_count; i++)
		free_slab(pool->slabs[i]);
	free(pool->slabs);
	pthread_mutex_destroy(&pool->lock);
}

/* Find where @at is, or would be inserted: the first slab that ends after it. */
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

/* Take @slab out of the pool; others that look at it learn by @retired that it is gone. */
static void forget_slab(struct wf_pool *pool, struct wf_slab *slab)
{
	size_t i = search(pool, slab->region.base);

	wf_fork_hold();
	memmove(&pool->slabs[i], &pool->slabs[i + 1],
		(--pool->slab_count - i) * sizeof(*pool->slabs));
	wf_fork_let();
	wf_list_remove(&slab->node);
	if (slab->file.base && pool->retired)
		atomic_fetch_add(pool->retired, 1);
}

static void remove_slab(struct wf_pool *pool, struct wf_slab *slab)
{
	forget_slab(pool, slab);
	pool->slab_bytes -= slab->region.bytes;
	if (slab->huge)
		pool->huge_bytes -= slab->region.bytes;
	if (slab->file.base)
		pool->file_count--;
	free_slab(slab);
}

/* Is @slab unused?  A guest is not: it leaves by itself. */
static bool is_unused(const struct wf_slab *slab)
{
	return slab->free_count == slab->chunk_count && !slab->guest;
}

/*
 * Give unused slabs back until @bytes fit the budget.  Registered slabs are left: only their
 * owner may close registrations, and does when there is a waiter.
 */
static void trim(struct wf_pool *pool, size_t bytes)
{
	for (size_t i = pool->slab_count; i-- && pool->slab_bytes + bytes > pool->budget_bytes;) {
		struct wf_slab *slab = pool->slabs[i];

		/* Test in this order: a slab in use may be being registered right now. */
		if (is_unused(slab) && !wf_region_held(&slab->region))
			remove_slab(pool, slab);
	}
}

/* Map memory for @slab: sealed, for other processes to look at, if that is wanted and to be had. */
static int map_pages(struct wf_pool *pool, struct wf_slab *slab, size_t bytes, bool huge)
{
	int (*open)(struct wf_sealed *s, const char *name, size_t bytes,
		    enum wf_sealed_writers writers) = huge ? wf_sealed_open_huge : wf_sealed_open;
	void *base;

	slab->file = (struct wf_sealed){ .fd = -1 };
	if (pool->file_count < pool->files_max &&
	    !open(&slab->file, "weft-pool", bytes, WF_SEALED_OWNER)) {
		pool->file_count++;
		base = slab->file.base;
	} else {
		base = wf_placement_map(bytes, huge);
		if (base == MAP_FAILED)
			return -ENOMEM;
	}
	wf_placement_apply(&pool->placement, base, bytes);
	wf_region_init(&slab->region, base, bytes, WF_ACCESS_LOCAL);
	slab->region.pinned_bytes = &pool->pinned_bytes;
	slab->huge = huge;
	return 0;
}

/* Map memory as it is to be placed; in ordinary pages where no huge ones are left. */
static int map_slab(struct wf_pool *pool, struct wf_slab *slab, size_t bytes)
{
	if (!pool->placement.huge || map_pages(pool, slab, bytes, true))
		return map_pages(pool, slab, bytes, false);
	pool->huge_bytes += bytes;
	return 0;
}

/* Make room for one more in the list of slabs. */
static int make_place(struct wf_pool *pool)
{
	size_t size = pool->slab_size ? 2 * pool->slab_size : 16;
	struct wf_slab **more;

	if (pool->slab_count < pool->slab_size)
		return 0;
	wf_fork_hold();
	more = realloc(pool->slabs, size * sizeof(*more));
	if (more) {
		pool->slabs = more;
		pool->slab_size = size;
	}
	wf_fork_let();
	return more ? 0 : -ENOMEM;
}

static void insert_slab(struct wf_pool *pool, struct wf_slab *slab)
{
	size_t at = search(pool, slab->region.base);

	wf_fork_hold();
	memmove(&pool->slabs[at + 1], &pool->slabs[at],
		(pool->slab_count++ - at) * sizeof(*pool->slabs));
	pool->slabs[at] = slab;
	wf_fork_let();
}

/* Make a slab with all its chunks free, and no memory yet. */
static struct wf_slab *new_slab(size_t chunk_bytes, uint32_t count)
{
	struct wf_slab *slab = calloc(1, sizeof(*slab) + 2 * count * sizeof(slab->free[0]));

	if (!slab)
		return NULL;
	wf_list_init(&slab->node);
	slab->chunk_bytes = chunk_bytes;
	slab->chunk_count = count;
	slab->free_count = count;
	slab->shares = slab->free + count;
	for (uint32_t i = 0; i < count; i++)
		slab->free[i] = count - 1 - i;
	return slab;
}

static int grow(struct wf_pool *pool, size_t chunk_bytes, size_t slab_bytes,
		struct wf_slab **slab)
{
	uint32_t count = (uint32_t)(slab_bytes / chunk_bytes);
	struct wf_slab *fresh;
	int err;

	if (slab_bytes > pool->budget_bytes)
		return -ENOBUFS;
	trim(pool, slab_bytes);
	if (pool->slab_bytes + slab_bytes > pool->budget_bytes)
		return -EAGAIN;
	err = make_place(pool);
	if (err)
		return err;
	fresh = new_slab(chunk_bytes, count);
	if (!fresh)
		return -ENOMEM;
	err = map_slab(pool, fresh, slab_bytes);
	if (err) {
		free(fresh);
		return err;
	}
	insert_slab(pool, fresh);
	pool->slab_bytes += slab_bytes;
	*slab = fresh;
	return 0;
}

static void *pop_chunk(struct wf_pool *pool, struct wf_slab *slab)
{
	uint32_t index = slab->free[--slab->free_count];

	if (!slab->free_count)
		wf_list_remove(&slab->node);
	slab->shares[index] = 1;
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

/* Size of a slab for one chunk that is larger than those of any class. */
static size_t large_bytes(const struct wf_pool *pool, size_t bytes)
{
	size_t step = pool->placement.huge ? WF_PLACEMENT_PAGE_BYTES : LARGE_STEP;

	return (bytes + step - 1) / step * step;
}

bool wf_pool_fits(const struct wf_pool *pool, size_t bytes)
{
	if (bytes > SIZE_MAX - WF_PLACEMENT_PAGE_BYTES)
		return false;
	return (bytes <= CHUNK_BYTES_MAX ? SLAB_BYTES : large_bytes(pool, bytes)) <= pool->budget_bytes;
}

static int take_large(struct wf_pool *pool, size_t bytes, void **chunk)
{
	size_t slab_bytes = large_bytes(pool, bytes);
	struct wf_slab *best = NULL;
	int err;

	/* Take an idle slab that wastes at most half of itself. */
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

	if (bytes > SIZE_MAX - WF_PLACEMENT_PAGE_BYTES)
		return -ENOBUFS;
	pthread_mutex_lock(&pool->lock);
	err = bytes <= CHUNK_BYTES_MAX ? take_small(pool, bytes, chunk)
				       : take_large(pool, bytes, chunk);
	pthread_mutex_unlock(&pool->lock);
	return err;
}

/* Free chunk @index. */
static void push_chunk(struct wf_pool *pool, struct wf_slab *slab, uint32_t index)
{
	slab->free[slab->free_count++] = index;
	if (slab->guest)
		wf_list_append(&pool->leaving, &slab->node);
	else if (is_large(slab))
		wf_list_append(&pool->idle, &slab->node);
	else if (slab->free_count == 1)
		wf_list_append(&pool->partial[class_of(slab->chunk_bytes)], &slab->node);
	pool->came_back = true;
	/* Most memory comes back while nobody waits for it: then a turn need not look at it. */
	if (slab->guest || !wf_list_empty(&pool->waiters))
		pool->freed = true;
}

/*
 * Free chunk @index, which has no user any more, once the owner has closed the keys that peers
 * have.
 */
static void leave_chunk(struct wf_pool *pool, struct wf_slab *slab, uint32_t index)
{
	if (!slab->guest)
		pool->used_bytes -= slab->chunk_bytes;
	if (slab->shown && slab->shown[index]) {
		wf_list_append(&pool->revoked, &slab->shown[index]->node);
		pool->freed = true;
	} else {
		push_chunk(pool, slab, index);
	}
}

/* Find the slab and index of the taken chunk at whose @offset @at is.  NULL: there is none. */
static struct wf_slab *find_chunk(const struct wf_pool *pool, const void *at, uint32_t *index,
				  size_t *offset)
{
	struct wf_slab *slab = find_slab(pool, at);
	size_t from;

	if (!slab)
		return NULL;
	from = (size_t)((const char *)at - (const char *)slab->region.base);
	*index = (uint32_t)(from / slab->chunk_bytes);
	*offset = from % slab->chunk_bytes;
	return *index < slab->chunk_count && slab->shares[*index] ? slab : NULL;
}

int wf_pool_give(struct wf_pool *pool, void *chunk)
{
	struct wf_slab *slab;
	uint32_t index;
	int err = -EINVAL;
	size_t offset;

	if (!chunk)
		return 0;
	pthread_mutex_lock(&pool->lock);
	slab = find_chunk(pool, chunk, &index, &offset);
	if (slab && !offset) {
		if (!--slab->shares[index])
			leave_chunk(pool, slab, index);
		err = 0;
	}
	pthread_mutex_unlock(&pool->lock);
	return err;
}

int wf_pool_admit(struct wf_pool *pool, void *base, size_t bytes, const struct wf_sealed *file,
		  struct wf_pool_guest *guest)
{
	struct wf_slab *slab = new_slab(bytes, 1);
	int err;

	if (!slab)
		return -ENOMEM;
	slab->free_count = 0;
	slab->shares[0] = 1;
	slab->file = *file;
	slab->guest = guest;
	wf_region_init(&slab->region, base, bytes, WF_ACCESS_LOCAL);
	slab->region.pinned_bytes = &pool->pinned_bytes;
	pthread_mutex_lock(&pool->lock);
	err = make_place(pool);
	if (!err)
		insert_slab(pool, slab);
	pthread_mutex_unlock(&pool->lock);
	if (err)
		free(slab);
	return err;
}

/*
 * Close the keys that peers have of chunks without a user.  Returns whether there were any.
 * Owner, with the lock.
 */
static bool close_revoked(struct wf_pool *pool)
{
	bool any = !wf_list_empty(&pool->revoked);
	struct wf_list *node;

	while ((node = wf_list_pop(&pool->revoked))) {
		struct shown *shown = WF_CONTAINER(node, struct shown, node);

		wf_region_forget(&shown->region, NULL);
		shown->slab->shown[shown->index] = NULL;
		push_chunk(pool, shown->slab, shown->index);
		free(shown);
	}
	return any;
}

void wf_pool_dismiss(struct wf_pool *pool)
{
	struct wf_list *node;

	for (;;) {
		struct wf_slab *slab = NULL;

		pthread_mutex_lock(&pool->lock);
		close_revoked(pool);
		node = wf_list_first(&pool->leaving);
		if (node) {
			slab = WF_CONTAINER(node, struct wf_slab, node);
			wf_region_forget(&slab->region, NULL);
			forget_slab(pool, slab);
		}
		pthread_mutex_unlock(&pool->lock);
		if (!slab)
			return;
		free_slab(slab); /* without the lock: a guest may give shares of other pools */
	}
}

int wf_pool_share(struct wf_pool *pool, const void *at, size_t count, void **chunk)
{
	struct wf_slab *slab;
	uint32_t index;
	int err = -EINVAL;
	size_t offset;

	pthread_mutex_lock(&pool->lock);
	slab = find_chunk(pool, at, &index, &offset);
	if (slab && count <= slab->chunk_bytes - offset) {
		slab->shares[index]++;
		*chunk = (char *)slab->region.base + index * slab->chunk_bytes;
		err = 0;
	}
	pthread_mutex_unlock(&pool->lock);
	return err;
}

int wf_pool_find(struct wf_pool *pool, const void *at, struct wf_pool_place *place)
{
	const struct wf_slab *slab;
	int err = -ENOENT;

	pthread_mutex_lock(&pool->lock);
	slab = find_slab(pool, at);
	if (slab && slab->file.base) {
		*place = (struct wf_pool_place){
			.fd = slab->file.fd,
			.number = slab->file.number,
			.offset = (uint64_t)((const char *)at - (const char *)slab->region.base),
		};
		err = 0;
	}
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

/*
 * Get the region of chunk @index for peers, made if there is none.  With the lock.  NULL: no
 * memory.
 */
static struct shown *show_chunk(struct wf_slab *slab, uint32_t index)
{
	struct shown *shown;

	if (!slab->shown)
		slab->shown = calloc(slab->chunk_count, sizeof(*slab->shown));
	if (!slab->shown)
		return NULL;
	if (slab->shown[index])
		return slab->shown[index];
	shown = calloc(1, sizeof(*shown));
	if (!shown)
		return NULL;
	wf_list_init(&shown->node);
	shown->slab = slab;
	shown->index = index;
	wf_region_init(&shown->region, (char *)slab->region.base + index * slab->chunk_bytes,
		       slab->chunk_bytes, WF_ACCESS_REMOTE_READ);
	slab->shown[index] = shown;
	return shown;
}

struct wf_region *wf_pool_shown(struct wf_pool *pool, const void *at, size_t count)
{
	struct shown *shown = NULL;
	struct wf_slab *slab;
	uint32_t index;
	size_t offset;

	pthread_mutex_lock(&pool->lock);
	slab = find_chunk(pool, at, &index, &offset);
	if (slab && count <= slab->chunk_bytes - offset)
		shown = show_chunk(slab, index);
	pthread_mutex_unlock(&pool->lock);
	return shown ? &shown->region : NULL;
}

bool wf_pool_holds(struct wf_pool *pool, const void *at, size_t count)
{
	const struct wf_slab *slab;
	uint32_t index;
	size_t offset;

	pthread_mutex_lock(&pool->lock);
	slab = find_chunk(pool, at, &index, &offset);
	pthread_mutex_unlock(&pool->lock);
	return slab && count <= slab->chunk_bytes - offset;
}

int wf_pool_pin(struct wf_pool *pool, const void *chunk, int ordinal, struct wf_error *e)
{
	struct wf_region *region = wf_pool_region(pool, chunk, 1);

	if (!region)
		return wf_error_set(e, -EINVAL, "%p is not memory of the pool", chunk);
	return wf_region_pin(region, ordinal, e);
}

void wf_pool_forget(struct wf_pool *pool, const struct wf_rail *rail)
{
	wf_arena_forget(&pool->arenas, rail);
	wf_arena_forget(&pool->cache.arenas, rail);
	pthread_mutex_lock(&pool->lock);
	for (size_t i = 0; i < pool->slab_count; i++) {
		struct wf_slab *slab = pool->slabs[i];

		wf_region_forget(&slab->region, rail);
		for (uint32_t j = 0; slab->shown && j < slab->chunk_count; j++)
			if (slab->shown[j])
				wf_region_forget(&slab->shown[j]->region, rail);
	}
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

/*
 * Close the registrations of unused slabs, so that they can make room for others.  Returns
 * whether there were any.
 */
static bool unregister_unused(struct wf_pool *pool)
{
	bool any = false;

	for (size_t i = 0; i < pool->slab_count; i++) {
		struct wf_slab *slab = pool->slabs[i];

		if (slab->free_count != slab->chunk_count || !wf_region_held(&slab->region))
			continue;
		wf_region_evict(&slab->region);
		any = true;
	}
	return any;
}

void wf_pool_shrink(struct wf_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	close_revoked(pool);
	for (size_t i = pool->slab_count; i--;) {
		struct wf_slab *slab = pool->slabs[i];

		if (!is_unused(slab))
			continue;
		wf_region_forget(&slab->region, NULL);
		remove_slab(pool, slab);
	}
	pthread_mutex_unlock(&pool->lock);
}

void wf_pool_wait(struct wf_pool *pool, struct wf_pool_waiter *waiter)
{
	pthread_mutex_lock(&pool->lock);
	wf_list_append(&pool->waiters, &waiter->node);
	pool->wait_count++;
	if (close_revoked(pool) || unregister_unused(pool) || pool->came_back)
		pool->freed = true;
	pthread_mutex_unlock(&pool->lock);
}

void wf_pool_unwait(struct wf_pool *pool, struct wf_pool_waiter *waiter)
{
	pthread_mutex_lock(&pool->lock);
	wf_list_remove(&waiter->node);
	pthread_mutex_unlock(&pool->lock);
}

void wf_pool_retry(struct wf_pool *pool)
{
	struct wf_list due;
	struct wf_list *node;

	wf_cache_run(&pool->cache);
	if (!atomic_load_explicit(&pool->freed, memory_order_relaxed))
		return;
	wf_list_init(&due);
	pthread_mutex_lock(&pool->lock);
	wf_list_splice(&due, &pool->waiters);
	pool->freed = pool->came_back = false;
	pthread_mutex_unlock(&pool->lock);
	wf_pool_dismiss(pool);
	/* A retry may stop another waiter, which takes itself out of @due. */
	while ((node = wf_list_pop(&due))) {
		struct wf_pool_waiter *waiter = WF_CONTAINER(node, struct wf_pool_waiter, node);

		waiter->retry(waiter);
	}
}

void wf_pool_forked(struct wf_pool *pool)
{
	for (size_t i = 0; i < pool->slab_count; i++) {
		struct wf_slab *slab = pool->slabs[i];

		if (slab->guest)
			slab->guest->forked(slab->guest);
		else
			wf_sealed_forked(&slab->file);
	}
}
