/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections that a provider has accepted and forgets. */
#ifndef WF_ORPHAN_H
#define WF_ORPHAN_H

#include <stddef.h>

/*
 * Close every connection of this process that came in at the port of the listener at
 * @address, a sockaddr of @bytes.  The listener must still be open, so that nobody else
 * has its port, and everything that was made of its connections must be closed: what is
 * left then belongs to nobody.  Without /proc nothing happens.
 */
void wf_orphans_close(const void *address, size_t bytes);

#endif
