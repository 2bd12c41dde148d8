/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue: a stream of a CUDA device on which copies follow one another, each beside whatever
 * else the device does.  Each device and direction has a queue, so that copies in and out
 * overlap: a device has an engine for each.
 *
 * Only wf_queue_wait and wf_queue_close wait for a copy.  The end of a copy is polled by its
 * own event, and until that has come both ends of the copy are the device's: the bytes must
 * stay where they are.
 *
 * A program's own stream is marked, in the program's thread at the moment that counts: work put
 * on the stream until then comes before.
 *
 * Threads: owner, except for marks, which any thread makes.
 */
#ifndef WF_QUEUE_H
#define WF_QUEUE_H

#include "memory/cuda.h"

struct wf_queue;
struct wf_queue_event;

/* Open a queue of device @ordinal.  Codes as wf_cuda_enter; -ENOMEM. */
int wf_queue_open(int ordinal, struct wf_queue **queue, struct wf_error *e);

/* Wait for copies that are under way.  Accepts NULL. */
void wf_queue_wait(struct wf_queue *queue);

/*
 * Wait for copies that are under way and free the queue; events that were not given back are
 * gone.  Accepts NULL.
 */
void wf_queue_close(struct wf_queue *queue);

enum wf_queue_way { WF_QUEUE_TO_HOST, WF_QUEUE_TO_DEVICE, WF_QUEUE_ON_DEVICE };

/*
 * Begin to copy @bytes behind the copies that were begun on @queue before.  Borrows both ends
 * until an event that is recorded behind the copy has come.  Host memory should be pinned.
 */
int wf_queue_copy(struct wf_queue *queue, enum wf_queue_way way, void *to, const void *from,
		 size_t bytes, struct wf_error *e);

/*
 * Record an event that comes when all copies begun on @queue have ended; the caller gives it
 * back.  On an error the copies have been waited for, if the device can be entered at all: no
 * copy goes on whose end is not known.
 */
int wf_queue_record(struct wf_queue *queue, struct wf_queue_event **event, struct wf_error *e);

/*
 * Ask whether @event has come.  0: it has come.  -EAGAIN: not yet.  Other codes: the copies
 * before it failed, and nothing of them is touched any more, as the device's context is lost.
 */
int wf_queue_poll(struct wf_queue_event *event, struct wf_error *e);

/* Give @event back, whether it has come or not.  Accepts NULL. */
void wf_queue_give(struct wf_queue_event *event);

/* A moment in a stream of the program. */
struct wf_queue_mark {
	wf_cu_event event; /* NULL: none */
};

/*
 * Mark the work that is on @stream, a CUstream, now.  NULL is the default stream of the context
 * that is current in this thread, or else of @ordinal's.  -EINVAL: the stream is being captured
 * into a graph.  Threads: any; the program's own, because some streams are a thread's.
 */
int wf_queue_mark(int ordinal, void *stream, struct wf_queue_mark *mark, struct wf_error *e);

/*
 * Ask whether the marked work has ended.  0: it has ended.  -EAGAIN: not yet.  Other codes: it
 * failed.  Marks are polled, and no queue waits for one: the program may end the work only when
 * another copy has come.
 */
int wf_queue_passed(const struct wf_queue_mark *mark, struct wf_error *e);

/* Free the mark, passed or not.  Accepts a zeroed one. */
void wf_queue_unmark(struct wf_queue_mark *mark);

#endif
