/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pool: memory for frames, received tensors and other uses, in slabs that are registered
 * once, for our own use, and cut into chunks of fixed sizes.  Memory that peers may read is
 * registered by the chunk, and that registration is closed before the chunk can be another's.
 *
 * A chunk of up to 1 MiB shares a slab with others of its size class (powers of two); a larger
 * one has a slab of its own, which is kept for the next of about its size.  The budget counts
 * slabs, used or idle.
 *
 * A chunk may have several users: each share of it is given back by itself.
 *
 * A guest is memory from elsewhere, of one chunk, that is looked after as the pool's own is:
 * found, shared and registered.  A guest counts in no budget, and leaves with its last share.
 *
 * Where other processes of this host may look at chunks, slabs are sealed memory, as far as
 * there are descriptors for that.
 *
 * Memory is never overcommitted: at the limit wf_pool_take returns -EAGAIN and a waiter is told
 * when it is worth asking again.
 *
 * Threads: any for take and give (one lock, held for a few instructions or one mmap); owner for
 * waiters and registrations.
 */
#ifndef WF_POOL_H
#define WF_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include "memory/arena.h"
#include "memory/cache.h"
#include "memory/placement.h"
#include "memory/region.h"
#include "util/list.h"
#include "util/sealed.h"

struct wf_slab;

/* Callbacks of a guest, which its owner fills in. */
struct wf_pool_guest {
	/*
	 * The guest's last share is gone, and so are its registrations.  Owner; setup when the
	 * pool ends.
	 */
	void (*left)(struct wf_pool_guest *guest);
	/* The process is a forked child. */
	void (*forked)(struct wf_pool_guest *guest);
};

struct wf_pool {
	pthread_mutex_t lock;
	struct wf_slab **slabs; /* sorted by address */
	size_t slab_count, slab_size;
	uint64_t budget_bytes, slab_bytes, used_bytes;
	struct wf_placement placement; /* set before the first chunk is taken */
	uint64_t huge_bytes;    /* slabs in huge pages */
	_Atomic uint64_t pinned_bytes; /* slabs and guests pinned for CUDA devices */
	uint64_t wait_count;    /* how often a wait was needed */
	struct wf_list partial[16]; /* per class: slabs with a free chunk */
	struct wf_list idle;    /* unused slabs of large chunks */
	struct wf_list leaving; /* guests without a share */
	struct wf_list revoked; /* chunks without a share of which peers still have keys */
	struct wf_list waiters;
	struct wf_list arenas;  /* struct wf_arena, beside the pool; owner only */
	struct wf_cache cache;  /* registrations of other memory of the program's; owner only */
	bool came_back;         /* a chunk came back since the waiters last ran */
	_Atomic bool freed;     /* waiters are to run, or chunks to lose their keys */
	size_t file_count, files_max; /* slabs that are sealed memory */
	_Atomic uint64_t *retired; /* count of such slabs gone, shown to others; NULL: not shown */
};

int wf_pool_init(struct wf_pool *pool, uint64_t budget_bytes);

/* Free every chunk, taken or not; registrations were closed before. */
void wf_pool_fini(struct wf_pool *pool);

/*
 * Let other processes look at chunks from now on: up to @files_max slabs are sealed memory, and
 * @retired counts those that are gone.  Borrows @retired until the pool's end or a call with
 * NULL.  Threads: setup.
 */
void wf_pool_open_to_others(struct wf_pool *pool, size_t files_max, _Atomic uint64_t *retired);

/*
 * Take a chunk of at least @bytes, aligned to 64.  -EAGAIN: the budget is spent.  -ENOBUFS:
 * @bytes will never fit the budget.  -ENOMEM: the system has no more.
 */
int wf_pool_take(struct wf_pool *pool, size_t bytes, void **chunk);

/* Return whether a chunk of @bytes could ever fit the budget.  Threads: any. */
bool wf_pool_fits(const struct wf_pool *pool, size_t bytes);

/*
 * Give a share of @chunk back; the last share frees it.  Accepts NULL.  -EINVAL: @chunk is no
 * chunk of this pool that is taken; nothing changed.
 */
int wf_pool_give(struct wf_pool *pool, void *chunk);

/*
 * Look after the @bytes at @base, with one share that the caller gives back as a chunk's.
 * Other processes of this host can map @file; base NULL: they can't.  Borrows @guest until it
 * has left.  -ENOMEM.  Threads: any.
 */
int wf_pool_admit(struct wf_pool *pool, void *base, size_t bytes, const struct wf_sealed *file,
		  struct wf_pool_guest *guest);

/*
 * Let guests without a share leave, and chunks lose their keys, before the next wf_pool_run.
 * Owner.
 */
void wf_pool_dismiss(struct wf_pool *pool);

/*
 * Take another share of the chunk that holds @count bytes at @at.  -EINVAL: no such chunk is
 * taken.
 */
int wf_pool_share(struct wf_pool *pool, const void *at, size_t count, void **chunk);

/* The place where other processes find a byte of the pool. */
struct wf_pool_place {
	int fd;          /* file of the slab, as long as the byte's chunk is taken */
	uint64_t number; /* number of the file */
	uint64_t offset; /* offset in the file */
};

/* Find the place of the byte at @at.  -ENOENT: other processes can't look at it. */
int wf_pool_find(struct wf_pool *pool, const void *at, struct wf_pool_place *place);

/*
 * Return the slab that holds @count bytes at @at, as a region for our own use; NULL: not of
 * this pool.
 */
struct wf_region *wf_pool_region(struct wf_pool *pool, const void *at, size_t count);

/*
 * Return the taken chunk that holds @count bytes at @at, as a region for peers to read, which
 * ends with the chunk's last share.  NULL: no such chunk, or no memory for the region.  Owner.
 */
struct wf_region *wf_pool_shown(struct wf_pool *pool, const void *at, size_t count);

/* Returns whether one taken chunk holds @count bytes at @at. */
bool wf_pool_holds(struct wf_pool *pool, const void *at, size_t count);

/* Pin the slab of a chunk that is taken, once, for CUDA devices: as wf_region_pin.  Owner. */
int wf_pool_pin(struct wf_pool *pool, const void *chunk, int ordinal, struct wf_error *e);

/*
 * Close the registrations of all slabs with @rail; NULL: with every rail, and unpin the slabs.
 * Owner.
 */
void wf_pool_forget(struct wf_pool *pool, const struct wf_rail *rail);

/* Give all unused slabs back to the system.  Owner. */
void wf_pool_shrink(struct wf_pool *pool);

struct wf_pool_waiter {
	struct wf_list node;
	void (*retry)(struct wf_pool_waiter *waiter);
};

#define WF_POOL_TEXT_BYTES 160

/* Describe, for people, that @bytes of the pool are waited for, and why. */
void wf_pool_describe(struct wf_pool *pool, uint64_t bytes, char text[WF_POOL_TEXT_BYTES]);

/* Tell @waiter once when memory has come back; its retry may wait again. */
void wf_pool_wait(struct wf_pool *pool, struct wf_pool_waiter *waiter);

/* Stop waiting. */
void wf_pool_unwait(struct wf_pool *pool, struct wf_pool_waiter *waiter);

/* Do as wf_pool_run(), when there is something to do.  Owner. */
void wf_pool_retry(struct wf_pool *pool);

/*
 * Tell the waiters if memory came back, and let go of registrations of memory that has changed.
 * Owner, from the poll loop: each turn looks, and finds nothing but for a few of them.
 */
static inline void wf_pool_run(struct wf_pool *pool)
{
	if (pool->cache.count || atomic_load_explicit(&pool->freed, memory_order_relaxed))
		wf_pool_retry(pool);
}

/* Make the pool's memory a copy in a forked child: its writes are not the parent's. */
void wf_pool_forked(struct wf_pool *pool);

#endif
