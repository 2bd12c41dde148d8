/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RMA: the object behind struct weft_remote, a window of a peer, and the operations that get
 * from it and put into it.
 */
#ifndef WF_CORE_RMA_H
#define WF_CORE_RMA_H

#include <stdatomic.h>
#include <weft/weft.h>
#include "core/announced.h"
#include "loop/loop.h"
#include "tensor/putting.h"
#include "tensor/remote.h"

struct wf_worker;

struct weft_remote {
	struct wf_list node;      /* in the node's remotes */
	struct weft_peer *peer;
	unsigned rights;          /* enum weft_window_right */
	atomic_uint refs;         /* the user's, and one of each operation */
	struct wf_remote remote;  /* owner only, but for name and bytes */
	struct wf_announced announced; /* slots of a landing; owner only */
	struct wf_worker *_Atomic worker; /* worker whose gets or pushes used the window last; NULL: none */
	struct wf_loop_task close_task;
	struct wf_worker *close_worker; /* the worker that close_task runs at */
};

/* The blocks of an operation, and what the owner of the window is told. */
struct wf_rma_work {
	struct weft_remote *remote; /* a reference; NULL: the node has closed */
	struct wf_pull_block *blocks;
	struct wf_kind_body *device; /* device of the memory here; NULL: the host */
	struct wf_putting putting;
};

/* A get or a put. */
struct wf_op_rma {
	struct wf_rma_work work;  /* the putting of a get tells the owner after it */
	struct wf_remote_get get; /* the last member; a put has none */
};

/* Make a remote window.  Failures are recorded.  Threads: any, callback. */
int wf_rma_import(struct weft_peer *peer, const void *descriptor, size_t bytes,
		  struct weft_remote **remote);

/* Give up a reference.  Threads: any, callback. */
void wf_rma_close(struct weft_remote *remote);

/* Free @remote, whose node has no worker any more. */
void wf_rma_free(struct weft_remote *remote);

/* Make a get or put and submit it.  Failures are recorded.  Threads: any, callback. */
int wf_rma_get(struct weft_remote *remote, const struct weft_block *blocks, size_t count,
	       const struct weft_access_options *options, struct weft_op **op);
int wf_rma_put(struct weft_remote *remote, const struct weft_block *blocks, size_t count,
	       const struct weft_access_options *options, struct weft_op **op);

#endif
