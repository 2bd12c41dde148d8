/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Owner: which user has the other end of a loopback connection, as the kernel says.
 *
 * The kernel is asked by its socket diagnostics, which cost one lookup, and otherwise by
 * /proc/net/tcp, which costs a line for each connection of the host.
 *
 * Threads: owner.
 */
#ifndef WF_OWNER_H
#define WF_OWNER_H

#include "util/error.h"

/* Open a descriptor for wf_owner_check(), which the caller keeps; negative: there is none. */
int wf_owner_open(void);

enum wf_owner_end {
	WF_OWNER_ACCEPTED, /* the other end has dialled */
	WF_OWNER_DIALLED /* the other end may not be accepted there yet: then the listener counts */
};

/*
 * Check whose the other end of the TCP connection @fd is.  0: the connection does not go over
 * loopback, or both its ends are of this process's user.  -EACCES with a sentence: the other end is
 * somebody else's, or the kernel does not tell whose.  -ENOTCONN: the connection has ended.  @asker
 * is from wf_owner_open(), and may be negative.
 */
int wf_owner_check(int asker, int fd, enum wf_owner_end end, struct wf_error *e);

/* Does @address stay within the host? */
struct sockaddr;
bool wf_owner_is_loopback(const struct sockaddr *address);

#endif
