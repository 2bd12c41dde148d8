/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Input: an address of a node, as users and peers give it.  The host and port
 * of one that is accepted make an address with the same host and port.
 */
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "link/socket.h"

#define HOST_BYTES 64 /* shorter than inputs may be */

static void check(const char *host, uint16_t port)
{
	char again[HOST_BYTES + 16], host_again[HOST_BYTES];
	struct wf_error e = { 0 };
	uint16_t port_again;

	must(strlen(host) < HOST_BYTES && host[0]);
	snprintf(again, sizeof(again),
		 host[0] == '[' || strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
	must(!wf_socket_split(again, host_again, sizeof(host_again), &port_again, &e));
	must(!strcmp(host_again, host) && port_again == port);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	char *text = fuzz_text(bytes, count), host[HOST_BYTES];
	struct wf_error e = { 0 };
	uint16_t port;

	if (wf_socket_split(text, host, sizeof(host), &port, &e))
		must(e.code == -EINVAL && e.text[0]);
	else
		check(host, port);
	free(text);
	return 0;
}

size_t fuzz_seed(unsigned index, uint8_t *bytes)
{
	static const char *const texts[] = { "worker-3.example:7000", "[::1]:65535", "10.0.0.1:0", NULL };

	return fuzz_seed_of(texts, index, bytes);
}
