/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The orchestrator: which publisher gives memory for a request.
 *
 * A request names its clients, the devices that will read and write the memory.  A
 * publisher's distance is the sum of those to all clients, and one that a rule keeps
 * from any of them does not serve.  Of those that have room the first in order serves,
 * then the nearest, then the one that has given least.
 *
 * Behind the owner's rules stand weft's own, wf_orchestrator_preset: the kernel lets
 * devices reach each other below a switch, but not on every processor through a host
 * bridge.
 *
 * It knows what this node has been given.  What others have shows only in what a
 * publisher says is available.
 *
 * Threads: any.
 */
#ifndef WF_ORCHESTRATOR_H
#define WF_ORCHESTRATOR_H

#include <pthread.h>
#include "memory/publisher.h"

extern const char wf_orchestrator_preset[];

struct wf_orchestrator {
	pthread_mutex_t lock; /* of the publishers' numbers */
	struct wf_topology topology;
	struct wf_rules rules, preset;
	struct wf_publisher_list publishers;
};

/*
 * What a node may want: @sysfs as wf_topology_open, @rules as wf_rules_open, @cuda as
 * wf_cuda_driver_load, which is asked only where a rule allows what needs it.  Codes and
 * sentences of theirs.
 */
int wf_orchestrator_open(struct wf_orchestrator *o, const char *sysfs, const char *rules,
			 const char *cuda, struct wf_error *e);

/* All pieces have been given back. */
void wf_orchestrator_close(struct wf_orchestrator *o);

#define WF_REQUEST_CLIENTS_MAX 16

struct wf_request {
	struct wf_place clients[WF_REQUEST_CLIENTS_MAX];
	unsigned client_count;       /* at least 1 */
	uint64_t bytes;
	struct wf_rule_who from;     /* publishers, the best first; count 0: all, as the rules say */
	bool strict;                 /* no other than those, and only the first of them */
	bool device;                 /* memory that the processor does not reach will do */
};

#define WF_CHOICE_TEXT_BYTES 240

/* What a publisher is to a request. */
struct wf_choice {
	struct wf_publisher *publisher;
	bool unasked;                /* a device publishes it, and no rule of the owner's speaks of it */
	int err;           /* 0: it can serve.  -ENOBUFS: it has no room.  -EACCES: it is not allowed.  -ENODEV: it is not published */
	unsigned order;    /* as the request or a rule says; the lower serves first */
	unsigned distance; /* to all clients */
	enum wf_near near; /* to the client that is furthest from it */
	char why[WF_CHOICE_TEXT_BYTES];
};

/* All publishers, in @choices, in the order in which they serve; those that can't stand behind. */
void wf_orchestrator_judge(struct wf_orchestrator *o, const struct wf_request *request,
			   struct wf_choice *choices);

/*
 * A piece of at least @bytes of @p.  -ENOBUFS: it has no room any more, or else why the
 * system gives none; with a sentence.
 */
int wf_orchestrator_take(struct wf_orchestrator *o, struct wf_publisher *p, uint64_t bytes,
			 struct wf_piece *piece, struct wf_error *e);
void wf_orchestrator_give(struct wf_orchestrator *o, struct wf_publisher *p,
			  struct wf_piece *piece);

#endif
