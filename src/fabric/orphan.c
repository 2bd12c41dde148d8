/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/orphan.h"

#include <dirent.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* 0: @at is no address of TCP. */
static in_port_t port_of(const struct sockaddr_storage *at)
{
	if (at->ss_family == AF_INET)
		return ((const struct sockaddr_in *)at)->sin_port;
	if (at->ss_family == AF_INET6)
		return ((const struct sockaddr_in6 *)at)->sin6_port;
	return 0;
}

/* Is @fd a connection, be it one that is over, with @port at our end? */
static bool is_connection_at(int fd, in_port_t port)
{
	struct sockaddr_storage here = { 0 };
	socklen_t here_bytes = sizeof(here), int_bytes = sizeof(int);
	int type = 0, listens = 1;

	return !getsockname(fd, (struct sockaddr *)&here, &here_bytes) &&
	       port_of(&here) == port &&
	       !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &int_bytes) && type == SOCK_STREAM &&
	       !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &int_bytes) && !listens;
}

void wf_orphans_close(const void *address, size_t bytes)
{
	struct sockaddr_storage at = { 0 };
	struct dirent *entry;
	in_port_t port;
	DIR *fds;

	if (bytes > sizeof(at))
		return;
	memcpy(&at, address, bytes);
	port = port_of(&at);
	fds = port ? opendir("/proc/self/fd") : NULL;
	while (fds && (entry = readdir(fds))) {
		int fd = atoi(entry->d_name);

		/* "." and ".." would be 0. */
		if (entry->d_name[0] != '.' && is_connection_at(fd, port))
			(void)close(fd);
	}
	if (fds)
		closedir(fds);
}
