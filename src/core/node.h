/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node: the object behind struct weft_node.
 *
 * A call from any thread makes an operation and hands it to a worker; from then on the operation
 * owns all that it needs.
 */
#ifndef WF_CORE_NODE_H
#define WF_CORE_NODE_H

#include <weft/weft.h>
#include "core/broadcast.h"
#include "core/completion_queue.h"
#include "core/landing.h"
#include "core/near.h"
#include "core/proof.h"
#include "core/publish.h"
#include "core/serve.h"
#include "core/worker.h"
#include "util/freelist.h"

struct wf_health;

struct weft_node {
	struct wf_list node;      /* in the list of all nodes, for fork */
	struct wf_directory directory;
	struct wf_services services;
	struct wf_terms terms;    /* terms of every operation */
	bool manual;
	atomic_bool forked;       /* the process is a child: nothing may be touched */
	bool closing;             /* no new work is begun */
	atomic_bool heard;        /* a peer has, or had, a listener */
	atomic_bool draining;     /* the workers have been told to take no more calls */

	pthread_mutex_t log_lock; /* held for each line of the log */
	pthread_mutex_t lock;     /* all else that threads share */
	pthread_cond_t ended;     /* a drain, dump, proof or visit has ended */
	struct wf_list waits;     /* threads that sleep until something is over: await.c */
	atomic_uint waiting;      /* how many */
	struct wf_list ops;       /* all operations */
	atomic_bool describing;   /* a thread reads operations that another ends; set under the lock */
	_Atomic uint64_t op_count; /* numbers that were given to operations */
	struct wf_freelist free_ops[WF_OP_KINDS];
	struct wf_completion_queues queues;
	struct wf_list peers;
	struct wf_list streams;
	struct wf_list windows;   /* struct weft_window */
	struct wf_list remotes;   /* struct weft_remote */
	struct wf_list regions;   /* struct weft_region; under the lock */
	struct wf_window_table window_table;
	struct wf_serve served;
	struct weft_interceptor *interceptors; /* interceptor_count, in the order of asking */
	unsigned interceptor_count;
	struct wf_proof proof;
	struct wf_publish published;
	struct wf_broadcasts broadcasts;
	struct wf_landings landings;
	void *reflection;         /* the service; NULL: not served; freed by free() */
	struct wf_health *health; /* the service; NULL: not served; under the lock */
	void (*health_changed)(struct weft_node *node); /* under the lock; NULL: nobody is told */
	struct wf_near near;
	unsigned worker_count;
	struct wf_worker workers[]; /* the first one's door listens for all */
};

/* Open a node as weft_node_open does, with @workers of any mode. */
int wf_node_open(const struct weft_node_options *given, const struct wf_options *options,
		 unsigned workers, struct weft_node **node);
void wf_node_close(struct weft_node *node); /* in no callback of @node */

/* Add up the counters of all workers, as far as counters->size goes. */
void wf_node_counters(struct weft_node *node, struct weft_counters *counters);

/* Read options from the environment, overruled by @given.  -EINVAL: recorded. */
int wf_node_settings(const struct weft_node_options *given, struct wf_options *o);
/* Returns the security that @node was opened with, by its options or the environment. */
enum weft_security wf_node_security(const struct weft_node *node);

/*
 * Returns whether the caller is the thread of @worker, or of a manual node inside a turn of the
 * loop.  No other thread makes the caller the driver, or ends that.
 */
static inline bool wf_worker_in_own_turn(const struct wf_worker *worker)
{
	uintptr_t driver = atomic_load_explicit(&worker->driver, memory_order_relaxed);

	return driver && driver == (uintptr_t)pthread_self();
}

/* Returns whether the caller is inside a callback of @worker. */
static inline bool wf_worker_inside(const struct wf_worker *worker)
{
	return wf_worker_in_own_turn(worker) ||
	       atomic_load_explicit(&worker->guest, memory_order_relaxed) ==
	       (uintptr_t)pthread_self();
}

/* Returns whether the caller is inside a callback of @node. */
static inline bool wf_node_inside(const struct weft_node *node)
{
	for (unsigned i = 0; i < node->worker_count; i++)
		if (wf_worker_inside(&node->workers[i]))
			return true;
	return false;
}

/* Report a possible change of a service's health.  Not under the lock.  Threads: any, callback. */
static inline void wf_node_health_changed(struct weft_node *node)
{
	void (*changed)(struct weft_node *node);

	pthread_mutex_lock(&node->lock);
	changed = node->health_changed;
	pthread_mutex_unlock(&node->lock);
	if (changed)
		changed(node);
}

#endif
