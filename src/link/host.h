/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a node leaves on its host, and who is there beside it: who may read whose memory,
 * who has died and what he left in /dev/shm.
 *
 * Every node keeps a marker there, "weft." and a random number in 16 hex digits, readable by
 * its user alone and locked for as long as its process lives.  It lists files that
 * providers made for the node; the file of the node's side door is named alike.  So a
 * survivor knows what to remove.  A lock that is free says that the owner is dead: nobody's
 * word is needed.
 *
 * Threads: owner.
 */
#ifndef WF_HOST_H
#define WF_HOST_H

#include "util/error.h"

struct wf_host;
struct wf_host_peer; /* a process of this host, watched */

int wf_host_open(struct wf_host **host, struct wf_error *e);
void wf_host_close(struct wf_host *host); /* removes the marker; accepts NULL */

uint64_t wf_host_number(const struct wf_host *host); /* of its marker; not 0 */

/*
 * These names under /dev/shm, one per line, are this node's now; they replace
 * those told before.  Call it whenever such files were made anew: a file younger
 * than this word is taken for somebody else's.  -EINVAL: not names of plain
 * files; -EMSGSIZE: more than 4 KiB; -EIO.
 */
int wf_host_files(struct wf_host *host, const char *names);

/*
 * Can the memory of process @pid be read?  It has said that @nonce lies at @address.
 * -EBADMSG: something else does; -EPERM; -ESRCH.
 */
int wf_host_probe(uint64_t pid, uint64_t address, const uint8_t *nonce, size_t count);

/* Is process @pid this one? */
bool wf_host_is_this(uint64_t pid);

/* Process @pid, which @pid_fd stands for and which has marker @number.  Takes @pid_fd in any case. */
int wf_host_peer_open(uint64_t pid, int pid_fd, uint64_t number, struct wf_host_peer **peer);
void wf_host_peer_close(struct wf_host_peer *peer); /* accepts NULL */

/* Readable when it is dead. */
int wf_host_peer_fd(const struct wf_host_peer *peer);
bool wf_host_peer_dead(const struct wf_host_peer *peer);

/* Remove what a peer that is dead has left.  Does nothing while it lives. */
void wf_host_peer_sweep(const struct wf_host_peer *peer);

/* The same for whatever dead nodes of this user have left. */
void wf_host_sweep(void);

/* In a forked child: let go of the marker, which is the parent's. */
void wf_host_forked(struct wf_host *host);

#endif
