/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host's addresses, looked up by a short-lived thread.
 *
 * The resolver blocks for as long as a name server pleases and can't be
 * interrupted, so nobody waits for that thread: a lookup that is closed goes
 * on alone, touches nothing but its own memory and frees it.
 *
 * Threads: owner.
 */
#ifndef WF_LOOKUP_H
#define WF_LOOKUP_H

#include <netdb.h>
#include "util/error.h"

struct wf_lookup;

/* Get the addresses of a numeric @host at once, without a thread.  -EAGAIN: @host is a name. */
int wf_lookup_number(const char *host, uint16_t port, struct addrinfo **list);

int wf_lookup_open(const char *host, uint16_t port, struct wf_lookup **lookup, struct wf_error *e);

/* Returns a descriptor that is readable when the lookup has ended. */
int wf_lookup_fd(const struct wf_lookup *lookup);

/*
 * Take the addresses found, for freeaddrinfo.  -EAGAIN: not yet.  Other: no such host, with a
 * sentence.
 */
int wf_lookup_take(struct wf_lookup *lookup, struct addrinfo **list, struct wf_error *e);

/* Close the lookup, ended or not.  Accepts NULL. */
void wf_lookup_close(struct wf_lookup *lookup);

#endif
