/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mr: one registration of memory with a rail, for its own use or for reads by peers.
 *
 * Threads: owner.
 */
#ifndef WF_MR_H
#define WF_MR_H

#include "fabric/rail.h"

enum wf_mr_access { WF_ACCESS_LOCAL = 1, WF_ACCESS_REMOTE_READ = 2 };

/*
 * Register @base for @access bits.  A remote key is random where the provider
 * lets us choose.  -ENOMEM with a sentence that names RLIMIT_MEMLOCK, and says what is registered,
 * when that may be the cause.
 */
int wf_mr_open(struct wf_rail *rail, const void *base, size_t bytes, unsigned access,
	       struct wf_mr **mr, struct wf_error *e);

/* The place of memory of a device. */
struct wf_mr_device {
	int cuda;	 /* CUDA's number of the device */
	int dma_buf;	 /* a descriptor of the memory; -1: there is none */
	uint64_t offset; /* place of the first byte in @dma_buf */
};

/*
 * Register memory of a device, on a rail whose caps say that this may be.  -EOPNOTSUPP with a
 * sentence: the NIC does not reach the device; if it never has, caps say so from then on.
 */
int wf_mr_open_device(struct wf_rail *rail, const void *base, size_t bytes,
		      const struct wf_mr_device *device, unsigned access, struct wf_mr **mr,
		      struct wf_error *e);
void wf_mr_close(struct wf_mr *mr);

/*
 * Check that peers would reach @base: register it and close that again.  Where peers read by
 * process_vm_readv, of which a registration says nothing, read @base so, too.  Codes as of
 * wf_mr_open; -EFAULT.
 */
int wf_mr_try(struct wf_rail *rail, const void *base, size_t bytes, struct wf_error *e);

/* Count @mr as memory of @kind from now on; until then it is the program's, or a device's. */
void wf_mr_set_kind(struct wf_mr *mr, enum wf_counters_memory kind);

/* Count that a cached registration serves again.  Accepts NULL. */
void wf_mr_hit(const struct wf_mr *mr);
/* Close a cached registration because others need the room, and count that.  Accepts NULL. */
void wf_mr_evict(struct wf_mr *mr);

void *wf_mr_desc(const struct wf_mr *mr);
uint64_t wf_mr_key(const struct wf_mr *mr);

/* The address that a peer names to reach @ptr inside @mr. */
uint64_t wf_mr_address(const struct wf_mr *mr, const void *ptr);

#endif
