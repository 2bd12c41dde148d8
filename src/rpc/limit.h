/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits: how many calls of a service run at once, of all peers and of one, and how many may
 * wait for that.
 *
 * A call waits for its peer's turn, behind others of that peer, and then for the service's.
 * These queues are those of all workers, so that calls begin in the order in which they came,
 * whichever worker they came to.  Hence one lock for the limits of a node; only calls of
 * services that have limits use it.
 *
 * Threads: any, but where a comment says otherwise.
 */
#ifndef WF_LIMIT_H
#define WF_LIMIT_H

#include <pthread.h>
#include "loop/loop.h"
#include "util/map.h"

/* Limits of a node. */
struct wf_limits {
	pthread_mutex_t lock; /* guards all members that are said to be under it */
};

/* Limits of a service; all zero: none. */
struct wf_limit {
	uint32_t calls_max;      /* 0: any number */
	uint32_t calls_per_peer; /* 0: any number */
	uint32_t queue_max;      /* calls that wait, for either limit; 0: none */

	/* under the lock */
	uint32_t running, waiting;
	struct wf_list queue;    /* tickets that wait for the service's turn */
	struct wf_map peers;     /* peers with calls here, where there is a limit for each */
};

struct wf_limit_peer;
struct wf_limit_ticket;

/* Calls of a loop whose turn has come. */
struct wf_limit_turns {
	struct wf_limits *limits;
	struct wf_loop *loop;
	void (*come)(struct wf_limit_ticket *ticket); /* on the loop, outside the lock */
	struct wf_list all;      /* tickets; under the lock, as is @told */
	bool told;               /* the task is on its way */
	struct wf_loop_task task;
};

enum wf_limit_ticket_state {
	WF_TICKET_NONE,    /* not entered, has left, or needed no turn */
	WF_TICKET_WAITING,
	WF_TICKET_COME,    /* the turn has come, and the loop is to hear of it */
	WF_TICKET_RUNNING
};

/* Place of a call in its queue; all zero before the call enters. */
struct wf_limit_ticket {
	struct wf_limit *limit;
	struct wf_limit_turns *turns;
	struct wf_limit_peer *peer; /* NULL: there is no limit for each peer */
	/* under the lock */
	enum wf_limit_ticket_state state;
	bool let;                /* the ticket is past its peer's queue */
	struct wf_list node;
};

/* Set up the lock.  A negative code: there is no lock. */
int wf_limits_init(struct wf_limits *limits);
void wf_limits_fini(struct wf_limits *limits);

/* Set @limit up before the service is served.  Threads: setup. */
void wf_limit_init(struct wf_limit *limit, uint32_t calls_max, uint32_t calls_per_peer,
		   uint32_t queue_max);

/* Tear @limit down when the service is not served any more.  Threads: setup. */
void wf_limit_fini(struct wf_limit *limit);

/* Set @turns up; @come runs on @loop for each ticket whose turn has come. */
void wf_limit_turns_init(struct wf_limit_turns *turns, struct wf_limits *limits,
			 struct wf_loop *loop, void (*come)(struct wf_limit_ticket *ticket));

/*
 * Enter a call of a peer; the address @peer stands for the peer: no two have the same.  0: the
 * call may run.  -EINPROGRESS: it waits, and its turn comes unless it leaves before.  -ENOBUFS:
 * too many wait.  -ENOMEM.  Threads: owner of @turns.
 */
int wf_limit_enter(struct wf_limit *limit, struct wf_limit_turns *turns, const void *peer,
		   struct wf_limit_ticket *ticket, struct wf_error *e);

/*
 * Leave: the call runs or waits no more; harmless when it does neither.  Threads: owner of the
 * ticket's turns.
 */
void wf_limit_leave(struct wf_limit_ticket *ticket);

/* Say for people what the ticket waits for. */
void wf_limit_describe(const struct wf_limit_ticket *ticket, char *text, size_t bytes);

#endif
