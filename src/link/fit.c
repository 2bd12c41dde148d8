/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/fit.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "fabric/select.h"

#define FRAME_BYTES_MIN 512 /* smaller frames would be all headers; no provider's are so small */

/*
 * Are both rails of one protocol?  Shared memory has no version of its own: same libfabric, or it
 * hangs.
 */
static bool same_protocol(const struct wf_rail_caps *caps, const struct wf_greet_rail *r)
{
	return caps->protocol == r->protocol && caps->protocol_version == r->protocol_version &&
	       caps->connected == r->connected &&
	       (!caps->same_host || caps->libfabric == r->libfabric);
}

int wf_fit_check(const struct wf_link *link, const struct wf_rail_caps *caps,
		 const struct wf_greet_rail *rail, struct wf_error *e)
{
	char mine[WF_SELECT_VERSION_BYTES], theirs[WF_SELECT_VERSION_BYTES];

	if (strcmp(caps->provider, rail->provider))
		return wf_error_set(e, -EPROTONOSUPPORT, "%s here is %s there", caps->provider,
				    rail->provider);
	if (!same_protocol(caps, rail)) {
		wf_select_version(caps->libfabric, mine);
		wf_select_version(rail->libfabric, theirs);
		return wf_error_set(e, -EPROTONOSUPPORT,
				    "%s of libfabric %s here and of %s there don't understand "
				    "each other", caps->provider, mine, theirs);
	}
	if (rail->frame_bytes < FRAME_BYTES_MIN)
		return wf_error_set(e, -EPROTONOSUPPORT, "%s there takes frames of %u bytes only",
				    caps->provider, rail->frame_bytes);
	if (caps->same_host && !link->side.gate_open)
		return wf_error_set(e, -EHOSTUNREACH, "%s", link->dial.gate_text);
	if (caps->host.between_processes && link->side.within_process)
		return wf_error_set(e, -EHOSTUNREACH,
				    "%s serves between processes only, and the peer is in this one",
				    caps->provider);
	return 0;
}

/* Returns the bytes of the IP address in a socket's @address; NULL: there is none. */
static const uint8_t *ip_of(const uint8_t *address, size_t address_bytes, size_t *ip_bytes)
{
	sa_family_t family;

	if (address_bytes < sizeof(struct sockaddr_in))
		return NULL;
	memcpy(&family, address + offsetof(struct sockaddr, sa_family), sizeof(family));
	*ip_bytes = family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);
	if (family == AF_INET)
		return address + offsetof(struct sockaddr_in, sin_addr);
	if (family == AF_INET6 && address_bytes >= sizeof(struct sockaddr_in6))
		return address + offsetof(struct sockaddr_in6, sin6_addr);
	return NULL;
}

unsigned wf_fit_nearness(const struct wf_link *link, uint32_t mine, uint32_t theirs)
{
	const struct wf_greet_rail *r = &link->peer->rails[theirs];
	uint8_t address[WF_ADDRESS_BYTES];
	size_t address_bytes = wf_rail_address(link->engine->rails[mine].rail, address);
	size_t a_bytes = 0, b_bytes = 0;
	const uint8_t *a = ip_of(address, address_bytes, &a_bytes);
	const uint8_t *b = ip_of(r->address, r->address_bytes, &b_bytes);
	unsigned bits = 0;

	if (!a || !b || a_bytes != b_bytes)
		return 0;
	while (bits < 8 * a_bytes && !((a[bits / 8] ^ b[bits / 8]) & 0x80 >> bits % 8))
		bits++;
	return bits;
}

static const struct wf_rail_caps *find_rail(const struct wf_engine *engine, const char *provider)
{
	for (uint32_t i = 0; i < engine->rail_count; i++) {
		const struct wf_rail_caps *caps = wf_rail_caps(engine->rails[i].rail);

		if (!strcasecmp(caps->provider, provider))
			return caps;
	}
	return NULL;
}

/* Does our list have @first before @second? */
static bool comes_before(const struct wf_engine *engine, const struct wf_rail_caps *first,
			 const struct wf_rail_caps *second)
{
	for (uint32_t i = 0; i < engine->rail_count; i++) {
		const struct wf_rail_caps *caps = wf_rail_caps(engine->rails[i].rail);

		if (caps == first || caps == second)
			return caps == first && first != second;
	}
	return false;
}

static const struct wf_greet_rail *peer_rail(const struct wf_link *link, const char *provider)
{
	for (uint32_t i = 0; i < link->peer->rail_count; i++)
		if (!strcasecmp(link->peer->rails[i].provider, provider))
			return &link->peer->rails[i];
	return NULL;
}

/* Could the peer have @caps, as far as host and process go? */
static bool may_reach(const struct wf_link *link, const struct wf_rail_caps *caps)
{
	return (!caps->same_host || link->side.beside) &&
	       (!caps->host.between_processes || !link->side.within_process);
}

const struct wf_rail_caps *wf_fit_better(const struct wf_link *link,
					 const struct wf_rail_caps *caps)
{
	const struct wf_engine *engine = link->engine;

	for (uint32_t i = 0; i < engine->rail_count; i++) {
		const struct wf_rail_caps *better = wf_rail_caps(engine->rails[i].rail);

		if (!strcmp(better->provider, caps->provider))
			return NULL;
		if (peer_rail(link, better->provider) && may_reach(link, better))
			return better;
	}
	return NULL;
}

void wf_fit_why_not(const struct wf_link *link, const char *provider, char *text, size_t bytes)
{
	const struct wf_rail_caps *mine = find_rail(link->engine, provider);
	const struct wf_greet_rail *theirs = peer_rail(link, provider);
	const struct wf_rail_caps *used = wf_link_caps(link);
	struct wf_error unfit;
	const char *why = "the node that dialled has taken another";

	if (!mine)
		why = "this node has no such rail";
	else if (!theirs)
		why = "the peer has no such rail";
	else if (wf_fit_check(link, mine, theirs, &unfit))
		why = unfit.text;
	else if (used && comes_before(link->engine, used, mine))
		why = "a better one works";
	else if (link->probe.tried[0])
		why = link->probe.tried;
	snprintf(text, bytes, "%s", why);
}
