/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A queue: a stream of a CUDA device on which copies follow one another, each beside
 * whatever else the device does.  One for each device and direction, so that what
 * comes and what goes overlap: a device has an engine for each.
 *
 * Nothing here waits for a copy but wf_queue_wait and wf_queue_close.  The end of a copy is asked for with
 * its own event, and until it has come both ends of the copy are the device's: the
 * bytes must stay where they are.
 *
 * A program's own stream is marked, in the program's thread at the moment that counts: what
 * was put on it until then comes before.
 *
 * Threads: owner, but for marks, which any thread makes.
 */
#ifndef WF_QUEUE_H
#define WF_QUEUE_H

#include "memory/cuda.h"

struct wf_queue;
struct wf_queue_event;

/* Of device @ordinal.  As wf_cuda_enter; -ENOMEM. */
int wf_queue_open(int ordinal, struct wf_queue **queue, struct wf_error *e);

/* Wait for what is under way.  Accepts NULL. */
void wf_queue_wait(struct wf_queue *queue);

/* Waits, too: events that were not given back are gone.  Accepts NULL. */
void wf_queue_close(struct wf_queue *queue);

enum wf_queue_way { WF_QUEUE_TO_HOST, WF_QUEUE_TO_DEVICE, WF_QUEUE_ON_DEVICE };

/*
 * Begin to copy @bytes behind what was begun on @queue before.  Borrows both ends until
 * an event that is recorded behind it has come.  Host memory should be pinned.
 */
int wf_queue_copy(struct wf_queue *queue, enum wf_queue_way way, void *to, const void *from,
		 size_t bytes, struct wf_error *e);

/*
 * An event that comes when all that was begun on @queue has ended; to be given back.
 * Where it fails it has waited for that, if the device can be entered at all: nothing goes on
 * that nobody knows the end of.
 */
int wf_queue_record(struct wf_queue *queue, struct wf_queue_event **event, struct wf_error *e);

/*
 * 0: it has come.  -EAGAIN: not yet.  All else: what was begun before it failed, and
 * nothing of it is touched any more, as the device's context is lost.
 */
int wf_queue_poll(struct wf_queue_event *event, struct wf_error *e);

/* Whether it has come or not.  Accepts NULL. */
void wf_queue_give(struct wf_queue_event *event);

/* A moment in a stream of the program's. */
struct wf_queue_mark {
	wf_cu_event event; /* NULL: none */
};

/*
 * Mark what is on @stream, a CUstream, now.  NULL is the default stream of the context
 * that is current in this thread, or else of @ordinal's.  -EINVAL: it is being captured into
 * a graph.  Threads: any; the program's own, because some streams are a thread's.
 */
int wf_queue_mark(int ordinal, void *stream, struct wf_queue_mark *mark, struct wf_error *e);

/*
 * 0: what was on the stream has ended.  -EAGAIN: not yet.  All else: it failed.  It is asked for,
 * and no queue waits for it: the program may end that work only when another copy has come.
 */
int wf_queue_passed(const struct wf_queue_mark *mark, struct wf_error *e);

/* Passed or not.  Accepts a zeroed one. */
void wf_queue_unmark(struct wf_queue_mark *mark);

#endif
