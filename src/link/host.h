/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What holds between processes of one host: who shares it, who may read whose
 * memory, who has died and what he left in /dev/shm.
 *
 * Every node keeps a marker there, "weft." and random hex digits, readable by
 * its user alone and locked for as long as its process lives.  The first line
 * is a nonce, the others name files that providers made for the node.  So a
 * peer can prove that it sees the same /dev/shm, and a survivor knows what to
 * remove.  A lock that is free says that the owner is dead.
 *
 * Threads: owner.
 */
#ifndef WF_HOST_H
#define WF_HOST_H

#include "wire/greet.h"

struct wf_host;
struct wf_host_peer; /* a process of this host, watched */

int wf_host_open(struct wf_host **host, struct wf_error *e);
void wf_host_close(struct wf_host *host); /* removes the marker; accepts NULL */

/* Our side of the facts; doorbell and leases are their own affair and stay -1. */
void wf_host_describe(const struct wf_host *host, struct wf_greet_host *facts);

/*
 * These names under /dev/shm, one per line, are this node's now; they replace
 * those told before.  Call it whenever such files were made anew: a file younger
 * than this word is taken for somebody else's.  -EINVAL: not names of plain
 * files; -EMSGSIZE: more than 4 KiB; -EIO.
 */
int wf_host_files(struct wf_host *host, const char *names);

/*
 * 0: the peer shares this host and its memory can be reached.  Otherwise @why
 * says what is in the way.
 */
int wf_host_gate(const struct wf_greet_host *mine, const struct wf_greet_host *theirs,
		 struct wf_error *why);

/* -EXDEV: it runs elsewhere.  -ESRCH: it is gone, be its number taken again or not. */
int wf_host_peer_open(const struct wf_greet_host *mine, const struct wf_greet_host *theirs,
		      struct wf_host_peer **peer);
void wf_host_peer_close(struct wf_host_peer *peer); /* accepts NULL */

/* Our copy of its descriptor @fd, or a negative code: -EBADMSG: it has no such; -ESRCH, -EPERM, -EMFILE. */
int wf_host_peer_take(const struct wf_host_peer *peer, int fd);

/* Readable when it is dead. */
int wf_host_peer_fd(const struct wf_host_peer *peer);
bool wf_host_peer_dead(const struct wf_host_peer *peer);

/* Remove what a peer that is dead has left.  Does nothing while it lives. */
void wf_host_peer_sweep(const struct wf_greet_host *theirs);

/* The same for whatever dead nodes of this user have left. */
void wf_host_sweep(void);

/* In a forked child: let go of the marker, which is the parent's. */
void wf_host_forked(struct wf_host *host);

#endif
