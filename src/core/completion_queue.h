/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queue: operations that have ended, for threads that take them when they like.
 *
 * An operation whose options name a queue holds a reference to it.  The worker that ends the
 * operation puts it into the queue, and whoever takes it has the user's handle.  If the handle is
 * freed before, the operation is not put there, or leaves.
 *
 * Threads: any, callback, unless a function says otherwise.
 */
#ifndef WF_COMPLETION_QUEUE_H
#define WF_COMPLETION_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <weft/weft.h>
#include "util/list.h"

/* All queues of a node, and the threads that use them. */
struct wf_completion_queues {
	struct wf_list all;    /* struct weft_queue; changed under wf_fork_hold() */
	atomic_bool leaving;   /* the node is about to close: no thread visits its loop any more */
	atomic_uint visitors;  /* threads that turn its loop while they wait for a queue */
	atomic_uint sleepers;  /* threads that sleep until something is in a queue */
	atomic_uint freeing;   /* threads that free operations which name a queue */
};

struct weft_queue {
	struct wf_list node;     /* in owner->queues.all, until that closes */
	atomic_bool forked;      /* the process is a child: the lock may be held for ever */
	atomic_uint refs;        /* the user's, and one of each operation that names the queue */
	bool manual;             /* the node is manual */

	pthread_mutex_t lock;    /* protects all that follows */
	pthread_cond_t filled;   /* an operation has come, or the node closes, or has parted */
	struct weft_node *owner; /* NULL: the node has closed, but for what @parting says */
	bool closing;            /* @closer closes the node, and runs its callbacks */
	pthread_t closer;
	bool parting;            /* operations still name the node: nobody frees one meanwhile */
	struct wf_list ended;    /* operations, the first to end first */
	unsigned waiting;        /* threads that wait for @filled */
	bool closed;             /* nothing is put into the queue any more */
	int fd;                  /* eventfd, readable while @ended has some; -1: nobody has asked */
};

/*
 * An operation that names a queue; under the queue's lock.  While @queued the node of its notice,
 * which has run by then, is in queue->ended; before that the loop's.
 */
struct wf_completion_queue_entry {
	bool named;     /* the operation has a queue */
	bool queued;
	bool sole;      /* nobody but the queue has the user's handle, until it is taken */
	bool forgotten; /* the handle was freed */
};

/* Make a queue of @node.  -ENOMEM: recorded. */
int wf_completion_queue_open(struct weft_node *node, struct weft_queue **queue);

/* Check @queue.  -EOWNERDEAD: recorded: this process is a forked child. */
int wf_completion_queue_check(const struct weft_queue *queue);

/* Put nothing into @queue any more, and drop the user's reference. */
void wf_completion_queue_close(struct weft_queue *queue);

/*
 * Take up to @max operations into @ops, waiting until @until_ns for the first.  Returns their
 * number, 0: the time has passed.  -ECANCELED: the queue is empty, and its node has closed;
 * -EDEADLK: in a callback nobody waits: recorded.
 */
int wf_completion_queue_next(struct weft_queue *queue, struct weft_op **ops, size_t max,
			     uint64_t until_ns);

/* Returns the descriptor, made by the first call.  A negative code: recorded. */
int wf_completion_queue_fd(struct weft_queue *queue);

/* Let @op, a new operation without a callback, name @queue. */
void wf_completion_queue_name(struct weft_queue *queue, struct weft_op *op);

/* Put @op, which has ended, into its queue.  Threads: owner. */
void wf_completion_queue_add(struct weft_op *op);

/*
 * Take @op, whose handle is being freed, out of its queue.  Returns the node, which stays until
 * wf_completion_queue_release(), for any thread may free while another closes; NULL: it has closed.
 */
struct weft_node *wf_completion_queue_forget(struct weft_op *op);

/* Let @node close.  Accepts NULL. */
void wf_completion_queue_release(struct weft_node *node);

/* Drop a reference. */
void wf_completion_queue_put(struct weft_queue *queue);

/* Have no thread turn the loop of @node any more that waits for a queue. */
void wf_completion_queue_leave(struct weft_node *node);

/* Tell all queues that this thread closes @node, and runs its callbacks from now on. */
void wf_completion_queue_node_closes(struct weft_node *node);

/*
 * Part all queues from @node, which closes, before its workers end and its operations are parted
 * from it.  Other threads free no operation that names a queue from here on, until
 * wf_completion_queue_parted().
 */
void wf_completion_queue_part(struct weft_node *node);

/* End what wf_completion_queue_part() began, when no operation names @node any more. */
void wf_completion_queue_parted(struct weft_node *node);

#endif
