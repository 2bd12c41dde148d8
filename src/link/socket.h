/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Non-blocking byte streams for the door, and one set to wait on.
 *
 * The simulation replaces this file when it links.  Every descriptor is
 * CLOEXEC, with TCP_NODELAY.
 *
 * Threads: owner.
 */
#ifndef WF_SOCKET_H
#define WF_SOCKET_H

#include <sys/types.h>
#include "util/error.h"

#define WF_SOCKET_ADDRESS_BYTES 256

struct wf_socket_set; /* a listener, its connections, and what they wait for */
struct wf_socket;     /* one stream, or a listener */

enum wf_socket_ready { WF_SOCKET_READABLE = 1, WF_SOCKET_WRITABLE = 2 };

int wf_socket_set_open(struct wf_socket_set **set, struct wf_error *e);
void wf_socket_set_close(struct wf_socket_set *set); /* accepts NULL; its members are gone */

/* For epoll, level-triggered: readable when a member is ready. */
int wf_socket_set_fd(const struct wf_socket_set *set);

/* In a forked child: close all descriptors of the set; the parent keeps its own. */
void wf_socket_set_forked(struct wf_socket_set *set);

struct wf_socket_event {
	struct wf_socket *socket;
	void *owner;
	unsigned ready;
};

/* How many are ready now; never waits.  One closed after this call may still stand in @events. */
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
 * The next stranger.  -EAGAIN: none.  @from gets "host:port", or "".
 * -EMFILE: out of descriptors or memory, nothing taken.
 */
int wf_socket_accept(struct wf_socket *listener, struct wf_socket **s,
		     char from[WF_SOCKET_ADDRESS_BYTES]);

/*
 * Start dialling "host:port": every address of the name in turn.  A name that
 * is no number is looked up by a short-lived thread, so this never blocks.  An
 * address that does not answer is given up by the kernel after some seconds.
 * WRITABLE follows when it is connected or has failed, never before the next
 * poll: ask wf_socket_dialled.  An error here: it could not be tried at all.
 */
int wf_socket_dial(struct wf_socket_set *set, const char *address, void *owner,
		   struct wf_socket **s, struct wf_error *e);

/* 0: connected.  -EAGAIN: not yet.  Other: no address answered; the sentence names the last. */
int wf_socket_dialled(struct wf_socket *s, struct wf_error *e);

/*
 * Is the other end of the stream @s a process of our own user, where it is of this host's
 * loopback?  -EACCES with a sentence: it is not, or the kernel does not tell.
 */
int wf_socket_check_user(struct wf_socket *s, bool dialled, struct wf_error *e);

/* Whom events name: an accepted stream has nobody yet. */
void wf_socket_own(struct wf_socket *s, void *owner);

/*
 * Say which readiness matters; streams start with READABLE.  While dialling:
 * what will matter once it is connected.
 */
void wf_socket_want(struct wf_socket *s, unsigned ready);

/*
 * Bytes moved; 0 at the end of the stream; -EAGAIN; else the stream is broken.
 * When writing fails, what came before can still be read, and then its end.
 */
ssize_t wf_socket_read(struct wf_socket *s, void *bytes, size_t count);
ssize_t wf_socket_write(struct wf_socket *s, const void *bytes, size_t count);

/*
 * @s goes over to the set @to of another thread, which is to follow with wf_socket_join;
 * until then nothing is heard of it.
 */
void wf_socket_leave(struct wf_socket *s, struct wf_socket_set *to);
void wf_socket_join(struct wf_socket *s, void *owner);

/* Accepts NULL.  A dial under way is given up. */
void wf_socket_close(struct wf_socket *s);

/*
 * Side doors: streams of packets between processes of one host and user, which find each
 * other by a file in /dev/shm.  Its name is made of @number.
 */
int wf_socket_listen_beside(struct wf_socket_set *set, uint64_t number, void *owner,
			    struct wf_socket **listener, struct wf_error *e);

/*
 * Connected on return.  -ENOENT, -ECONNREFUSED: nobody listens there; -EACCES: another user
 * does; -EAGAIN: too many wait there already.
 */
int wf_socket_meet(struct wf_socket_set *set, uint64_t number, void *owner,
		   struct wf_socket **s);

/* Remove the file of a listener whose process is dead. */
void wf_socket_sweep_beside(uint64_t number);

/* Who has the other end, as the kernel says.  @pid 0: a process that can't be seen from here. */
struct wf_socket_peer {
	uint64_t pid, uid;
	int pid_fd; /* the caller's to close; negative: there is none */
};
int wf_socket_peer(struct wf_socket *s, struct wf_socket_peer *peer);

#define WF_SOCKET_FDS_MAX 32

/* A packet with copies of @fds, all of it or -EAGAIN; else the stream is broken.  It is there at once. */
int wf_socket_send(struct wf_socket *s, const void *bytes, size_t count, const int *fds,
		   unsigned fd_count);

/*
 * The next packet, and descriptors that are the caller's: up to WF_SOCKET_FDS_MAX.  0 at the
 * end; -EAGAIN; -EMSGSIZE: it was longer than @count, or there was no room for a descriptor.
 */
ssize_t wf_socket_receive(struct wf_socket *s, void *bytes, size_t count, int *fds,
			  unsigned *fd_count);

/* Split "host:port" or "[v6]:port"; the port is a number.  -EINVAL with a sentence. */
int wf_socket_split(const char *address, char *host, size_t host_bytes, uint16_t *port,
		    struct wf_error *e);

#endif
