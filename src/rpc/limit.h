/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits: how many calls of a service run at once, of all peers and of one, and
 * how many may wait for that.
 *
 * A call waits for its peer's turn, behind others of that peer, and then for the
 * service's.  These queues are those of all workers, so that calls begin in the order
 * in which they came, whichever worker they came to.  Hence one lock for the limits of
 * a node; only calls of services that have limits come here.
 *
 * Threads: any, but for what says otherwise.
 */
#ifndef WF_LIMIT_H
#define WF_LIMIT_H

#include <pthread.h>
#include "loop/loop.h"
#include "util/map.h"

/* Of a node. */
struct wf_limits {
	pthread_mutex_t lock; /* of all that is said to be under it */
};

/* Of a service; all zero: none. */
struct wf_limit {
	uint32_t calls_max;      /* 0: any number */
	uint32_t calls_per_peer; /* 0: any number */
	uint32_t queue_max;      /* calls that wait, for either; 0: none */

	/* under the lock */
	uint32_t running, waiting;
	struct wf_list queue;    /* tickets that wait for the service's turn */
	struct wf_map peers;     /* that have calls here, where there is a limit for each */
};

struct wf_limit_peer;
struct wf_ticket;

/* Of a loop: its calls whose turn has come. */
struct wf_turns {
	struct wf_limits *limits;
	struct wf_loop *loop;
	void (*come)(struct wf_ticket *ticket); /* on the loop, outside the lock */
	struct wf_list all;      /* under the lock, as is the next */
	bool told;               /* the task is on its way */
	struct wf_task task;
};

enum wf_ticket_state {
	WF_TICKET_NONE,    /* it has not entered, has left, or needed none */
	WF_TICKET_WAITING,
	WF_TICKET_COME,    /* its turn has, and its loop is to hear of it */
	WF_TICKET_RUNNING
};

/* Of a call; all zero before it enters. */
struct wf_ticket {
	struct wf_limit *limit;
	struct wf_turns *turns;
	struct wf_limit_peer *peer; /* NULL: there is no limit for one */
	/* under the lock */
	enum wf_ticket_state state;
	bool let;                /* past its peer's queue */
	struct wf_list node;
};

/* A negative code: no lock. */
int wf_limits_init(struct wf_limits *limits);
void wf_limits_fini(struct wf_limits *limits);

/* Before the service is served, and when it is not any more.  Threads: setup. */
void wf_limit_init(struct wf_limit *limit, uint32_t calls_max, uint32_t calls_per_peer,
		   uint32_t queue_max);
void wf_limit_fini(struct wf_limit *limit);
void wf_limit_turns_init(struct wf_turns *turns, struct wf_limits *limits, struct wf_loop *loop,
		   void (*come)(struct wf_ticket *ticket));

/*
 * A call of the peer that the address @peer stands for: no two have the same.  0: it may run.  -EINPROGRESS: it
 * waits, and its turn comes unless it leaves before.  -ENOBUFS: too many wait.  -ENOMEM.
 * Threads: owner of @turns.
 */
int wf_limit_enter(struct wf_limit *limit, struct wf_turns *turns, const void *peer,
		   struct wf_ticket *ticket, struct wf_error *e);

/* It runs no more, or waits no more; harmless when it does neither.  Threads: owner of its turns. */
void wf_limit_leave(struct wf_ticket *ticket);

/* For people: what it waits for. */
void wf_limit_describe(const struct wf_ticket *ticket, char *text, size_t bytes);

#endif
