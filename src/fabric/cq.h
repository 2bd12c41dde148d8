/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cq: completion queues of a rail; a look reads the queues that may have completions.
 *
 * Threads: owner.
 */
#ifndef WF_CQ_H
#define WF_CQ_H

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

#include "fabric/post.h"

/* A completion queue: the rail's, or an endpoint's own. */
struct wf_cq {
	struct fid_cq *fid;
	struct wf_ep *ep;    /* endpoint that has the queue for itself; NULL: the rail's */
	struct wf_list node; /* in rail->queues.all */
	struct wf_list warm_node; /* in rail->queues.warm, or in no list */
	uint32_t empty;      /* reads in a row that found nothing */
	uint32_t heard;      /* completions since the last sleep, until @unwatched */
	bool unwatched;      /* descriptors are not in the epoll: the queue is read all the time */
	uint64_t id;         /* key of the queue in the waitset */
	uint64_t unread;     /* bytes in the sockets of the queue, when they were last counted */
	struct fi_wait_pollfd fds; /* descriptors of the queue, as last asked for */
	size_t fds_size;
};

int wf_cq_open(struct wf_rail *rail, struct wf_ep *ep, struct wf_cq *cq, struct wf_error *e);
void wf_cq_close(struct wf_rail *rail, struct wf_cq *cq);
int wf_cq_read(struct wf_rail *rail, struct wf_cq *cq); /* returns the count of entries */
void wf_cq_drain(struct wf_rail *rail, struct wf_cq *cq);
void wf_cq_end(struct wf_rail *rail, struct wf_post *post, int status);
/* Read @cq at every look from now on. */
void wf_cq_warm(struct wf_rail *rail, struct wf_cq *cq);
/* Read @cq no more until its descriptors have news; does nothing if they are not known. */
void wf_cq_cool(struct wf_rail *rail, struct wf_cq *cq);

#endif
