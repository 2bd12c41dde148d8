/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The orchestrator: which publisher gives memory for a request.
 *
 * A request names its clients, the devices that will read and write the memory.  A publisher's
 * distance is the sum of its distances to all clients, and a publisher that a rule keeps from
 * any client does not serve.  Of the publishers that have room the first in order serves, then
 * the nearest, then the one that has given least.
 *
 * Behind the owner's rules stand weft's own, wf_orchestrator_preset: the kernel lets devices
 * reach each other below a switch, but not on every processor through a host bridge.
 *
 * The orchestrator knows what this node has been given.  Memory given to others shows only in
 * what a publisher says is available.
 *
 * Threads: any.
 */
#ifndef WF_ORCHESTRATOR_H
#define WF_ORCHESTRATOR_H

#include <pthread.h>
#include "memory/publisher.h"

extern const char wf_orchestrator_preset[];

struct wf_orchestrator {
	pthread_mutex_t lock; /* protects the publishers' numbers */
	struct wf_topology topology;
	struct wf_rules rules, preset;
	struct wf_publisher_list publishers;
};

/*
 * Open with a node's settings: @sysfs as for wf_topology_open, @rules as for wf_rules_open,
 * @cuda as for wf_cuda_driver_load, which is called only where a rule allows what needs it.
 * Returns their codes, with their sentences.
 */
int wf_orchestrator_open(struct wf_orchestrator *o, const char *sysfs, const char *rules,
			 const char *cuda, struct wf_error *e);

/* Close @o.  All pieces have been given back. */
void wf_orchestrator_close(struct wf_orchestrator *o);

#define WF_REQUEST_CLIENTS_MAX 16

struct wf_orchestrator_request {
	struct wf_topology_place clients[WF_REQUEST_CLIENTS_MAX];
	unsigned client_count;       /* at least 1 */
	uint64_t bytes;
	struct wf_rule_who from;     /* publishers, best first; count 0: all, as the rules say */
	bool strict;                 /* no publisher outside @from, and only the first of them */
	bool device;                 /* memory that the processor does not reach will do */
};

#define WF_CHOICE_TEXT_BYTES 240

/* A publisher as judged for a request. */
struct wf_orchestrator_choice {
	struct wf_publisher *publisher;
	bool unasked;                /* memory of a device that no rule of the owner's names */
	/*
	 * 0: the publisher can serve.  -ENOBUFS: no room.  -EACCES: not allowed.  -ENODEV: not
	 * published.
	 */
	int err;
	unsigned order;    /* place by the request or a rule; the lower serves first */
	unsigned distance; /* sum of the distances to all clients */
	enum wf_topology_near near; /* class to the client that is furthest from it */
	char why[WF_CHOICE_TEXT_BYTES];
};

/*
 * Judge all publishers, into @choices, in the order in which they serve; publishers that can't
 * serve stand behind.
 */
void wf_orchestrator_judge(struct wf_orchestrator *o, const struct wf_orchestrator_request *request,
			   struct wf_orchestrator_choice *choices);

/*
 * Take a piece of at least @bytes of @p.  -ENOBUFS: @p has no room any more; other codes say
 * why the system gives none.  With a sentence.
 */
int wf_orchestrator_take(struct wf_orchestrator *o, struct wf_publisher *p, uint64_t bytes,
			 struct wf_publisher_piece *piece, struct wf_error *e);

/* Give @piece back to @p. */
void wf_orchestrator_give(struct wf_orchestrator *o, struct wf_publisher *p,
			  struct wf_publisher_piece *piece);

#endif
