/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replies that are kept for callers who may ask again.
 *
 * A call that its caller makes again when it fails has a request id, the same in each attempt.
 * Under the caller's incarnation and that id its handler stands here while it is at it, and
 * its answer for a while afterwards: so a later attempt gets that, and no handler runs twice.
 *
 * When there are too many the oldest go first.  What has gone is remembered by the last id of
 * its caller, who counts them up: whether a request that is not known, and not later than
 * that, was handled nobody can say any more.
 *
 * A caller of whom something is here comes back to this worker: the directory has its place.
 *
 * Threads: owner.
 */
#ifndef WF_REPLIES_H
#define WF_REPLIES_H

#include <stdatomic.h>
#include "link/worker.h"
#include "wire/call_record.h"
#include "wire/record.h"

/* Of a worker; not tuned: some seconds of a busy server, and what a short break needs. */
#define WF_REPLIES_MAX 1024
#define WF_REPLIES_BYTES_MAX (8 * MIB)

/* Callers remembered for what has gone; not tuned. */
#define WF_REPLIES_CALLERS_MAX 256

struct wf_caller;
struct wf_served;

struct wf_known_request {
	struct wf_map_node node;
	struct wf_list age;       /* in kept */
	struct wf_caller *caller;
	uint64_t id;
	struct wf_served *served; /* whose handler is at it; NULL: it has answered */
	struct wf_reply_record reply; /* then; its text a C string, its body at eager */
	uint8_t *block;           /* where its bytes lie */
	uint64_t bytes;           /* all of it */
};

struct wf_replies {
	struct wf_worker *worker;
	atomic_bool *forgot;      /* of the node: a caller for whom something had gone */
	struct wf_map requests, callers;
	struct wf_list kept;      /* the oldest first */
	struct wf_list idle;      /* callers for whom all has gone, the oldest first */
	unsigned kept_count, idle_count;
	uint64_t kept_bytes;
};

void wf_replies_init(struct wf_replies *r, struct wf_worker *w, atomic_bool *forgot);
void wf_replies_fini(struct wf_replies *r);

/* NULL: it is not here. */
struct wf_known_request *wf_replies_find(struct wf_replies *r, const uint8_t *incarnation, uint64_t id);

/* May one that is not here have been? */
bool wf_replies_had(struct wf_replies *r, const uint8_t *incarnation, uint64_t id);

/* The handler of @served begins.  -ENOMEM. */
int wf_replies_open(struct wf_replies *r, const uint8_t *incarnation, uint64_t id,
		    struct wf_served *served, struct wf_known_request **request);

/* It has answered @reply, with the body at eager; which is copied, if there is room for it. */
void wf_replies_keep(struct wf_replies *r, struct wf_known_request *request,
		     const struct wf_reply_record *reply);

/* Its answer, if any, is for nobody. */
void wf_replies_lose(struct wf_replies *r, struct wf_known_request *request);

#endif
