/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A copy thread: a thread that does long jobs on memory beside its worker.
 *
 * Every other thread of the library is a worker.  A job copies another process's memory or
 * computes the checksum of a piece of ours, and touches only the memory that its worker leaves
 * to it meanwhile: no object of libfabric's, and no other state.
 *
 * Threads: owner; the copy thread uses only what the lock protects.
 */
#ifndef WF_COPY_THREAD_H
#define WF_COPY_THREAD_H

#include "util/span.h"

/* The job under way and the next, so that the copy thread need not wait for its worker. */
#define WF_COPY_THREAD_JOBS 2

#define WF_COPY_THREAD_SPANS_MAX 16 /* spans of one read over a rail */

struct wf_copy_thread;

struct wf_copy_thread_job {
	void *owner; /* names the job to wf_copy_thread_ended() and wf_copy_thread_drop(); not NULL */
	/* Do @job in the copy thread and return its status. */
	int (*run)(const struct wf_copy_thread_job *job);
	/* Arguments of @run, if the job is a copy: */
	uint32_t pid;
	uint32_t span_count;
	struct wf_span spans[WF_COPY_THREAD_SPANS_MAX];
};

/*
 * Start a helper, which calls @wake(@ctx), unless @wake is NULL, whenever a job has ended.
 * -ENOTSUP: there is one processor only, and a second thread would gain nothing.
 */
int wf_copy_thread_open(void (*wake)(void *ctx), void *ctx, struct wf_copy_thread **helper);

/* Stop the helper: no job runs once this returns.  Accepts NULL. */
void wf_copy_thread_close(struct wf_copy_thread *helper);

/*
 * Queue @job, which is copied.  Borrows the memory of the job until the job has ended or was
 * dropped.  -EAGAIN: WF_COPY_THREAD_JOBS are queued.
 */
int wf_copy_thread_give(struct wf_copy_thread *helper, const struct wf_copy_thread_job *job);

/* Forget a job that has ended and return its owner, with its *@status.  NULL: no job has ended. */
void *wf_copy_thread_ended(struct wf_copy_thread *helper, int *status);

/*
 * Forget the job of @owner, if there is one: its memory is not touched any more once this
 * returns.  Waits for as long as one job takes.
 */
void wf_copy_thread_drop(struct wf_copy_thread *helper, const void *owner);

#endif
