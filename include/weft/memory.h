/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that transfers need not register: the node's pool, and memory near to the devices that
 * will use it.
 */
#ifndef WEFT_MEMORY_H
#define WEFT_MEMORY_H

#include <weft/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Take @bytes from the node's pool, aligned to 64 bytes.  Returns @memory owned: free it with
 * weft_free().  -ENOBUFS: the pool's budget is spent (WEFT_POOL_BYTES raises it); memory that
 * peers could read over a rail (node.h) where registering is expensive, "dear" in
 * weft_providers(7), comes back a moment after it is freed.  Threads: any, callback.
 */
WEFT_API int weft_alloc(struct weft_node *node, size_t bytes, void **memory);

enum weft_near_flag {
	WEFT_NEAR_STRICT = 1, /* memory of the first choice, or none */
	WEFT_NEAR_DEVICE = 2  /* memory of a CUDA device will do; the processor must not touch it */
};

/*
 * Clients, which are to use the memory, and publishers, which provide it (topology.h).  Zero means
 * "as the rules say" (WEFT_RULES).
 */
struct weft_near_options {
	size_t size;
	/*
	 * Up to 16 clients, ended by NULL: PCI addresses, NICs, GPUs ("gpu0") or NUMA nodes
	 * ("node0").  NULL: the NICs of this node, or where it has none the caller's NUMA node.
	 */
	const char *const *clients;
	/*
	 * Publishers or kinds of them, the best first: "p2pmem,host:1".  "host" stands behind them
	 * unless WEFT_NEAR_STRICT is set.
	 */
	const char *from;
	unsigned flags; /* enum weft_near_flag */
};
#define WEFT_NEAR_OPTIONS_INIT WEFT_SIZED_INIT(struct weft_near_options)

/*
 * Take @bytes near to the devices that will use them, registered with every rail of the node.  The
 * memory is used and freed as that of weft_alloc(), WEFT_SHARE included, but counts in no pool's
 * budget, and begins with a page.  Its publisher is the first that the rules allow, that has room,
 * and whose memory all rails accept: weft_memory_place() tells which.
 *
 * With WEFT_NEAR_DEVICE the memory may be a CUDA device's, where a rule allows "cuda".  Such
 * memory is for tensors of the device that weft_memory_place() names, as memory of cudaMalloc is:
 * not registered, not shared, and not for the processor.
 *
 * -ENODEV: there is no such client, or no device in whose place a rule publishes memory.  -ENOBUFS:
 * no publisher has room.  -EINVAL: a word names no publisher.  -EPERM: WEFT_NEAR_STRICT, and the
 * system lets no memory be placed.  A rail's own code: it accepts none of the memory that there is.
 * -ENOMEM: the system or the device has no more.  -EDEADLK inside a callback.  -ETIMEDOUT: the
 * node's thread is stuck.
 * Threads: any; in a manual node the owner.
 */
WEFT_API int weft_alloc_near(struct weft_node *node, size_t bytes,
			     const struct weft_near_options *options, void **memory);

/* Placement of memory of weft_alloc_near(): where it lies, and why there. */
struct weft_placement {
	size_t size;
	char publisher[64]; /* name of the publisher in rules: "host:0", "p2pmem:0000:3b:00.0" */
	int numa_node;      /* -1: not known */
	uint64_t bytes;     /* bytes that the publisher has given */
	char why[320];      /* reason for the place */
	struct weft_device device; /* device for a tensor here: WEFT_CPU, or WEFT_CUDA and which */
};
#define WEFT_PLACEMENT_INIT WEFT_SIZED_INIT(struct weft_placement)

/*
 * Tell where @memory of weft_alloc_near(), or a byte of it, lies; set ->size first.
 * -EINVAL: @memory is not of weft_alloc_near().  Threads: any, callback.
 */
WEFT_API int weft_memory_place(struct weft_node *node, const void *memory,
			       struct weft_placement *placement);

/*
 * Add a user of memory of weft_alloc() or weft_alloc_near(): the memory is given back when each
 * user has called weft_free().  -EINVAL: @memory is of neither, or not the first byte of it.
 * Threads: any, callback.
 */
WEFT_API int weft_retain(struct weft_node *node, void *memory);

/*
 * Give @memory back; accepts NULL.  No operation may be using the memory, but for sends with
 * WEFT_SHARE.  CUDA may wait for what runs on the device whose memory it is.  Threads: any,
 * callback.
 */
WEFT_API void weft_free(struct weft_node *node, void *memory);

struct weft_region; /* memory of the program's that stays registered */

/*
 * Register the @bytes at @memory, host memory of the program's own, with every rail where
 * registering is expensive, and keep them so: sends, receives and windows within register nothing
 * there.  Borrows the memory until weft_unregister() has returned 0, or the node has closed.
 * Returns @region owned.  Memory that is registered again, from the same address and as long, has
 * the same handle, and is counted.
 *
 * A put of many blocks out of one region moves as one body: the peer may read what lies between
 * them.
 *
 * -EINVAL: no bytes.  -ENOTSUP: memory of a CUDA device, where this process has the driver loaded
 * (WEFT_CUDA).  -ENOMEM: RLIMIT_MEMLOCK or the rail's own limit is reached; the sentence says
 * which.  -EDEADLK inside a callback.  Threads: any; the owner of a manual node drives it
 * meanwhile.
 */
WEFT_API int weft_register(struct weft_node *node, void *memory, size_t bytes,
			   struct weft_region **region);

/*
 * Undo one weft_register(), before its node closes, which frees @region; accepts NULL.  The last
 * waits for the operations that use its registrations, and closes them; windows over the memory are
 * closed before, for what they have lent is in use until then.  Memory that operations use on a
 * rail without registrations is still theirs, until they have ended.  -EDEADLK inside a callback.
 * Threads: any; the owner of a manual node drives it meanwhile.
 */
WEFT_API int weft_unregister(struct weft_region *region);

#ifdef __cplusplus
}
#endif
#endif
