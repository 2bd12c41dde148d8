/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/sock.h"

#include <dirent.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Call @each with every descriptor of this process until it returns true. */
static void each_fd(bool (*each)(int fd, const void *ctx), const void *ctx)
{
	DIR *fds = opendir("/proc/self/fd");
	struct dirent *entry;
	bool found = false;

	while (fds && !found && (entry = readdir(fds)))
		/* "." and ".." would be 0. */
		found = entry->d_name[0] != '.' && each(atoi(entry->d_name), ctx);
	if (fds)
		closedir(fds);
}

/* 0: @at is no address of TCP. */
static in_port_t port_of(const struct sockaddr_storage *at)
{
	if (at->ss_family == AF_INET)
		return ((const struct sockaddr_in *)at)->sin_port;
	if (at->ss_family == AF_INET6)
		return ((const struct sockaddr_in6 *)at)->sin6_port;
	return 0;
}

/* Also one that is over. */
static bool is_connection(int fd)
{
	socklen_t bytes = sizeof(int);
	int type = 0, listens = 1;

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) && type == SOCK_STREAM &&
	       !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) && !listens;
}

static bool close_at_port(int fd, const void *port)
{
	struct sockaddr_storage here = { 0 };
	socklen_t bytes = sizeof(here);

	if (!getsockname(fd, (struct sockaddr *)&here, &bytes) &&
	    port_of(&here) == *(const in_port_t *)port && is_connection(fd))
		(void)close(fd);
	return false;
}

void wf_sock_close_orphans(const void *address, size_t bytes)
{
	struct sockaddr_storage at = { 0 };
	in_port_t port;

	if (bytes > sizeof(at))
		return;
	memcpy(&at, address, bytes);
	port = port_of(&at);
	if (port)
		each_fd(close_at_port, &port);
}

struct ends {
	const void *here, *there;
	size_t bytes;
};

static bool shut_between(int fd, const void *ctx)
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
