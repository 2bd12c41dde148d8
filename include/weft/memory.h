/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that transfers need not register: the node's pool, and memory near to the
 * devices that will use it.
 */
#ifndef WEFT_MEMORY_H
#define WEFT_MEMORY_H

#include <weft/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Take @bytes from the node's pool, aligned to 64.  Free with weft_free.
 * -ENOBUFS: the pool's budget is spent (WEFT_POOL_BYTES raises it); what peers could read over a
 * rail whose memory is dear (weft_providers(7)) comes back a moment after it is freed.
 * Threads: any, callback.
 */
WEFT_API int weft_alloc(struct weft_node *node, size_t bytes, void **memory);

enum weft_near_flag {
	WEFT_NEAR_STRICT = 1, /* from the first choice, or not at all */
	WEFT_NEAR_DEVICE = 2  /* memory of a CUDA device, which the processor must not touch, will do */
};

/* Who will use memory, and whose it may be.  Zero means "as the rules say" (WEFT_RULES). */
struct weft_near_options {
	size_t size;
	/*
	 * Ended by NULL, up to 16: PCI addresses, NICs, GPUs ("gpu0") or NUMA nodes ("node0").
	 * NULL: the NICs of this node, or where it has none the caller's NUMA node.
	 */
	const char *const *clients;
	/* Publishers or kinds of them, the best first: "p2pmem,host:1".  Unless it is strict "host" stands behind. */
	const char *from;
	unsigned flags; /* enum weft_near_flag */
};

/*
 * Take @bytes near to the devices that will use them, registered with every rail of the
 * node.  It is used and freed as that of weft_alloc, WEFT_SHARE included, but counts in no
 * pool's budget, and begins with a page.  The first publisher that the rules allow, that has
 * room, and whose memory all rails accept gives it: weft_memory_place tells.
 *
 * With WEFT_NEAR_DEVICE it may be memory of a CUDA device, where a rule allows "cuda".  That is
 * for tensors of the device that weft_memory_place names, as memory of cudaMalloc is: it is not
 * registered, not shared, and not for the processor.
 *
 * -ENODEV: there is no such client.  -ENOBUFS: no publisher has room.  -EINVAL: a name is
 * none.  Or why a rail accepts none of what there was.  -ENOMEM: the system or the
 * device has no more.  -EDEADLK inside a callback.  -ETIMEDOUT: the node's thread is stuck.
 * Threads: any; in a manual node the owner.
 */
WEFT_API int weft_alloc_near(struct weft_node *node, size_t bytes,
			     const struct weft_near_options *options, void **memory);

/* Where memory of weft_alloc_near lies, and why there. */
struct weft_placement {
	size_t size;
	char publisher[64]; /* as rules name it: "host:0", "p2pmem:0000:3b:00.0" */
	int numa_node;      /* -1: not known */
	uint64_t bytes;     /* that its publisher has given for it */
	char why[320];
	struct weft_device device; /* for a tensor in it: WEFT_CPU, or WEFT_CUDA and which */
};

/* Set ->size first.  -EINVAL: it is no such memory.  Threads: any, callback. */
WEFT_API int weft_memory_place(struct weft_node *node, const void *memory,
			       struct weft_placement *placement);

/*
 * One more user of memory of weft_alloc or weft_alloc_near: it is given back when each has
 * called weft_free.  -EINVAL: it is no such memory.  Threads: any, callback.
 */
WEFT_API int weft_retain(struct weft_node *node, void *memory);

/*
 * Give it back; accepts NULL.  No operation may be using it.  CUDA may wait for what runs on
 * the device whose memory it is.  Threads: any, callback.
 */
WEFT_API void weft_free(struct weft_node *node, void *memory);

#ifdef __cplusplus
}
#endif
#endif
