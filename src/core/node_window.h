/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node window: the object behind struct weft_window, and its notes.
 *
 * Puts come in at any worker.  Notes are given to operations at the node's first worker, which is
 * where these begin; a lock protects the notes on their way there.
 *
 * Threads: any, callback, unless a function says otherwise.
 */
#ifndef WF_NODE_WINDOW_H
#define WF_NODE_WINDOW_H

#include <stdatomic.h>
#include <weft/weft.h>
#include "loop/loop.h"
#include "tensor/window.h"

struct wf_worker;

/* The filter of a window: a look at each put before its body is read.  All NULL: none. */
struct wf_node_window_filter {
	/* May @push of the peer of @link be taken?  Runs at any worker. */
	bool (*admits)(void *ctx, struct wf_windows *at, struct wf_link *link,
		       const struct wf_access_push *push);
	/* The put of @note was admitted, and has failed.  Runs at any worker. */
	void (*lost)(void *ctx, const struct wf_window_note *note);
	void *ctx;
};

struct weft_window {
	struct wf_list node;      /* in owner->windows */
	struct weft_node *owner;
	struct wf_window window;
	struct wf_kind_body *device; /* device of the memory; NULL: the host */
	struct wf_node_window_filter filter; /* set before any peer knows the window */
	_Atomic uint64_t puts;    /* puts that have ended */

	pthread_mutex_t lock;     /* protects the next two */
	struct wf_list notes;     /* struct wf_window_note that came, the first first */
	uint32_t note_count;      /* length of notes, and notes whose bodies are yet to come */
	struct wf_list takers;    /* operations that wait for a note; first worker only */
	atomic_bool passing;      /* pass_task is under way */
	struct wf_loop_task pass_task;

	/* closing */
	atomic_uint busy;         /* workers whose share is not quiet */
	struct wf_loop_task end_task;
	void (*ended)(void *ctx); /* NULL: a thread waits */
	void *ended_ctx;
	struct wf_loop_notice over_notice; /* behind those of the takers */
	atomic_bool over;         /* nobody uses the window any more */
	struct wf_node_window_stop *stops; /* one for each worker */
	struct wf_window_share shares[];
};

/* Open a window of host memory, or of @device's, which is taken.  Failures are recorded. */
int wf_node_window_open(struct weft_node *node, void *memory, size_t bytes, unsigned rights,
			struct wf_kind_body *device, struct weft_window **window);

/* Close @window, and free it once it is quiet.  -EOWNERDEAD: recorded.  Threads: any. */
int wf_node_window_close(struct weft_window *window);

/*
 * Close @window as wf_node_window_close() does, without waiting: @ended runs at the first worker,
 * and frees it by wf_node_window_drop().  Threads: any, callback.
 */
void wf_node_window_shut(struct weft_window *window, void (*ended)(void *ctx), void *ctx);

/* Free @window, which has ended. */
void wf_node_window_drop(struct weft_window *window);

/* Free @window, whose node has no worker any more. */
void wf_node_window_free(struct weft_window *window);

/* Write the descriptor of @window, WF_ACCESS_DESCRIPTOR_BYTES. */
void wf_node_window_describe(const struct weft_window *window, void *descriptor);

/* Wait for @count puts, as weft_window_wait() does.  Threads: any. */
int wf_node_window_wait(struct weft_window *window, uint64_t count, uint64_t until_ns);

/* Give @op the next note, now or later.  Threads: owner, the first worker. */
void wf_node_window_take(struct weft_window *window, struct weft_op *op);

#endif
