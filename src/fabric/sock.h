/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP sockets that a provider keeps to itself, found among the descriptors of this
 * process by their addresses.  Without /proc none is found.
 */
#ifndef WF_SOCK_H
#define WF_SOCK_H

#include <stddef.h>

/*
 * Close every connection of this process that came in at the port of the listener at
 * @address, a sockaddr of @bytes.  The listener must still be open, so that nobody else
 * has its port, and everything that was made of its connections must be closed: what is
 * left then belongs to nobody.
 */
void wf_sock_close_orphans(const void *address, size_t bytes);

/*
 * Shut down the connection between @here and @there, sockaddrs of @bytes each, so that
 * its provider reads what has come, then its end.
 */
void wf_sock_shut(const void *here, const void *there, size_t bytes);

#endif
