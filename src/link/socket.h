/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Non-blocking byte streams for the door, and one set to wait on.
 *
 * The simulation replaces this file when it links.  Every descriptor is
 * CLOEXEC, and every stream of the door has TCP_NODELAY.
 *
 * Threads: owner.
 */
#ifndef WF_SOCKET_H
#define WF_SOCKET_H

#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include "util/error.h"

#define WF_SOCKET_ADDRESS_BYTES 256

struct wf_socket_set; /* a listener, its connections, and the readiness they wait for */
struct wf_socket;     /* a stream, or a listener */

enum wf_socket_ready { WF_SOCKET_READABLE = 1, WF_SOCKET_WRITABLE = 2 };

int wf_socket_set_open(struct wf_socket_set **set, struct wf_error *e);
void wf_socket_set_close(struct wf_socket_set *set); /* accepts NULL; its members are gone */

/* Returns a descriptor for epoll, level-triggered: readable when a member is ready. */
int wf_socket_set_fd(const struct wf_socket_set *set);

/* In a forked child: close all descriptors of the set; the parent keeps its own. */
void wf_socket_set_forked(struct wf_socket_set *set);

struct wf_socket_event {
	struct wf_socket *socket;
	void *owner;
	unsigned ready;
};

/*
 * Returns the number of events that are ready now; never waits.  A socket closed after this call
 * may still stand in @events.
 */
int wf_socket_set_poll(struct wf_socket_set *set, struct wf_socket_event *events, int max);

/*
 * Listen on "host:port" ("[v6]:port"; port 0: any), without SO_REUSEPORT.
 * @bound gets the real address; -EACCES: not a loopback address and
 * @beyond_loopback is false.
 */
int wf_socket_listen(struct wf_socket_set *set, const char *address, bool beyond_loopback,
		     void *owner, struct wf_socket **listener,
		     char bound[WF_SOCKET_ADDRESS_BYTES], struct wf_error *e);

/*
 * Accept the next stranger.  -EAGAIN: none.  @from, NULL at a side door, gets "host:port", or "".
 * -EMFILE: out of descriptors or memory, or the kernel refuses; -EPERM: a filter or security module
 * refuses.  Nothing was taken with either.
 */
int wf_socket_accept(struct wf_socket *listener, struct wf_socket **s,
		     char from[WF_SOCKET_ADDRESS_BYTES]);

/* Pause of accepting with no descriptor left and no stranger to evict; not tuned. */
#define WF_SOCKET_ACCEPT_PAUSE_NS (100 * WF_NS_PER_MS)

/*
 * Start dialling "host:port": every address of the name in turn.  A name that is no number is
 * looked up by a short-lived thread, so this never blocks.  An address that does not answer is
 * given up by the kernel after some seconds.  WRITABLE follows when the dial is connected or has
 * failed, never before the next poll: ask wf_socket_dialled.  An error here: the dial could not be
 * tried at all.
 */
int wf_socket_dial(struct wf_socket_set *set, const char *address, void *owner,
		   struct wf_socket **s, struct wf_error *e);

/*
 * Ask how a dial stands.  0: connected.  -EAGAIN: not yet.  Other: no address answered; the
 * sentence names the last.
 */
int wf_socket_dialled(struct wf_socket *s, struct wf_error *e);

/*
 * Check that the other end of the stream @s is a process of our own user, where it is of this
 * host's loopback.  -EACCES with a sentence: it is not, or the kernel does not tell.
 */
int wf_socket_check_user(struct wf_socket *s, bool dialled, struct wf_error *e);

/* Set the owner that events name: an accepted stream has none yet. */
void wf_socket_own(struct wf_socket *s, void *owner);

/*
 * Say which readiness matters; streams start with READABLE.  While dialling: the readiness that
 * matters once the stream is connected.
 */
void wf_socket_want(struct wf_socket *s, unsigned ready);

/*
 * Read bytes.  Returns how many; 0 at the end of the stream; -EAGAIN; any other error: the stream
 * is broken.
 */
ssize_t wf_socket_read(struct wf_socket *s, void *bytes, size_t count);
/*
 * Write bytes.  Returns as wf_socket_read().  When writing fails, earlier bytes can still be read,
 * and then the end.
 */
ssize_t wf_socket_write(struct wf_socket *s, const void *bytes, size_t count);

/*
 * Move @s to the set @to of another thread, which is to follow with wf_socket_join(); until then @s
 * has no events.
 */
void wf_socket_leave(struct wf_socket *s, struct wf_socket_set *to);

/* Finish wf_socket_leave(), on the thread of the new set. */
void wf_socket_join(struct wf_socket *s, void *owner);

/* Close @s; accepts NULL.  A dial under way is given up. */
void wf_socket_close(struct wf_socket *s);

/*
 * Listen at a side door: streams of packets between processes of one host and user, which find each
 * other by a file in /dev/shm.  Its name is made of @number.
 */
int wf_socket_listen_beside(struct wf_socket_set *set, uint64_t number, void *owner,
			    struct wf_socket **listener, struct wf_error *e);

/*
 * Connect to a side door, at once.  -ENOENT, -ECONNREFUSED: nobody listens there; -EACCES: another
 * user does; -EAGAIN: too many wait there already.
 */
int wf_socket_meet(struct wf_socket_set *set, uint64_t number, void *owner,
		   struct wf_socket **s);

/* Remove the file of a listener whose process is dead. */
void wf_socket_sweep_beside(uint64_t number);

/*
 * The process at the other end, as the kernel says.  @pid 0: a process that can't be seen from
 * here.
 */
struct wf_socket_peer {
	uint64_t pid, uid;
	int pid_fd; /* pidfd for the caller to close; negative: there is none */
};
int wf_socket_peer(struct wf_socket *s, struct wf_socket_peer *peer);

#define WF_SOCKET_FDS_MAX 32

/*
 * Send a packet with copies of @fds, all of it or -EAGAIN; any other error: the stream is broken.
 * The packet is there at once.
 */
int wf_socket_send(struct wf_socket *s, const void *bytes, size_t count, const int *fds,
		   unsigned fd_count);

/*
 * Receive the next packet, and up to WF_SOCKET_FDS_MAX descriptors that are the caller's.  0 at the
 * end, or for a packet of no bytes; -EAGAIN; -EMSGSIZE: the packet was longer than @count, or there
 * was no room for a descriptor.
 */
ssize_t wf_socket_receive(struct wf_socket *s, void *bytes, size_t count, int *fds,
			  unsigned *fd_count);

/* Split "host:port" or "[v6]:port"; the port is a number.  -EINVAL with a sentence. */
int wf_socket_split(const char *address, char *host, size_t host_bytes, uint16_t *port,
		    struct wf_error *e);

/* Write "host:port", or "[v6]:port", to @address, cut if too long. */
static inline void wf_socket_address(const char *host, unsigned port, char *address,
				     size_t bytes)
{
	snprintf(address, bytes, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
}

/* Is @host, a number, reached from its own host alone? */
static inline bool wf_socket_is_loopback(const char *host)
{
	return !strncmp(host, "127.", 4) || !strcmp(host, "::1");
}

/* Is @address, "host:port", reached from its own host alone?  One that can't be read is not. */
static inline bool wf_socket_leads_to_loopback(const char *address)
{
	char host[WF_SOCKET_ADDRESS_BYTES];
	uint16_t port;

	return !wf_socket_split(address, host, sizeof(host), &port, NULL) && wf_socket_is_loopback(host);
}

#endif
