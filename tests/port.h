/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports for tests that say before where they will listen. */
#ifndef WF_TEST_PORT_H
#define WF_TEST_PORT_H

#include <arpa/inet.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT_FIRST 10000 /* below 32768, where Linux begins with those for whoever asks for any */
#define PORTS 22000

/*
 * A port of @host, an IPv4 address, that nobody has just now; another each time.  0: there is
 * none.  Threads: one at a time.
 */
static inline unsigned short port_free(const char *host)
{
	static unsigned tries;
	struct sockaddr_in at = { .sin_family = AF_INET };
	unsigned short found = 0;

	if (inet_pton(AF_INET, host, &at.sin_addr) != 1)
		return 0;
	while (!found && tries < PORTS) {
		unsigned port = PORT_FIRST + ((unsigned)getpid() * 61 + tries++) % PORTS;
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		at.sin_port = htons((uint16_t)port);
		if (fd >= 0 && !bind(fd, (struct sockaddr *)&at, sizeof(at)))
			found = (unsigned short)port;
		if (fd >= 0)
			(void)close(fd);
	}
	return found;
}

#endif
