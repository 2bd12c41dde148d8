/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A node's files on its host and the processes beside it: whose memory can be read, which processes
 * have died, and what the dead have left in /dev/shm.
 *
 * Every node keeps a marker there, "weft." and a random number in 16 hex digits, readable by its
 * user alone and locked for as long as its process lives.  The marker lists files that providers
 * made for the node; the file of the node's side door is named alike.  So a survivor knows what to
 * remove.  A lock that is free says that the owner is dead: nobody's word is needed.
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

uint64_t wf_host_number(const struct wf_host *host); /* number of the marker; not 0 */

/*
 * Declare the names of files under /dev/shm, one per line, as this node's; they replace those told
 * before.  Call it whenever such files were made anew: a file younger than the last call is taken
 * for somebody else's.  -EINVAL: not names of plain files; -EMSGSIZE: more than 4 KiB; -EIO.
 */
int wf_host_files(struct wf_host *host, const char *names);

/*
 * Can the memory of process @pid be read?  The process has said that @nonce lies at @address.
 * -EBADMSG: something else lies there; -EPERM; -ESRCH.
 */
int wf_host_probe(uint64_t pid, uint64_t address, const uint8_t *nonce, size_t count);

/* Is process @pid this one? */
bool wf_host_is_this(uint64_t pid);

/*
 * Watch the process of @pid_fd, which has marker @number.  Takes @pid_fd in any case.  The number of
 * the process would not do: it may change hands.
 */
int wf_host_peer_open(int pid_fd, uint64_t number, struct wf_host_peer **peer);
void wf_host_peer_close(struct wf_host_peer *peer); /* accepts NULL */

/* Returns a descriptor that is readable when the process is dead. */
int wf_host_peer_fd(const struct wf_host_peer *peer);
bool wf_host_peer_dead(const struct wf_host_peer *peer);

/* Remove files that a dead peer has left.  Does nothing while the peer lives. */
void wf_host_peer_sweep(const struct wf_host_peer *peer);

/* Remove files that dead nodes of this user have left. */
void wf_host_sweep(void);

/* In a forked child: let go of the marker, which is the parent's. */
void wf_host_forked(struct wf_host *host);

#endif
