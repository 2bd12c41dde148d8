/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call that is made again, at the server: by its request id an attempt finds
 * the handler that an earlier one has begun, or what that has answered.
 *
 * Threads: owner.
 */
#ifndef WF_AGAIN_H
#define WF_AGAIN_H

#include "rpc/replies.h"

struct wf_served;

enum wf_again_earlier {
	WF_AGAIN_NONE,      /* it is the first */
	WF_AGAIN_HERE,      /* one may have been handled */
	WF_AGAIN_ELSEWHERE, /* one may have, by another incarnation of the node */
};

/* Of a served call that may be made again. */
struct wf_again {
	uint64_t request_id; /* 0: it may not */
	enum wf_again_earlier earlier; /* attempts */
	struct wf_known_request *running; /* from when its handler begins until it answers */
	bool unsure;         /* whether it was handled, is the answer */
};

/* Has an earlier attempt of @s, which has a request id, begun or ended its handler? */
bool wf_again_is_known(const struct wf_served *s);

/*
 * Is the handler of @s, which has a request id, to begin?  It counts as running then, until
 * wf_again_keep.  Else @s has its answer, or will get that handler's, and may be gone.
 */
bool wf_again_is_first(struct wf_served *s);

/* It has answered @reply, with the body at eager: for the next attempt, unless there will be none. */
void wf_again_keep(struct wf_served *s, const struct wf_reply_record *reply);

#endif
