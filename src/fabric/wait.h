/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wait: one descriptor to sleep on for all queues of a rail.
 *
 * Threads: owner.
 */
#ifndef WF_WAIT_H
#define WF_WAIT_H

#include "fabric/cq.h"
#include "util/table.h"

/* An epoll of all queues of a rail. */
struct wf_wait_set {
	int epoll;  /* -1: there is none */
	int eq_fd;  /* descriptor of the event queue, if in @epoll; -1 */
	bool eq_rang; /* the event queue has had news since it was last read */
	bool edge;
	bool pollfd;           /* completion queues have several descriptors each */
	/* Struct wf_cq by id: in a forked child a descriptor may outlive its queue. */
	struct wf_table queues;
	struct fid **fids; /* queues, for fi_trywait */
	size_t count, size;
};

int wf_wait_open(struct wf_rail *rail, struct wf_error *e);
void wf_wait_close(struct wf_rail *rail);
int wf_wait_add_eq(struct wf_rail *rail, struct wf_error *e);
int wf_wait_add(struct wf_rail *rail, struct wf_cq *cq, struct wf_error *e);
/* Watch @cq no more.  Comes before its endpoint is closed; harmless when repeated. */
void wf_wait_remove(struct wf_rail *rail, struct wf_cq *cq);
void wf_wait_heard(struct wf_rail *rail, struct wf_cq *cq, int count);
void wf_wait_unheard(struct wf_rail *rail, struct wf_cq *cq);
int wf_wait_again(struct wf_rail *rail);
int wf_wait_try(struct wf_rail *rail);
bool wf_wait_eq_ready(const struct wf_rail *rail); /* returns whether the event queue has news */
bool wf_wait_has_eq(const struct wf_rail *rail); /* does hearing tell of the event queue? */
void wf_wait_hear(struct wf_rail *rail); /* warm the queues whose descriptors have news */
void wf_wait_cool(struct wf_rail *rail); /* cool all queues before a sleep */
/* Has the last look left bytes in a socket of a warm queue?  The next one reads that queue. */
bool wf_wait_holds(struct wf_rail *rail);

#endif
