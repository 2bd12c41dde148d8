/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/sock.h"

#include <dirent.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Limit of the descriptors tried one by one, without /proc or a descriptor to read it. */
#define FDS_TRIED_MAX 65536

static void try_fds(bool (*each)(int fd, void *ctx), void *ctx)
{
	struct rlimit limit;
	int most = FDS_TRIED_MAX;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < FDS_TRIED_MAX)
		most = (int)limit.rlim_cur;
	for (int fd = 0; fd < most; fd++)
		if (each(fd, ctx))
			return;
}

/* Call @each with every descriptor of this process until it returns true. */
static void each_fd(bool (*each)(int fd, void *ctx), void *ctx)
{
	DIR *fds = opendir("/proc/self/fd");
	struct dirent *entry;
	bool found = false;

	if (!fds) {
		try_fds(each, ctx);
		return;
	}
	while (!found && (entry = readdir(fds)))
		/* "." and ".." would be 0. */
		found = entry->d_name[0] != '.' && each(atoi(entry->d_name), ctx);
	closedir(fds);
}

/* Is @fd a connection, be it over or not? */
static bool is_connection(int fd)
{
	socklen_t bytes = sizeof(int);
	int type = 0, listens = 1;

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) && type == SOCK_STREAM &&
	       !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) && !listens;
}

struct ends {
	const void *here, *there;
	size_t bytes;
};

static bool shut_between(int fd, void *ctx)
{
	struct sockaddr_storage here = { 0 }, there = { 0 };
	socklen_t here_bytes = sizeof(here), there_bytes = sizeof(there);
	const struct ends *ends = ctx;

	return !getsockname(fd, (struct sockaddr *)&here, &here_bytes) &&
	       !getpeername(fd, (struct sockaddr *)&there, &there_bytes) &&
	       here_bytes == ends->bytes && !memcmp(&here, ends->here, ends->bytes) &&
	       there_bytes == ends->bytes && !memcmp(&there, ends->there, ends->bytes) &&
	       is_connection(fd) && !shutdown(fd, SHUT_RDWR);
}

void wf_sock_shut(const void *here, const void *there, size_t bytes)
{
	struct ends ends = { here, there, bytes };

	each_fd(shut_between, &ends);
}

bool wf_sock_end(const void *address, size_t bytes, struct wf_sock_end *end)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	*end = (struct wf_sock_end){ 0 };
	if (bytes < sizeof(v4))
		return false;
	memcpy(&v4, address, sizeof(v4));
	end->family = v4.sin_family;
	if (v4.sin_family == AF_INET) {
		end->port = v4.sin_port;
		memcpy(end->ip, &v4.sin_addr, sizeof(v4.sin_addr));
		return true;
	}
	if (v4.sin_family != AF_INET6 || bytes < sizeof(v6))
		return false;
	memcpy(&v6, address, sizeof(v6));
	end->port = v6.sin6_port;
	memcpy(end->ip, &v6.sin6_addr, sizeof(v6.sin6_addr));
	return true;
}

/* Has @fd come in at @listener, or at any address where @listener is at all addresses? */
static bool came_in_at(int fd, const struct wf_sock_end *listener)
{
	static const uint8_t any[sizeof(listener->ip)];
	struct sockaddr_storage at;
	socklen_t bytes = sizeof(at);
	struct wf_sock_end here;

	return !getsockname(fd, (struct sockaddr *)&at, &bytes) &&
	       wf_sock_end(&at, bytes, &here) && here.port == listener->port &&
	       here.family == listener->family &&
	       (!memcmp(here.ip, listener->ip, sizeof(here.ip)) ||
		!memcmp(any, listener->ip, sizeof(any))) &&
	       is_connection(fd);
}

static bool close_orphan(int fd, void *listener)
{
	if (came_in_at(fd, listener))
		(void)close(fd);
	return false;
}

void wf_sock_close_orphans(const void *address, size_t bytes)
{
	struct wf_sock_end listener;

	if (wf_sock_end(address, bytes, &listener) && listener.port)
		each_fd(close_orphan, &listener);
}

/* A walk over the connections that came in at one listener. */
struct walk {
	struct wf_sock_end listener;
	bool (*each)(const struct wf_sock *sock, void *ctx);
	void *ctx;
};

struct search {
	struct wf_sock_end at;
	int fd;
};

static bool listens_at(int fd, void *ctx)
{
	struct search *search = ctx;
	struct sockaddr_storage at;
	socklen_t bytes = sizeof(at), int_bytes = sizeof(int);
	struct wf_sock_end here;
	int listens = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &int_bytes) || !listens ||
	    getsockname(fd, (struct sockaddr *)&at, &bytes) || !wf_sock_end(&at, bytes, &here) ||
	    memcmp(&here, &search->at, sizeof(here)) != 0)
		return false;
	search->fd = fd;
	return true;
}

int wf_sock_listener(const void *address, size_t bytes)
{
	struct search search = { .fd = -1 };

	if (wf_sock_end(address, bytes, &search.at))
		each_fd(listens_at, &search);
	return search.fd;
}

uint32_t wf_sock_waiting(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t bytes = sizeof(info);

	/* The field for unacknowledged segments counts a listener's connections that wait. */
	return fd < 0 || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) ? 0 :
										info.tcpi_unacked;
}

static bool tell_of(int fd, void *ctx)
{
	const struct walk *walk = ctx;
	struct sockaddr_storage there;
	socklen_t there_bytes = sizeof(there), info_bytes = sizeof(struct tcp_info);
	struct tcp_info info = { 0 };
	struct wf_sock sock = { .fd = fd };
	struct stat st;
	int unread = 0;

	if (!came_in_at(fd, &walk->listener) || fstat(fd, &st) ||
	    getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &info_bytes) ||
	    ioctl(fd, FIONREAD, &unread))
		return false;
	sock.inode = st.st_ino;
	sock.idle_ms = info.tcpi_last_data_recv;
	sock.unread = unread > 0;
	sock.connected = !getpeername(fd, (struct sockaddr *)&there, &there_bytes) &&
			 wf_sock_end(&there, there_bytes, &sock.there);
	return walk->each(&sock, walk->ctx);
}

void wf_sock_each(const void *address, size_t bytes,
		  bool (*each)(const struct wf_sock *sock, void *ctx), void *ctx)
{
	struct walk walk = { .each = each, .ctx = ctx };

	if (wf_sock_end(address, bytes, &walk.listener))
		each_fd(tell_of, &walk);
}

int wf_sock_shut_fd(int fd)
{
	return shutdown(fd, SHUT_RDWR) ? -errno : 0;
}
