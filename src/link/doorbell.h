/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waking a worker of this host that sleeps where its rail can't wake it.
 *
 * The bell is an eventfd and a page with one flag.  Sleeper: set the flag, fence, poll once more,
 * sleep.  Remote doorbell: post, fence, read the flag, ring if it is set.  The fences make one of
 * the two see the other, so no message waits behind a sleeper, and ringing a worker that is awake
 * costs no system call.
 *
 * A remote doorbell gets both descriptors by the side door and maps the page read-only.
 *
 * Threads: owner.
 */
#ifndef WF_DOORBELL_H
#define WF_DOORBELL_H

#include <stdatomic.h>
#include "util/error.h"

/* The page that the two processes share. */
struct wf_doorbell_page {
	atomic_uint sleeping;
};

#define WF_DOORBELL_PAGE_BYTES 4096

struct wf_doorbell; /* our bell */
struct wf_remote_doorbell; /* the remote doorbell of a peer's bell */

int wf_doorbell_open(struct wf_doorbell **bell, struct wf_error *e);
void wf_doorbell_close(struct wf_doorbell *bell); /* accepts NULL */

/* Get the descriptors for remote doorbells: the eventfd and the page. */
void wf_doorbell_fds(const struct wf_doorbell *bell, int fds[2]);

/* Returns a descriptor that is readable when a remote doorbell has rung. */
int wf_doorbell_fd(const struct wf_doorbell *bell);

/* Let peers ring from now on.  Poll once more after this call, then sleep. */
void wf_doorbell_sleep(struct wf_doorbell *bell);

/* Stop asking for rings, rung or not. */
void wf_doorbell_wake(struct wf_doorbell *bell);

/* In a forked child: close the descriptors, and nothing else. */
void wf_doorbell_forked(struct wf_doorbell *bell);

/*
 * Open a peer's bell.  Takes both descriptors in any case.  -EBADMSG: they are no bell, or block or
 * crash whoever uses them.  Whether writes block is a matter of the peer's copy as well: it can
 * clear O_NONBLOCK later, and stop the worker that rings.  A process of one user can do that by a
 * signal, too.
 */
int wf_remote_doorbell_open(int bell_fd, int page_fd, struct wf_remote_doorbell **remote_doorbell);
void wf_remote_doorbell_close(struct wf_remote_doorbell *remote_doorbell); /* accepts NULL */

/* Ring after something was posted for the peer.  Harmless when the peer is dead. */
void wf_remote_doorbell_ring(struct wf_remote_doorbell *remote_doorbell);

#endif
