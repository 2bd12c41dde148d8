/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TCP sockets that a provider keeps to itself, found among the descriptors of this
 * process by their addresses.
 */
#ifndef WF_SOCK_H
#define WF_SOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* One end of a connection: bytes that can be compared, unlike those of a sockaddr. */
struct wf_sock_end {
	uint16_t family, port;
	uint8_t ip[16];
};

/* The end at @address, a sockaddr of @bytes.  False: it is not one of IP. */
bool wf_sock_end(const void *address, size_t bytes, struct wf_sock_end *end);

struct wf_sock {
	int fd;
	uint64_t inode;    /* its number, which no other socket of the host has while it is open */
	uint32_t idle_ms;  /* since bytes came last, or since it came in */
	bool unread;       /* there are bytes to read */
	bool connected;    /* it has another end: */
	struct wf_sock_end there;
};

/*
 * Call @each with every connection of this process that came in at the listener at @address,
 * a sockaddr of @bytes, until it returns true.
 */
void wf_sock_each(const void *address, size_t bytes,
		  bool (*each)(const struct wf_sock *sock, void *ctx), void *ctx);

/* The descriptor that listens at @address, a sockaddr of @bytes, or -1. */
int wf_sock_listener(const void *address, size_t bytes);

/* How many connections the listener @fd holds that nobody has accepted yet; 0 where it can't be asked. */
uint32_t wf_sock_waiting(int fd);

/* Shut @fd down in both directions: whoever reads it finds its end. */
int wf_sock_shut_fd(int fd);

#endif
