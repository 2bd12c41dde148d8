/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper: a thread that copies another process's memory beside its worker.
 *
 * The only thread of the library's that is no worker.  It does nothing but
 * process_vm_readv, for the few copies that its worker has given it, and looks
 * at nothing else: at no object of libfabric's, and at no state.
 *
 * Threads: owner; the helper itself uses what is under the lock.
 */
#ifndef WF_HELPER_H
#define WF_HELPER_H

#include "util/base.h"

/* One that is made, and the next, so that the helper need not wait for its worker. */
#define WF_HELPER_COPIES 2

struct wf_helper;

struct wf_helper_copy {
	void *owner; /* not NULL; who asks for it */
	uint32_t pid;
	void *into;
	size_t count;
	uint64_t address;
};

/*
 * Start one.  It calls @wake(@ctx) whenever a copy has ended.  -ENOTSUP: there is
 * one processor only, and a second thread would gain nothing.
 */
int wf_helper_open(void (*wake)(void *ctx), void *ctx, struct wf_helper **helper);

/* It makes no further copy once this returns.  Accepts NULL. */
void wf_helper_close(struct wf_helper *helper);

/* Copy what @copy says.  Borrows its memory until it has ended or was dropped.  -EAGAIN: it has enough to do. */
int wf_helper_give(struct wf_helper *helper, const struct wf_helper_copy *copy);

/* The owner of a copy that has ended, with @status as of wf_vm_read, and the copy is forgotten; NULL: there is none. */
void *wf_helper_ended(struct wf_helper *helper, int *status);

/*
 * Forget the copy of @owner, if there is one: its memory is not touched any
 * more once this returns.  Waits for as long as one copy takes.
 */
void wf_helper_drop(struct wf_helper *helper, const void *owner);

#endif
