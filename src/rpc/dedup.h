/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Retry deduplication at the server: by its request id an attempt finds the handler that an
 * earlier one has begun, or the reply to that one.
 *
 * Threads: owner.
 */
#ifndef WF_DEDUP_H
#define WF_DEDUP_H

#include "rpc/reply_cache.h"

struct wf_server_call;

enum wf_dedup_earlier {
	WF_DEDUP_NONE,      /* the first attempt */
	WF_DEDUP_HERE,      /* an earlier attempt may have been handled by this incarnation */
	WF_DEDUP_KNOWN,     /* has begun its handler here, or ended it, before this one came */
	WF_DEDUP_ELSEWHERE, /* may have been handled by another incarnation of the node */
};

/* The part of a served call that may be made again. */
struct wf_dedup {
	uint64_t request_id; /* 0: the call is not made again */
	enum wf_dedup_earlier earlier; /* earlier attempts */
	struct wf_reply_cache_entry *running; /* in the reply cache, until the answer */
	bool unsure;         /* the reply says that nobody knows whether the call was handled */
};

/*
 * Returns whether an earlier attempt of @s, which has a request id, has begun or ended its
 * handler.
 */
bool wf_dedup_is_known(const struct wf_server_call *s);

/*
 * Returns whether the handler of @s, which has a request id, must begin.  It counts as running
 * then, until wf_dedup_keep.  If not, @s has its answer, or will get that handler's, and may be
 * gone.
 */
bool wf_dedup_is_first(struct wf_server_call *s);

/* Keep the answer @reply, with the body at eager, for the next attempt, if there can be one. */
void wf_dedup_keep(struct wf_server_call *s, const struct wf_record_reply *reply);

#endif
