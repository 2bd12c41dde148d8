/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/orphans.h"
#include "fabric/internal.h"
#include "fabric/sock.h"
#include "util/clock.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUSPECTS_MANY (WF_ORPHANS_MOST / 2) /* suspects that lead to a look at once */

/* A request comes with its connection; lost bytes are sent again within seconds. */
#define SILENT_MS 5000

/* A connection with bytes to read has longer: a provider reads them at its next turn, or never. */
#define UNREAD_MS 30000

/* A provider that still knows an orphan has closed it after this time. */
#define FORGOTTEN_NS (2 * WF_NS_PER_S)

/* A look that took some time is followed by so many times as long without one. */
#define PAUSE_FACTOR 16

/* A look at the process's sockets: known ends, and connections found. */
struct look {
	struct wf_rail *rail;
	uint64_t now_ns;
	struct wf_sock_end *known; /* the other ends of connections that have an owner, sorted */
	size_t known_count;
	struct wf_sock *found;
	size_t found_count, found_size;
	/* Orphans of rail->conns.orphans.shut that are still there. */
	struct wf_orphan again[WF_ORPHANS_SHUT_MAX];
	uint32_t again_count;
	bool failed; /* memory ran out */
};

static bool one_is_there(const struct wf_sock *sock, void *ctx)
{
	(void)sock;
	*(bool *)ctx = true;
	return true;
}

void wf_orphans_open(struct wf_rail *rail)
{
	bool any = false;

	rail->conns.orphans = (struct wf_orphans){ .listener = -1 };
	if (!wf_provider_has(rail->row, WF_QUIRK_ORPHANS, fi_version()))
		return;
	wf_sock_each(rail->self.address, rail->self.address_bytes, one_is_there, &any);
	rail->conns.orphans.open = !any;
	rail->conns.orphans.listener = wf_sock_listener(rail->self.address,
							rail->self.address_bytes);
}

uint32_t wf_orphans_waiting(const struct wf_rail *rail)
{
	return rail->conns.orphans.open ? wf_sock_waiting(rail->conns.orphans.listener) : 0;
}

static int compare_ends(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct wf_sock_end));
}

static size_t count_owned(const struct wf_rail *rail)
{
	size_t count = 0;

	WF_LIST_EACH(node, &rail->eps)
		count++;
	WF_LIST_EACH(node, &rail->conns.requests)
		count++;
	return count;
}

/* List the other ends of all connections that endpoints and requests of the rail have. */
static int list_known(struct look *look)
{
	struct wf_rail *rail = look->rail;
	size_t most = count_owned(rail);

	look->known = calloc(most + 1, sizeof(*look->known));
	if (!look->known)
		return -ENOMEM;
	WF_LIST_EACH(node, &rail->eps) {
		struct wf_ep *ep = WF_CONTAINER(node, struct wf_ep, node);
		uint8_t peer[WF_ADDRESS_BYTES];
		size_t bytes = sizeof(peer);

		/* A connection that was reset has no other end any more, for a look either. */
		if (!WF_RAIL_CALL(rail, fi_getpeer, ep->fid, peer, &bytes) &&
		    wf_sock_end(peer, bytes, &look->known[look->known_count]))
			look->known_count++;
	}
	WF_LIST_EACH(node, &rail->conns.requests) {
		const struct fi_info *info =
			WF_CONTAINER(node, struct wf_rail_request, node)->info;

		if (wf_sock_end(info->dest_addr, info->dest_addrlen,
				&look->known[look->known_count]))
			look->known_count++;
	}
	qsort(look->known, look->known_count, sizeof(*look->known), compare_ends);
	return 0;
}

static const struct wf_orphan *find_shut(const struct wf_orphans *orphans, uint64_t inode)
{
	for (uint32_t i = 0; i < orphans->shut_count; i++)
		if (orphans->shut[i].inode == inode)
			return &orphans->shut[i];
	return NULL;
}

/* See an orphan that is still there after its shutdown: in time, the provider has forgotten it. */
static void see_shut(struct look *look, const struct wf_orphan *shut, int fd)
{
	if (look->now_ns - shut->shut_ns >= FORGOTTEN_NS)
		(void)close(fd);
	else
		look->again[look->again_count++] = *shut;
}

static bool see(const struct wf_sock *sock, void *ctx)
{
	struct look *look = ctx;
	const struct wf_orphan *shut = find_shut(&look->rail->conns.orphans, sock->inode);
	struct wf_sock *more;

	if (shut) {
		see_shut(look, shut, sock->fd);
		return false;
	}
	if (!sock->connected || (sock->unread && sock->idle_ms < UNREAD_MS) ||
	    bsearch(&sock->there, look->known, look->known_count, sizeof(*look->known),
		    compare_ends))
		return false;
	if (look->found_count == look->found_size) {
		more = realloc(look->found, (look->found_size * 2 + 64) * sizeof(*more));
		if (!more) {
			look->failed = true;
			return true;
		}
		look->found = more;
		look->found_size = look->found_size * 2 + 64;
	}
	look->found[look->found_count++] = *sock;
	return false;
}

/* Order connections by silence, the longest first. */
static int compare_silence(const void *a, const void *b)
{
	const struct wf_sock *one = a, *other = b;

	return (one->idle_ms < other->idle_ms) - (one->idle_ms > other->idle_ms);
}

static void shut_the_oldest(struct look *look)
{
	struct wf_orphans *orphans = &look->rail->conns.orphans;
	size_t i;

	if (look->found_count)
		qsort(look->found, look->found_count, sizeof(*look->found), compare_silence);
	memcpy(orphans->shut, look->again, look->again_count * sizeof(look->again[0]));
	orphans->shut_count = look->again_count;
	for (i = 0; i < look->found_count && orphans->shut_count < WF_COUNT(orphans->shut); i++) {
		if (look->found[i].idle_ms < SILENT_MS &&
		    look->found_count - i <= WF_ORPHANS_MOST)
			break;
		if (!wf_sock_shut_fd(look->found[i].fd))
			orphans->shut[orphans->shut_count++] = (struct wf_orphan){
				look->found[i].inode, look->now_ns,
			};
	}
}

void wf_orphans_look(struct wf_rail *rail)
{
	struct wf_orphans *orphans = &rail->conns.orphans;
	struct look look = { .rail = rail, .now_ns = wf_clock_now() };

	if (!orphans->open || look.now_ns < orphans->not_before_ns)
		return;
	if (!list_known(&look)) {
		wf_sock_each(rail->self.address, rail->self.address_bytes, see, &look);
		if (!look.failed) {
			shut_the_oldest(&look);
			orphans->suspects = 0;
			orphans->left = (uint32_t)look.found_count + look.again_count;
		}
	}
	free(look.found);
	free(look.known);
	orphans->not_before_ns = look.now_ns + PAUSE_FACTOR * (wf_clock_now() - look.now_ns);
}

void wf_orphans_suspect(struct wf_rail *rail, uint32_t count)
{
	rail->conns.orphans.suspects += count;
	if (rail->conns.orphans.suspects >= SUSPECTS_MANY)
		wf_orphans_look(rail);
}

bool wf_orphans_expected(const struct wf_rail *rail)
{
	const struct wf_orphans *orphans = &rail->conns.orphans;

	return orphans->open && (orphans->suspects || orphans->left);
}
