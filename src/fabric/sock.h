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
 * Close every connection of this process that came in at the listener at @address, a
 * sockaddr of @bytes.  The listener must still be open, so that nobody else listens
 * there, and every endpoint made of its connections must be closed: a connection that is
 * left then belongs to nobody.
 */
void wf_sock_close_orphans(const void *address, size_t bytes);

/*
 * Shut down the connection between @here and @there, sockaddrs of @bytes each, so that
 * its provider reads the bytes that have come, then the end.
 */
void wf_sock_shut(const void *here, const void *there, size_t bytes);

/* An end of a connection: bytes that can be compared, unlike those of a sockaddr. */
struct wf_sock_end {
	uint16_t family, port;
	uint8_t ip[16];
};

/* Fill in @end by @address, a sockaddr of @bytes.  False: @address is not of IP. */
bool wf_sock_end(const void *address, size_t bytes, struct wf_sock_end *end);

struct wf_sock {
	int fd;
	uint64_t inode;    /* number that no other socket of the host has while this one is open */
	uint32_t idle_ms;  /* since the last bytes came, or the connection */
	bool unread;       /* bytes wait to be read */
	bool connected;    /* the connection has another end, @there */
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

/* Connections of the listener @fd that nobody has accepted yet; 0 where it can't be asked. */
uint32_t wf_sock_waiting(int fd);

/* Shut @fd down in both directions: the next read finds the end.  -errno. */
int wf_sock_shut_fd(int fd);

#endif
