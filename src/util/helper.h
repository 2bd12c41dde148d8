/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A helper: a thread that does long jobs on memory beside its worker.
 *
 * No other thread of the library's is no worker.  A job copies another process's
 * memory, or sums up a piece of ours, and looks at nothing but what its worker
 * leaves to it meanwhile: at no object of libfabric's, and at no other state.
 *
 * Threads: owner; the helper itself uses what is under the lock.
 */
#ifndef WF_HELPER_H
#define WF_HELPER_H

#include "util/base.h"

/* One that is done, and the next, so that the helper need not wait for its worker. */
#define WF_HELPER_JOBS 2

struct wf_helper;

struct wf_helper_job {
	void *owner; /* not NULL; who asks for it */
	/* Do it, and return how it went; in the helper's thread. */
	int (*run)(const struct wf_helper_job *job);
	/* For @run, if it is a copy: */
	uint32_t pid;
	void *into;
	size_t count;
	uint64_t address;
};

/*
 * Start one.  It calls @wake(@ctx), unless that is NULL, whenever a job has ended.
 * -ENOTSUP: there is one processor only, and a second thread would gain nothing.
 */
int wf_helper_open(void (*wake)(void *ctx), void *ctx, struct wf_helper **helper);

/* It does no further job once this returns.  Accepts NULL. */
void wf_helper_close(struct wf_helper *helper);

/* Do @job, which is copied; what it works on is borrowed until it has ended or was dropped.  -EAGAIN: it has enough to do. */
int wf_helper_give(struct wf_helper *helper, const struct wf_helper_job *job);

/* The owner of a job that has ended, with its @status, and the job is forgotten; NULL: there is none. */
void *wf_helper_ended(struct wf_helper *helper, int *status);

/*
 * Forget the job of @owner, if there is one: what it works on is not touched any
 * more once this returns.  Waits for as long as one job takes.
 */
void wf_helper_drop(struct wf_helper *helper, const void *owner);

#endif
