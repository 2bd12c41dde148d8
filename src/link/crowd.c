/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/crowd.h"

#include <arpa/inet.h>
#include <string.h>

#include "link/socket.h"
#include "util/clock.h"
#include "util/random.h"
#include "util/siphash.h"

#define NETWORK_BYTES 8 /* bytes of an IPv6 network: its owner has all addresses in it */
#define PAUSE_NS (WF_NS_PER_S / WF_CROWD_PER_SECOND)

void wf_crowd_init(struct wf_crowd *c)
{
	*c = (struct wf_crowd){ .key = { wf_random_u64(), wf_random_u64() } };
	for (uint32_t i = 0; i < WF_CROWD_SOURCES; i++)
		c->sources[i].credit = WF_CROWD_BURST;
}

/*
 * Get the host part of @from, in its shortest form; "": there is none.  A socket of both families
 * has the hosts of IPv4 in one network of IPv6.  An address of one cable is followed by the name of
 * the interface, which is no part of it: "fe80::1%eth0".
 */
static void host_of(const char *from, char host[WF_SOCKET_ADDRESS_BYTES])
{
	static const char mapped[] = "::ffff:";
	size_t bytes = sizeof(mapped) - 1;
	uint16_t port;

	if (wf_socket_split(from, host, WF_SOCKET_ADDRESS_BYTES, &port, NULL))
		host[0] = '\0';
	host[strcspn(host, "%")] = '\0';
	if (!strncmp(host, mapped, bytes) && strchr(host, '.'))
		memmove(host, host + bytes, strlen(host + bytes) + 1);
}

uint32_t wf_crowd_source(const struct wf_crowd *c, const char *from)
{
	uint8_t value[WF_SIPHASH_BYTES], address[sizeof(struct in6_addr)];
	char host[WF_SOCKET_ADDRESS_BYTES];
	struct wf_siphash s;

	host_of(from, host);
	wf_siphash_begin(&s, c->key[0], c->key[1]);
	if (inet_pton(AF_INET6, host, address) == 1)
		wf_siphash_add(&s, address, NETWORK_BYTES);
	else
		wf_siphash_add(&s, host, strlen(host));
	wf_siphash_end(&s, value);
	return (uint32_t)(value[0] | value[1] << 8) % WF_CROWD_SOURCES;
}

static bool is_loopback(const char *from)
{
	char host[WF_SOCKET_ADDRESS_BYTES];

	host_of(from, host);
	return wf_socket_is_loopback(host);
}

bool wf_crowd_admits(struct wf_crowd *c, uint32_t source, const char *from, uint64_t now_ns)
{
	uint64_t earned = (now_ns - c->sources[source].filled_ns) / PAUSE_NS;
	uint32_t *credit = &c->sources[source].credit;

	if (is_loopback(from))
		return true;
	if (*credit + earned >= WF_CROWD_BURST) {
		*credit = WF_CROWD_BURST;
		c->sources[source].filled_ns = now_ns;
	} else {
		*credit += (uint32_t)earned;
		c->sources[source].filled_ns += earned * PAUSE_NS;
	}
	if (!*credit)
		return false;
	--*credit;
	return true;
}
