/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call that is made again, at the server: by its request id an attempt finds
 * the handler that an earlier one has begun, or what that has answered.
 *
 * Threads: owner.
 */
#ifndef WF_AGAIN_H
#define WF_AGAIN_H

#include "rpc/served.h"

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
