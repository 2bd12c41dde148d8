/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CUDA's devices, and memory as CUDA sees it: what a pointer points to, host memory
 * that devices may reach, and device memory that other processes and cards may.
 *
 * weft makes no context of its own.  It works in the primary one of each device, which
 * is the one that the CUDA runtime uses, too: retained when the device is first used,
 * and for the life of the process.  The functions here make it current for as long as
 * they run, and leave what the calling thread had.  Memory that a program allocated in
 * a context of its own is reached from there as well: all contexts of a process share
 * one address space.
 *
 * Every function here needs a driver that is ready (wf_cuda_driver_load) and says
 * -ENODEV without one; in a forked child, -EOWNERDEAD.
 *
 * Threads: any.
 */
#ifndef WF_CUDA_H
#define WF_CUDA_H

#include "memory/cuda_driver.h"

struct wf_cuda_device {
	char name[96];
	char pci[16];	    /* "0000:3b:00.0", lower case; "": unknown */
	uint64_t bytes;	    /* of its memory */
	int numa_node;	    /* of the host, nearest to it; -1: unknown */
	bool gives_dma_buf; /* of its memory */
};

/* The device with this number.  -EINVAL: there is none. */
int wf_cuda_device(int ordinal, struct wf_cuda_device *device, struct wf_error *e);

/* The host's NUMA node nearest to @ordinal, which is there; -1: not known.  Asked for once. */
int wf_cuda_numa_node(int ordinal);

/*
 * Make the primary context of @ordinal, or @context of it, the calling thread's current one,
 * until wf_cuda_leave puts back what was.  In pairs, in one function.  Within them the
 * thread is relaxed, too.
 */
int wf_cuda_enter(int ordinal, struct wf_error *e);
int wf_cuda_enter_context(wf_cu_context context, int ordinal, struct wf_error *e);
void wf_cuda_leave(void);

/*
 * While a thread of the program captures a graph CUDA refuses much of what any thread asks,
 * and spoils the capture besides, for it might belong to the graph.  What weft asks never
 * does: it asks between these two, in pairs, in one function.  The driver is ready.
 */
void wf_cuda_relax(void);
void wf_cuda_unrelax(void);

enum wf_cuda_memory_kind {
	WF_CUDA_HOST,	 /* CUDA does not know it */
	WF_CUDA_PINNED,	 /* the host's, and devices reach it */
	WF_CUDA_DEVICE,	 /* a device's: the CPU does not reach it */
	WF_CUDA_MANAGED, /* where it lies changes: the CPU reaches it, cards don't */
};

/* What a pointer points to; all after the kind is 0 of host memory that CUDA does not know. */
struct wf_cuda_memory {
	enum wf_cuda_memory_kind kind;
	int device;
	uint64_t buffer; /* the allocation's number: a later one at its address has another */
	uintptr_t start; /* of the allocation */
	size_t bytes;
};

int wf_cuda_find(const void *at, struct wf_cuda_memory *memory, struct wf_error *e);

/*
 * @bytes of memory of device @ordinal, as cudaMalloc gives it: aligned to 256 and not
 * cleared, until wf_cuda_free.  -ENOMEM: the device has no room for it.
 */
int wf_cuda_alloc(int ordinal, size_t bytes, void **at, struct wf_error *e);

/* No copy of it is under way.  May wait for what else runs on the device. */
void wf_cuda_free(int ordinal, void *at);

/*
 * Pin host memory for copies to and from every device, until wf_cuda_unpin: a copy of
 * other memory may block.  @ordinal is one that is used anyway.  -EEXIST: it, or a part
 * of it, is pinned.  -ENOMEM: the system lets no more be locked.  Takes about as long as
 * touching every page of it.
 */
int wf_cuda_pin(int ordinal, void *at, size_t bytes, struct wf_error *e);

/* Before it is unmapped, and as it was pinned.  What was not is left. */
void wf_cuda_unpin(int ordinal, void *at);

/* An allocation of device memory, for another process of this host. */
struct wf_cuda_export {
	struct wf_cu_ipc_handle handle;
	uint64_t offset; /* of the byte that was asked for, from where the other's mapping begins */
	uint64_t bytes;	 /* of the allocation */
};

/* -EINVAL, -EOPNOTSUPP: not of memory that was allocated in this way, as of a pool's. */
int wf_cuda_export(const void *at, struct wf_cuda_export *export, struct wf_error *e);

/*
 * Map what another process exported, for use by @ordinal; @start is where the
 * allocation begins here.  A process can't open what is its own; what it opens twice,
 * it closes twice.
 */
int wf_cuda_import(int ordinal, const struct wf_cu_ipc_handle *handle, void **start,
		   struct wf_error *e);
void wf_cuda_drop_import(int ordinal, void *start);

/*
 * A descriptor of the @bytes of device memory at @at, for a card to reach; the caller
 * closes it.  It begins @offset bytes before @at, where a page does.  -EOPNOTSUPP: the
 * device or its driver gives none.
 */
int wf_cuda_dma_buf(const void *at, size_t bytes, int *fd, uint64_t *offset, struct wf_error *e);

/*
 * A card is to reach the allocation of @ordinal at @at: what CUDA's own calls do to it without
 * a stream is over, from now on, when they return.
 */
int wf_cuda_open_to_cards(int ordinal, const void *at, struct wf_error *e);

/*
 * What cards have written to memory of @ordinal is there for what it does from now on.
 * -EOPNOTSUPP: that can't be had.
 */
int wf_cuda_flush(int ordinal, struct wf_error *e);

#endif
