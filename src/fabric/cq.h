/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cq: completion queues of a rail, of which those are looked at that may have something to tell.
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
	struct wf_ep *ep;    /* whose own it is, or NULL */
	struct wf_list node; /* in rail->queues.all */
	struct wf_list warm_node; /* in rail->queues.warm, or in no list */
	uint32_t empty;      /* looks that found nothing since it last had news */
	uint32_t heard;      /* completions since the last sleep, until: */
	bool unwatched;      /* there are so many that nobody need say so */
	uint64_t id;         /* in the waitset */
	struct fi_wait_pollfd fds; /* its descriptors, as they were last asked for */
	size_t fds_size;
};

int wf_cq_open(struct wf_rail *rail, struct wf_ep *ep, struct wf_cq *cq, struct wf_error *e);
void wf_cq_close(struct wf_rail *rail, struct wf_cq *cq);
int wf_cq_read(struct wf_rail *rail, struct wf_cq *cq); /* how many entries there were */
void wf_cq_drain(struct wf_rail *rail, struct wf_cq *cq);
void wf_cq_end(struct wf_rail *rail, struct wf_post *post, int status);
void wf_cq_warm(struct wf_rail *rail, struct wf_cq *cq); /* look at it from now on */
void wf_cq_cool(struct wf_rail *rail, struct wf_cq *cq); /* no more, until its descriptors say so, if they are known */

#endif
