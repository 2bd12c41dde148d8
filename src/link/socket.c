/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/socket.h"
#include "link/lookup.h"
#include "link/owner.h"
#include "util/fork.h"
#include "util/list.h"
#include "util/pidfd.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

/* With this backlog a burst of 200 workers waits in the kernel, not in its retries of a second. */
#define BACKLOG SOMAXCONN
/* SYNs sent again: an address that drops them is given up after 3 to 7 s, not 2 minutes. */
#define SYN_COUNT 2
/* Errors in a row that one accept takes for those of dead connections; not tuned. */
#define ACCEPT_ERRORS_MAX 16
#define HOST_BYTES WF_SOCKET_ADDRESS_BYTES
#define EVENTS_MAX 64

enum stage {
	LISTENER,
	LOOKUP,   /* a dial waits for its name; the descriptor is the lookup's */
	DIALLING, /* a connect is under way */
	DIALLED,  /* the connect has come through, and wf_socket_dialled() has not said so yet */
	FAILED,
	STREAM
};

/* Members that only a dial needs. */
struct dial {
	struct wf_lookup *lookup;
	struct addrinfo *list, *next;
	struct wf_error error; /* error of the last address tried */
	char address[WF_SOCKET_ADDRESS_BYTES];
};

struct wf_socket {
	struct wf_list node; /* place in set->members */
	struct wf_socket_set *set;
	void *owner;
	struct dial *dial; /* NULL unless LOOKUP to FAILED */
	int fd;            /* -1: no descriptor */
	unsigned want;
	enum stage stage;
};

struct wf_socket_set {
	struct wf_list members;
	int epoll_fd;
	int asker_fd; /* see link/owner.h; negative: none, or no check was made yet */
};

/* The shapes of struct sockaddr, without casts everywhere. */
union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_storage room;
};

/* Room for the descriptors that go with a packet. */
union fd_room {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(WF_SOCKET_FDS_MAX * sizeof(int))];
};

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* the kernel's number, which older headers lack */
#endif

int wf_socket_split(const char *address, char *host, size_t host_bytes, uint16_t *port,
		    struct wf_error *e)
{
	const char *start = address, *end, *digits;
	unsigned long number = 0;
	size_t length;

	if (*address == '[') {
		start++;
		end = strchr(start, ']');
		digits = end && end[1] == ':' ? end + 2 : NULL;
	} else {
		end = strchr(start, ':');
		digits = end && !strchr(end + 1, ':') ? end + 1 : NULL;
	}
	if (!digits || !*digits || end == start)
		return wf_error_set(e, -EINVAL, "\"%.200s\": expected host:port or [v6]:port",
				    address);

	for (const char *at = digits; *at; at++) {
		if (*at < '0' || *at > '9' || at - digits >= 5)
			number = UINT16_MAX + 1UL;
		else
			number = number * 10 + (unsigned long)(*at - '0');
		if (number > UINT16_MAX)
			return wf_error_set(e, -EINVAL, "\"%.200s\": the port is no number up to %u",
					    address, UINT16_MAX);
	}
	length = (size_t)(end - start);
	if (length >= host_bytes)
		return wf_error_set(e, -EINVAL, "\"%.100s...\": the host is %zu bytes long: "
				    "expected at most %zu", address, length, host_bytes - 1);

	memcpy(host, start, length);
	host[length] = '\0';
	*port = (uint16_t)number;
	return 0;
}

/* Write @a as "host:port", or "" if it can't be told. */
static void format_address(const struct sockaddr *a, socklen_t bytes,
			   char text[WF_SOCKET_ADDRESS_BYTES])
{
	char host[128], port[8]; /* a v6 address with the name of its interface */

	text[0] = '\0';
	if (getnameinfo(a, bytes, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		return;
	(void)snprintf(text, WF_SOCKET_ADDRESS_BYTES, a->sa_family == AF_INET6 ? "[%s]:%s" : "%s:%s",
		       host, port);
}

/* Have the set wait for @events on the socket's descriptor. */
static int watch(struct wf_socket *s, int operation, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = s };

	return epoll_ctl(s->set->epoll_fd, operation, s->fd, &event) ? -errno : 0;
}

/*
 * Close the descriptor.  A forked child may hold a copy until it execs, and a copy keeps both the
 * set's entry and the connection alive: so both are ended by name, not by the close alone.
 */
static void close_fd(struct wf_socket *s)
{
	if (s->fd < 0)
		return;
	(void)watch(s, EPOLL_CTL_DEL, 0);
	wf_fork_hold();
	if (s->stage != LOOKUP) { /* a lookup closes its own */
		(void)shutdown(s->fd, SHUT_RDWR);
		(void)close(s->fd);
	}
	s->fd = -1;
	wf_fork_let();
}

static uint32_t wanted(unsigned ready)
{
	return (ready & WF_SOCKET_READABLE ? (uint32_t)EPOLLIN | (uint32_t)EPOLLRDHUP : 0) |
	       (ready & WF_SOCKET_WRITABLE ? (uint32_t)EPOLLOUT : 0);
}

static void free_dial(struct wf_socket *s)
{
	struct dial *d = s->dial;

	if (!d)
		return;
	wf_lookup_close(d->lookup);
	if (d->list)
		freeaddrinfo(d->list);
	free(d);
	s->dial = NULL;
}

static struct wf_socket *new_socket(struct wf_socket_set *set, void *owner, enum stage stage)
{
	struct wf_socket *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	*s = (struct wf_socket){ .set = set, .owner = owner, .fd = -1, .stage = stage,
				 .want = WF_SOCKET_READABLE };
	wf_fork_hold();
	wf_list_append(&set->members, &s->node);
	wf_fork_let();
	return s;
}

int wf_socket_set_open(struct wf_socket_set **set, struct wf_error *e)
{
	struct wf_socket_set *s = malloc(sizeof(*s));

	if (!s)
		return wf_error_set(e, -ENOMEM, "door: out of memory");
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0) {
		int err = wf_error_set(e, -errno, "door: no epoll descriptor: %s",
				       wf_error_name(-errno));

		free(s);
		return err;
	}
	wf_list_init(&s->members);
	s->asker_fd = -1;
	*set = s;
	return 0;
}

void wf_socket_set_close(struct wf_socket_set *set)
{
	if (!set)
		return;
	(void)close(set->epoll_fd);
	if (set->asker_fd >= 0)
		(void)close(set->asker_fd);
	free(set);
}

int wf_socket_set_fd(const struct wf_socket_set *set)
{
	return set->epoll_fd;
}

void wf_socket_set_forked(struct wf_socket_set *set)
{
	/*
	 * Close alone is safe: the epoll instance is shared, and a change here would be one in the
	 * parent.
	 */
	(void)close(set->epoll_fd);
	if (set->asker_fd >= 0)
		(void)close(set->asker_fd);
	WF_LIST_EACH(node, &set->members) {
		struct wf_socket *s = WF_CONTAINER(node, struct wf_socket, node);

		if (s->fd >= 0)
			(void)close(s->fd);
	}
}

static int set_option(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) ? -errno : 0;
}

static int listen_at(const struct addrinfo *a, int *listener)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	/* A restarted node gets its port back at once; two listeners still exclude each other. */
	err = set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	/* "[::]" means every address, whatever the host's default is. */
	if (!err && a->ai_family == AF_INET6)
		err = set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	if (!err && (bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, BACKLOG)))
		err = -errno;
	if (err) {
		(void)close(fd);
		return err;
	}
	*listener = fd;
	return 0;
}

/* Listen at the first address of @list that is allowed and works. */
static int listen_any(const struct addrinfo *list, bool beyond_loopback, int *fd,
		      struct wf_error *e)
{
	char text[WF_SOCKET_ADDRESS_BYTES];
	int err = -EADDRNOTAVAIL;

	for (const struct addrinfo *a = list; a; a = a->ai_next) {
		format_address(a->ai_addr, a->ai_addrlen, text);
		if (!beyond_loopback && !wf_owner_is_loopback(a->ai_addr)) {
			err = wf_error_set(e, -EACCES, "listen on %s: others could reach it, and "
					   "that needs WEFT_KEY_FILE or certificates, or "
					   "WEFT_SECURITY=open", text);
			continue;
		}
		err = listen_at(a, fd);
		if (!err)
			return 0;
		(void)wf_error_set(e, err, "listen on %s: %s", text, wf_error_name(err));
	}
	return err;
}

int wf_socket_listen(struct wf_socket_set *set, const char *address, bool beyond_loopback,
		     void *owner, struct wf_socket **listener,
		     char bound[WF_SOCKET_ADDRESS_BYTES], struct wf_error *e)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	union address at = { 0 };
	socklen_t at_bytes = sizeof(at);
	struct addrinfo *list;
	struct wf_socket *s;
	char host[HOST_BYTES], port_text[6];
	uint16_t port;
	int err, code;

	err = wf_socket_split(address, host, sizeof(host), &port, e);
	if (err)
		return err;
	/* The lookup may block: this is set-up. */
	(void)snprintf(port_text, sizeof(port_text), "%u", (unsigned)port);
	code = getaddrinfo(host, port_text, &hints, &list);
	if (code)
		return wf_error_set(e, code == EAI_MEMORY ? -ENOMEM : -EADDRNOTAVAIL,
				    "listen on %.200s: %s", address, gai_strerror(code));
	s = new_socket(set, owner, LISTENER);
	if (!s) {
		err = wf_error_set(e, -ENOMEM, "listen on %.200s: out of memory", address);
		goto free_list;
	}
	err = listen_any(list, beyond_loopback, &s->fd, e);
	if (err)
		goto close_socket;
	err = watch(s, EPOLL_CTL_ADD, EPOLLIN);
	if (!err && getsockname(s->fd, &at.any, &at_bytes))
		err = -errno;
	if (err) {
		(void)wf_error_set(e, err, "listen on %.200s: %s", address, wf_error_name(err));
		goto close_socket;
	}

	freeaddrinfo(list);
	format_address(&at.any, at_bytes, bound);
	*listener = s;
	return 0;

close_socket:
	wf_socket_close(s);
free_list:
	freeaddrinfo(list);
	return err;
}

/* Is @code an error that accept(2) passes on from a connection that has died while it waited? */
static bool is_connections_own(int code)
{
	switch (code) {
	case EINTR:
	case ECONNABORTED:
	case ENETDOWN:
	case EPROTO:
	case ENOPROTOOPT:
	case EHOSTDOWN:
	case ENONET:
	case EHOSTUNREACH:
	case EOPNOTSUPP:
	case ENETUNREACH:
	case EPERM:
	case ETIMEDOUT:
		return true;
	default:
		return false;
	}
}

/* Returns the address of side door @number: no peer can name another file, whatever its number. */
static struct sockaddr_un beside_address(uint64_t number)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	(void)snprintf(at.sun_path, sizeof(at.sun_path), "/dev/shm/weft.%016" PRIx64 ".door",
		       number);
	return at;
}

static int open_beside(void)
{
	int fd;

	wf_fork_hold();
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	wf_fork_let();
	return fd < 0 ? -errno : fd;
}

int wf_socket_listen_beside(struct wf_socket_set *set, uint64_t number, void *owner,
			    struct wf_socket **listener, struct wf_error *e)
{
	struct sockaddr_un at = beside_address(number);
	struct wf_socket *s = new_socket(set, owner, LISTENER);
	int err;

	if (!s)
		return wf_error_set(e, -ENOMEM, "a side door: out of memory");
	s->fd = open_beside();
	err = s->fd < 0 ? s->fd : 0;
	/* The file gets the socket's own mode: no other user may connect, not even for a moment. */
	if (!err && (fchmod(s->fd, 0600) || bind(s->fd, (struct sockaddr *)&at, sizeof(at))))
		err = -errno;
	if (err)
		goto close_socket;
	err = listen(s->fd, BACKLOG) ? -errno : watch(s, EPOLL_CTL_ADD, EPOLLIN);
	if (err)
		goto remove_file;
	*listener = s;
	return 0;

remove_file:
	(void)unlink(at.sun_path);
close_socket:
	wf_socket_close(s);
	return wf_error_set(e, err, "a side door at %s: %s", at.sun_path, wf_error_name(err));
}

int wf_socket_meet(struct wf_socket_set *set, uint64_t number, void *owner,
		   struct wf_socket **met)
{
	struct sockaddr_un at = beside_address(number);
	struct wf_socket *s = new_socket(set, owner, STREAM);
	int err;

	if (!s)
		return -ENOMEM;
	s->fd = open_beside();
	err = s->fd < 0 ? s->fd : 0;
	if (!err && connect(s->fd, (struct sockaddr *)&at, sizeof(at)))
		err = -errno;
	if (!err)
		err = watch(s, EPOLL_CTL_ADD, wanted(s->want));
	if (err) {
		wf_socket_close(s);
		return err;
	}
	*met = s;
	return 0;
}

void wf_socket_sweep_beside(uint64_t number)
{
	struct sockaddr_un at = beside_address(number);
	struct stat st;

	if (!lstat(at.sun_path, &st) && S_ISSOCK(st.st_mode) && st.st_uid == geteuid())
		(void)unlink(at.sun_path);
}

int wf_socket_peer(struct wf_socket *s, struct wf_socket_peer *peer)
{
	struct ucred who;
	socklen_t bytes = sizeof(who);
	int pid_fd;

	if (getsockopt(s->fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes))
		return -errno;
	*peer = (struct wf_socket_peer){ (uint64_t)who.pid, who.uid, -1 };
	bytes = sizeof(pid_fd);
	/*
	 * SO_PEERPIDFD came with Linux 6.5; before, a pid that changes hands just now is mistaken.
	 */
	if (who.pid > 0 && getsockopt(s->fd, SOL_SOCKET, SO_PEERPIDFD, &pid_fd, &bytes))
		pid_fd = wf_pidfd_open(peer->pid);
	if (who.pid > 0)
		peer->pid_fd = pid_fd;
	return 0;
}

int wf_socket_send(struct wf_socket *s, const void *bytes, size_t count, const int *fds,
		   unsigned fd_count)
{
	union fd_room room = { 0 };
	struct iovec part = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = count };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t sent;

	assert(fd_count <= WF_SOCKET_FDS_MAX);
	if (fd_count) {
		room.head.cmsg_level = SOL_SOCKET;
		room.head.cmsg_type = SCM_RIGHTS;
		room.head.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(&room.head), fds, fd_count * sizeof(int));
		message.msg_control = &room;
		message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
	}
	do
		sent = sendmsg(s->fd, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return errno == ENOBUFS || errno == ETOOMANYREFS ? -EAGAIN : -errno;
	return 0;
}

/* Take the descriptors of @message, if there are any. */
static unsigned take_fds(struct msghdr *message, int *fds)
{
	unsigned count = 0;

	for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at; at = CMSG_NXTHDR(message, at)) {
		size_t bytes = at->cmsg_len - CMSG_LEN(0);

		if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(fds + count, CMSG_DATA(at), bytes);
		count += (unsigned)(bytes / sizeof(int));
	}
	return count;
}

ssize_t wf_socket_receive(struct wf_socket *s, void *bytes, size_t count, int *fds,
			  unsigned *fd_count)
{
	union fd_room room;
	struct iovec part = { .iov_base = bytes, .iov_len = count };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &room,
				  .msg_controllen = sizeof(room) };
	ssize_t got;

	wf_fork_hold();
	do
		got = recvmsg(s->fd, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	wf_fork_let();
	if (got < 0)
		return -errno;
	*fd_count = take_fds(&message, fds);
	/* A packet of no bytes, which looks like the end, may have descriptors all the same. */
	if (got && !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return got;
	while (*fd_count)
		(void)close(fds[--*fd_count]);
	return got ? -EMSGSIZE : 0;
}

/* Does anybody wait at the listener @fd? */
static bool is_awaited(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

int wf_socket_accept(struct wf_socket *listener, struct wf_socket **accepted,
		     char from[WF_SOCKET_ADDRESS_BYTES])
{
	struct wf_socket *s = new_socket(listener->set, NULL, STREAM);
	union address at = { 0 };
	socklen_t at_bytes;
	unsigned errors = 0;
	int err;

	if (!s)
		return -EMFILE;
	do {
		at_bytes = sizeof(at);
		wf_fork_hold();
		s->fd = accept4(listener->fd, &at.any, &at_bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
		wf_fork_let();
	} while (s->fd < 0 && is_connections_own(errno) && ++errors < ACCEPT_ERRORS_MAX);
	if (s->fd < 0) {
		/* Without descriptors the kernel says so before it looks for a connection. */
		if (errno == EAGAIN || !is_awaited(listener->fd))
			err = -EAGAIN;
		else
			err = is_connections_own(errno) ? -EPERM : -EMFILE;
		goto close_socket;
	}
	/* Without memory the stranger is let go, as if it had left. */
	err = watch(s, EPOLL_CTL_ADD, wanted(s->want)) ? -EAGAIN : 0;
	if (err)
		goto close_socket;
	if (from) {
		(void)set_option(s->fd, IPPROTO_TCP, TCP_NODELAY, 1);
		format_address(&at.any, at_bytes, from);
	}

	*accepted = s;
	return 0;

close_socket:
	wf_socket_close(s);
	return err;
}

/*
 * Is the stream connected to itself?  A dial to a port of this host that nobody listens on may get
 * that very port as its own, and then TCP connects it to itself.  A redial after a death would
 * take that for the peer.
 */
static bool is_itself(int fd)
{
	union address mine = { 0 }, theirs = { 0 };
	socklen_t mine_bytes = sizeof(mine), theirs_bytes = sizeof(theirs);

	return !getsockname(fd, &mine.any, &mine_bytes) &&
	       !getpeername(fd, &theirs.any, &theirs_bytes) && mine_bytes == theirs_bytes &&
	       !memcmp(&mine, &theirs, mine_bytes);
}

static int connect_to(struct wf_socket *s, const struct addrinfo *a)
{
	int err;

	wf_fork_hold();
	s->fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	wf_fork_let();
	if (s->fd < 0)
		return -errno;
	s->stage = DIALLING;
	(void)set_option(s->fd, IPPROTO_TCP, TCP_NODELAY, 1);
	(void)set_option(s->fd, IPPROTO_TCP, TCP_SYNCNT, SYN_COUNT);
	err = connect(s->fd, a->ai_addr, a->ai_addrlen) ? -errno : 0;
	if (err == -EINPROGRESS || err == -EINTR)
		err = 0;
	if (!err)
		err = watch(s, EPOLL_CTL_ADD, EPOLLOUT);
	if (err)
		close_fd(s);
	return err;
}

/* Keep the failure of an address that did not answer, in a sentence. */
static void note_failure(struct dial *d, const struct addrinfo *a, int err)
{
	char text[WF_SOCKET_ADDRESS_BYTES];

	format_address(a->ai_addr, a->ai_addrlen, text);
	if (!strcmp(text, d->address))
		(void)wf_error_set(&d->error, err, "dial %s: %s", text, wf_error_name(err));
	else
		(void)wf_error_set(&d->error, err, "dial %.200s at %s: %s", d->address, text,
				   wf_error_name(err));
}

/* Try the addresses that are left, up to one that can be waited for. */
static int connect_next(struct wf_socket *s)
{
	struct dial *d = s->dial;
	int err = d->error.code;

	while (d->next) {
		struct addrinfo *a = d->next;

		err = connect_to(s, a);
		if (!err)
			return 0; /* next stays on the address that is being tried */
		note_failure(d, a, err);
		d->next = a->ai_next;
	}
	s->stage = FAILED;
	return err;
}

/* Connect to the addresses found, when the lookup has ended. */
static void use_lookup(struct wf_socket *s)
{
	struct dial *d = s->dial;
	struct wf_error why = { 0 };
	int err = wf_lookup_take(d->lookup, &d->list, &why);

	if (err == -EAGAIN)
		return;
	close_fd(s);
	if (err) {
		s->stage = FAILED;
		wf_error_set(&d->error, err, "dial %.200s: %s", d->address, why.text);
		return;
	}
	d->next = d->list;
	(void)connect_next(s);
}

/* Go on after the connect that was under way has ended. */
static void use_connect(struct wf_socket *s)
{
	struct dial *d = s->dial;
	struct addrinfo *a = d->next;
	int code = 0;
	socklen_t bytes = sizeof(code);

	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &code, &bytes))
		code = errno;
	if (!code && is_itself(s->fd))
		code = ECONNREFUSED;
	if (!code) {
		s->stage = DIALLED;
		return;
	}
	close_fd(s);
	note_failure(d, a, -code);
	d->next = a->ai_next;
	(void)connect_next(s);
}

/* Take a dial one step on.  Is it through, well or not? */
static bool advance(struct wf_socket *s)
{
	if (s->stage == LOOKUP)
		use_lookup(s);
	else
		use_connect(s);
	return s->stage == DIALLED || s->stage == FAILED;
}

/* Have the next poll tell of a dial that has failed at once, like any other. */
static int fail_later(struct wf_socket *s)
{
	int err;

	s->fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->fd < 0)
		return -errno;
	err = watch(s, EPOLL_CTL_ADD, EPOLLIN);
	if (err)
		close_fd(s);
	return err;
}

static int start_lookup(struct wf_socket *s, const char *host, uint16_t port, struct wf_error *e)
{
	int err = wf_lookup_open(host, port, &s->dial->lookup, e);

	if (err)
		return err;
	s->fd = wf_lookup_fd(s->dial->lookup);
	err = watch(s, EPOLL_CTL_ADD, EPOLLIN);
	if (err)
		return wf_error_set(e, err, "dial %.200s: %s", s->dial->address,
				    wf_error_name(err));
	return 0;
}

static int start_dial(struct wf_socket *s, const char *host, uint16_t port, struct wf_error *e)
{
	struct dial *d = s->dial;
	int err = wf_lookup_number(host, port, &d->list);

	if (err == -EAGAIN)
		return start_lookup(s, host, port, e);
	if (!err) {
		d->next = d->list;
		err = connect_next(s) ? fail_later(s) : 0;
	}
	if (err)
		return wf_error_set(e, err, "dial %.200s: %s", d->address, wf_error_name(err));
	return 0;
}

int wf_socket_dial(struct wf_socket_set *set, const char *address, void *owner,
		   struct wf_socket **dialling, struct wf_error *e)
{
	char host[HOST_BYTES];
	struct wf_socket *s;
	uint16_t port;
	int err;

	err = wf_socket_split(address, host, sizeof(host), &port, e);
	if (err)
		return err;
	s = new_socket(set, owner, LOOKUP);
	if (!s)
		return wf_error_set(e, -ENOMEM, "dial %.200s: out of memory", address);
	s->dial = calloc(1, sizeof(*s->dial));
	if (!s->dial) {
		err = wf_error_set(e, -ENOMEM, "dial %.200s: out of memory", address);
		goto close_socket;
	}
	(void)snprintf(s->dial->address, sizeof(s->dial->address), "%s", address);
	err = start_dial(s, host, port, e);
	if (err)
		goto close_socket;

	*dialling = s;
	return 0;

close_socket:
	wf_socket_close(s);
	return err;
}

int wf_socket_dialled(struct wf_socket *s, struct wf_error *e)
{
	if (s->stage == LOOKUP || s->stage == DIALLING)
		return -EAGAIN;
	if (s->stage == FAILED)
		return wf_error_set(e, s->dial->error.code, "%s", s->dial->error.text);
	if (s->stage == DIALLED) {
		s->stage = STREAM;
		free_dial(s);
		wf_socket_want(s, s->want);
	}
	return 0;
}

int wf_socket_set_poll(struct wf_socket_set *set, struct wf_socket_event *events, int max)
{
	struct epoll_event ready[EVENTS_MAX];
	int got = epoll_wait(set->epoll_fd, ready, WF_MIN(max, EVENTS_MAX), 0);
	int count = 0;

	for (int i = 0; i < got; i++) {
		struct wf_socket *s = ready[i].data.ptr;
		unsigned can = 0;

		if ((s->stage == LOOKUP || s->stage == DIALLING) && !advance(s))
			continue;
		if (ready[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
			can |= WF_SOCKET_READABLE;
		if (ready[i].events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
			can |= WF_SOCKET_WRITABLE;
		if (s->stage == DIALLED || s->stage == FAILED)
			can = WF_SOCKET_WRITABLE;
		events[count++] = (struct wf_socket_event){ s, s->owner, can };
	}
	return count;
}

int wf_socket_check_user(struct wf_socket *s, bool dialled, struct wf_error *e)
{
	if (s->set->asker_fd < 0) {
		wf_fork_hold();
		s->set->asker_fd = wf_owner_open();
		wf_fork_let();
	}
	return wf_owner_check(s->set->asker_fd, s->fd,
			      dialled ? WF_OWNER_DIALLED : WF_OWNER_ACCEPTED, e);
}

void wf_socket_own(struct wf_socket *s, void *owner)
{
	s->owner = owner;
}

void wf_socket_want(struct wf_socket *s, unsigned ready)
{
	s->want = ready;
	/* The change can't fail: the entry is there. */
	if (s->stage == STREAM || s->stage == LISTENER)
		(void)watch(s, EPOLL_CTL_MOD, wanted(ready));
}

ssize_t wf_socket_read(struct wf_socket *s, void *bytes, size_t count)
{
	ssize_t got;

	do
		got = recv(s->fd, bytes, count, 0);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

ssize_t wf_socket_write(struct wf_socket *s, const void *bytes, size_t count)
{
	ssize_t sent;

	do
		sent = send(s->fd, bytes, count, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : sent;
}

void wf_socket_leave(struct wf_socket *s, struct wf_socket_set *to)
{
	(void)watch(s, EPOLL_CTL_DEL, 0);
	wf_fork_hold();
	wf_list_remove(&s->node);
	wf_list_append(&to->members, &s->node);
	s->set = to;
	wf_fork_let();
}

void wf_socket_join(struct wf_socket *s, void *owner)
{
	s->owner = owner;
	/* Without memory for the entry the stream has no events, and its time runs out. */
	(void)watch(s, EPOLL_CTL_ADD, wanted(s->want));
}

void wf_socket_close(struct wf_socket *s)
{
	if (!s)
		return;
	close_fd(s);
	free_dial(s);
	wf_fork_hold();
	wf_list_remove(&s->node);
	wf_fork_let();
	free(s);
}
