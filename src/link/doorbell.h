/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waking a worker of this host that sleeps where its rail can't wake it.
 *
 * The bell is an eventfd and a page with one flag.  Sleeper: set the flag,
 * fence, poll once more, sleep.  Ringer: post, fence, read the flag, ring if it
 * is set.  The fences make one of the two see the other, so no message waits
 * behind a sleeper, and ringing one who is awake costs no system call.
 *
 * A ringer gets both descriptors by the side door.  It maps the page read-only.
 *
 * Threads: owner.
 */
#ifndef WF_DOORBELL_H
#define WF_DOORBELL_H

#include <stdatomic.h>
#include "util/error.h"

/* What the two processes share. */
struct wf_doorbell_page {
	atomic_uint sleeping;
};

#define WF_DOORBELL_PAGE_BYTES 4096

struct wf_doorbell; /* ours */
struct wf_ringer;   /* of a peer's bell */

int wf_doorbell_open(struct wf_doorbell **bell, struct wf_error *e);
void wf_doorbell_close(struct wf_doorbell *bell); /* accepts NULL */

/* What ringers need: the eventfd and the page. */
void wf_doorbell_fds(const struct wf_doorbell *bell, int fds[2]);

/* Readable when somebody has rung. */
int wf_doorbell_fd(const struct wf_doorbell *bell);

/* From now on peers ring.  Poll once more after it, then sleep. */
void wf_doorbell_sleep(struct wf_doorbell *bell);

/* Awake, rung or not. */
void wf_doorbell_wake(struct wf_doorbell *bell);

/* In a forked child: close the descriptors, and nothing else. */
void wf_doorbell_forked(struct wf_doorbell *bell);

/* Takes both in any case.  -EBADMSG: they are no bell, or might block or crash us. */
int wf_ringer_open(int bell_fd, int page_fd, struct wf_ringer **ringer);
void wf_ringer_close(struct wf_ringer *ringer); /* accepts NULL */

/* After something was posted for the peer.  Harmless when it is dead. */
void wf_ringer_ring(struct wf_ringer *ringer);

#endif
