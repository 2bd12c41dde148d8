/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CUDA's devices, and memory as CUDA sees it: the kind of memory at a pointer, host memory that
 * devices may reach, and device memory that other processes and cards may reach.
 *
 * weft makes no context of its own.  It works in the primary context of each device, which is
 * the one that the CUDA runtime uses, too: retained when the device is first used, and for the
 * life of the process.  The functions here make that context current for as long as they run,
 * and leave what the calling thread had.  Memory that a program allocated in a context of its
 * own is reached from there as well: all contexts of a process share one address space.
 *
 * Every function here needs a driver that is ready (wf_cuda_driver_load) and returns -ENODEV
 * without one; in a forked child, -EOWNERDEAD.
 *
 * Threads: any.
 */
#ifndef WF_CUDA_H
#define WF_CUDA_H

#include "memory/cuda_driver.h"

struct wf_cuda_device {
	char name[96];
	char pci[16];	    /* "0000:3b:00.0", lower case; "": unknown */
	uint64_t bytes;	    /* size of the device's memory */
	int numa_node;	    /* nearest NUMA node of the host; -1: unknown */
	bool gives_dma_buf; /* the driver gives dma-bufs of the memory */
};

/* Describe device @ordinal.  -EINVAL: there is no such device. */
int wf_cuda_device(int ordinal, struct wf_cuda_device *device, struct wf_error *e);

/*
 * Return the host's NUMA node nearest to device @ordinal, which is there; -1: not known.  The
 * driver is asked once.
 */
int wf_cuda_numa_node(int ordinal);

/*
 * Make the primary context of @ordinal the calling thread's current one, until wf_cuda_leave()
 * puts the previous one back.  Calls come in pairs, in one function; between them the thread is
 * relaxed, too.
 */
int wf_cuda_enter(int ordinal, struct wf_error *e);

/* Enter @context, of device @ordinal, as wf_cuda_enter() enters the primary one. */
int wf_cuda_enter_context(wf_cu_context context, int ordinal, struct wf_error *e);

/* End wf_cuda_enter() or wf_cuda_enter_context(). */
void wf_cuda_leave(void);

/*
 * Let this thread call CUDA until wf_cuda_unrelax() while any thread of the program captures a
 * graph.  CUDA refuses much of what any thread asks during a capture, and spoils the capture
 * besides, for the call might belong to the graph; weft's calls never do.  Calls come in pairs,
 * in one function.  The driver is ready.
 */
void wf_cuda_relax(void);

/* End wf_cuda_relax(). */
void wf_cuda_unrelax(void);

enum wf_cuda_memory_kind {
	WF_CUDA_HOST,	 /* host memory that CUDA does not know */
	WF_CUDA_PINNED,	 /* host memory that devices reach */
	WF_CUDA_DEVICE,	 /* device memory: the CPU does not reach it */
	WF_CUDA_MANAGED, /* memory that moves: the CPU reaches it, cards don't */
};

/*
 * The memory at a pointer; all members after the kind are 0 for host memory that CUDA does not
 * know.
 */
struct wf_cuda_memory {
	enum wf_cuda_memory_kind kind;
	int device;
	uint64_t buffer; /* number of the allocation: a later one at its address has another */
	uintptr_t start; /* start of the allocation */
	size_t bytes;
};

int wf_cuda_find(const void *at, struct wf_cuda_memory *memory, struct wf_error *e);

/*
 * Allocate @bytes of memory of device @ordinal, as cudaMalloc does: aligned to 256 and not
 * cleared, until wf_cuda_free.  -ENOMEM: the device has no room for it.
 */
int wf_cuda_alloc(int ordinal, size_t bytes, void **at, struct wf_error *e);

/*
 * Free memory of device @ordinal, of which no copy is under way.  May wait for other work of
 * the device.
 */
void wf_cuda_free(int ordinal, void *at);

/*
 * Pin host memory for copies to and from every device, until wf_cuda_unpin: a copy of other
 * memory may block.  @ordinal is a device that is used anyway.  -EEXIST: the memory, or a part
 * of it, is pinned.  -ENOMEM: the system lets no more be locked.  Takes about as long as
 * touching every page of the memory.
 */
int wf_cuda_pin(int ordinal, void *at, size_t bytes, struct wf_error *e);

/*
 * Unpin memory as it was pinned, before it is unmapped.  Memory that is not pinned is left
 * alone.
 */
void wf_cuda_unpin(int ordinal, void *at);

/* An allocation of device memory, for another process of this host. */
struct wf_cuda_export {
	struct wf_cuda_driver_ipc_handle handle;
	uint64_t number; /* BUFFER_ID: no other allocation of this process has or will have it */
	uint64_t offset; /* offset of the byte asked for from the start of the other's mapping */
	uint64_t bytes;	 /* size of the allocation */
};

/*
 * Export the allocation that holds @at.  -EINVAL, -EOPNOTSUPP: the memory was not allocated as
 * wf_cuda_alloc() does it, but from a memory pool, say.
 */
int wf_cuda_export(const void *at, struct wf_cuda_export *export, struct wf_error *e);

/*
 * Map an allocation that another process exported, for use by device @ordinal; *@start is where
 * it begins here.  A process can't import its own export; an allocation imported twice is
 * dropped twice.
 */
int wf_cuda_import(int ordinal, const struct wf_cuda_driver_ipc_handle *handle, void **start,
		   struct wf_error *e);

/* Unmap an allocation that wf_cuda_import() mapped. */
void wf_cuda_drop_import(int ordinal, void *start);

/*
 * Open a dma-buf of the @bytes of device memory at @at, for a card to reach; the caller closes
 * *@fd.  The dma-buf begins *@offset bytes before @at, where a page does.  -EOPNOTSUPP: the
 * device or its driver gives none.
 */
int wf_cuda_dma_buf(const void *at, size_t bytes, int *fd, uint64_t *offset, struct wf_error *e);

/*
 * Prepare the allocation of @ordinal at @at for cards: from now on, what CUDA's own calls do to
 * it without a stream is over when they return.
 */
int wf_cuda_open_to_cards(int ordinal, const void *at, struct wf_error *e);

/*
 * Make what cards have written to memory of @ordinal visible to what the device does from now
 * on.  -EOPNOTSUPP: the device or its driver can't.
 */
int wf_cuda_flush(int ordinal, struct wf_error *e);

#endif
