/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node: the object behind struct weft_node.
 *
 * A call from any thread makes an operation and hands it to a worker; what the operation needs
 * from then on belongs to it.
 */
#ifndef WF_CORE_NODE_H
#define WF_CORE_NODE_H

#include <weft/weft.h>
#include "core/desk.h"
#include "util/spare.h"

struct wf_health;
struct wf_orchestrator;

#define WF_OP_KINDS 6 /* of op.h */

struct weft_node {
	struct wf_list node;      /* in the list of all nodes, for fork */
	struct wf_directory directory;
	struct wf_services services;
	struct wf_terms terms;    /* of every operation */
	bool manual;
	atomic_bool forked;       /* this process is a child: nothing may be touched */
	bool closing;             /* nothing new is begun */
	atomic_bool draining;     /* its desks have been told to take no more calls */

	pthread_mutex_t log_lock; /* one line at a time */
	pthread_mutex_t lock;     /* the rest */
	pthread_cond_t ended;     /* an operation has */
	atomic_uint waiting;      /* threads that wait for that */
	struct wf_list ops;       /* every operation there is */
	uint64_t op_count;        /* ever made */
	struct wf_spare spare_ops[WF_OP_KINDS];
	struct wf_list peers;
	struct wf_list streams;
	struct wf_list served;    /* struct wf_pb_service */
	struct weft_interceptor *interceptors; /* as many, in the order of asking */
	unsigned interceptor_count;
	void *reflection;         /* the library's own, served if it is asked for; freed by free() */
	struct wf_health *health; /* likewise; under the lock, as is: */
	void (*health_changed)(struct weft_node *node); /* NULL: nobody is told */
	struct wf_orchestrator *orchestrator; /* likewise */
	struct wf_list nears;     /* all memory of weft_alloc_near; under the lock */
	unsigned desk_count;
	struct wf_desk desks[];   /* the first one's door listens; alone, it is the node's worker */
};

/* As weft_node_open, with so many workers, whatever drives them. */
int wf_node_open(const struct weft_node_options *given, const struct wf_options *options,
		 unsigned workers, struct weft_node **node);
void wf_node_close(struct weft_node *node); /* in no callback of its own */

/* The sums over all workers, as far as counters->size goes. */
void wf_node_counters(struct weft_node *node, struct weft_counters *counters);

/* The environment, and over it what the caller says.  -EINVAL: recorded. */
int wf_node_settings(const struct weft_node_options *given, struct wf_options *o);

/* Is this a callback of the desk? */
static inline bool wf_desk_inside(const struct wf_desk *desk)
{
	return pthread_equal(desk->thread, pthread_self()) &&
	       (!desk->node->manual || desk->polling);
}


/* Is this a callback of the node? */
static inline bool wf_node_inside(const struct weft_node *node)
{
	for (unsigned i = 0; i < node->desk_count; i++)
		if (wf_desk_inside(&node->desks[i]))
			return true;
	return false;
}

/* What is said of a service's health may be another now.  Not under the lock.  Threads: any, callback. */
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
