/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/devshm.h"
#include "fabric/internal.h"
#include "fabric/signals.h"
#include "fabric/sock.h"
#include "util/bytes.h"
#include "util/clock.h"
#include "util/random.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Polls between two looks while there is no sign of news: a look at the event queue costs a
 * system call, and a look behind the gate keeps senders out.
 */
#define LOOK_POLLS 64

#define EQ_ENTRIES 256

#define TAKE_IN_MAX 64 /* silent connections that one look takes in; not tuned */

/* A process inside our endpoint for so long is kept from running there; not tuned. */
#define STUCK_NS (250 * WF_NS_PER_MS)

/* Limit of the wait for operations on an endpoint that must not be closed under them. */
#define SETTLE_NS (1 * WF_NS_PER_S)

/* Posts on one rail: slots, and a window of frames and reads for each of thousands of peers. */
#define POSTS_MAX ((uint32_t)1 << 24)

static int fail(const struct wf_rail *rail, int err, const char *what, struct wf_error *e)
{
	return wf_error_set(e, err, "%s on %s: %s: %s", rail->caps.provider, rail->caps.domain,
			    what, wf_error_name(err));
}

static void set_port(struct fi_info *info, uint16_t port)
{
	struct sockaddr *a = info->src_addr;

	if (a && a->sa_family == AF_INET)
		((struct sockaddr_in *)(void *)a)->sin_port = htons(port);
	else if (a && a->sa_family == AF_INET6)
		((struct sockaddr_in6 *)(void *)a)->sin6_port = htons(port);
}

static bool is_wildcard(const char *host)
{
	return !*host || !strcmp(host, "0.0.0.0") || !strcmp(host, "::");
}

static int ask(const struct wf_rail *rail, const char *node, const char *service,
	       struct fi_info **info)
{
	bool device = rail->candidate->caps & FI_HMEM;
	struct fi_info *hints = wf_select_hints(rail->row->shape, device);
	struct fi_info *list = NULL, **at, *found;
	int err;

	if (!hints)
		return -ENOMEM;
	hints->fabric_attr->prov_name = strdup(rail->caps.provider);
	hints->domain_attr->name = strdup(rail->caps.domain);
	err = WF_RAIL_CALL(rail, fi_getinfo, wf_select_api(device), node, service, FI_SOURCE,
			   hints, &list);
	fi_freeinfo(hints);
	if (err)
		return err;
	/* libfabric matches the beginning of a name only. */
	for (at = &list; *at; at = &(*at)->next)
		if (!strcmp((*at)->fabric_attr->prov_name, rail->caps.provider) &&
		    !strcmp((*at)->domain_attr->name, rail->caps.domain))
			break;
	found = *at;
	if (found) {
		*at = found->next;
		found->next = NULL;
	}
	fi_freeinfo(list);
	*info = found;
	return found ? 0 : -FI_ENODATA;
}

/* The info to open with: bound to our host and @port, or to a name that nobody else has. */
static int source_info(const struct wf_rail *rail, uint16_t port, struct fi_info **info)
{
	char service[40];
	int err = -FI_ENODATA;

	if (wf_provider_has(rail->row, WF_QUIRK_UNIQUE_NAME, fi_version())) {
		snprintf(service, sizeof(service), "weft-%016" PRIx64, wf_random_u64());
		return ask(rail, NULL, service, info);
	}
	if (rail->row->by_ip && !is_wildcard(rail->bind.host)) {
		snprintf(service, sizeof(service), "%u", port);
		err = ask(rail, rail->bind.host, service, info);
	}
	if (err != -FI_ENODATA)
		return err;
	/* The adapter has an address of its own: take that. */
	*info = fi_dupinfo(rail->candidate);
	if (!*info)
		return -ENOMEM;
	if (rail->row->by_ip)
		set_port(*info, port);
	return 0;
}

static int name_of(struct wf_rail *rail, struct fid *fid)
{
	size_t bytes = sizeof(rail->self.address);
	int err = fi_getname(fid, rail->self.address, &bytes);

	if (err)
		return err;
	rail->self.address_bytes = bytes;
	return 0;
}

bool wf_rail_find_file(const uint8_t *address, size_t address_bytes,
		       char name[WF_ADDRESS_BYTES + 1])
{
	char path[WF_ADDRESS_BYTES + sizeof("/dev/shm/")];
	const char *at;

	snprintf(name, WF_ADDRESS_BYTES + 1, "%.*s", (int)address_bytes, (const char *)address);
	at = strstr(name, "://");
	if (at)
		memmove(name, at + 3, strlen(at + 3) + 1);
	snprintf(path, sizeof(path), "/dev/shm/%s", name);
	return *name && !access(path, F_OK);
}

/* Find the provider's region by the name of the endpoint, if there is such a file. */
static void find_files(struct wf_rail *rail)
{
	char name[WF_ADDRESS_BYTES + 1];

	rail->self.files[0] = 0;
	if (rail->caps.host.leaves_files &&
	    wf_rail_find_file(rail->self.address, rail->self.address_bytes, name))
		snprintf(rail->self.files, sizeof(rail->self.files), "%s", name);
}

/* Open the passive endpoint of a connected rail, at @port. */
static int listen_at(struct wf_rail *rail, uint16_t port)
{
	int err;

	err = source_info(rail, port, &rail->info);
	if (err)
		return err;
	if (!rail->fabric) {
		err = WF_RAIL_CALL(rail, fi_fabric, rail->info->fabric_attr, &rail->fabric, NULL);
		if (err)
			goto free_info;
	}
	err = WF_RAIL_CALL(rail, fi_passive_ep, rail->fabric, rail->info, &rail->conns.pep, NULL);
	if (err)
		goto free_info;
	if (!rail->conns.eq) {
		struct fi_eq_attr attr = {
			.size = EQ_ENTRIES,
			.wait_obj = rail->wait.epoll < 0 ? FI_WAIT_NONE : FI_WAIT_FD,
		};

		err = WF_RAIL_CALL(rail, fi_eq_open, rail->fabric, &attr, &rail->conns.eq, NULL);
		if (err)
			goto close_pep;
	}
	err = WF_RAIL_CALL(rail, fi_pep_bind, rail->conns.pep, &rail->conns.eq->fid, 0);
	if (!err)
		err = WF_RAIL_CALL(rail, fi_listen, rail->conns.pep);
	if (!err)
		err = name_of(rail, &rail->conns.pep->fid);
	if (err)
		goto close_pep;
	return 0;

close_pep:
	WF_RAIL_CALL(rail, fi_close, &rail->conns.pep->fid);
	rail->conns.pep = NULL;
free_info:
	fi_freeinfo(rail->info);
	rail->info = NULL;
	return err;
}

static void close_endpoint(struct wf_rail *rail)
{
	if (rail->shared.ep)
		WF_RAIL_CALL(rail, fi_close, &rail->shared.ep->fid);
	wf_cq_close(rail, &rail->queues.cq);
	if (rail->shared.av)
		WF_RAIL_CALL(rail, fi_close, &rail->shared.av->fid);
	rail->shared.ep = NULL;
	rail->shared.av = NULL;
	/* A closed endpoint is not stuck: one that can't be opened is tried again after a pause. */
	rail->shared.shut_ns = 0;
	rail->shared.shut_for_ns = 0;
	wf_half_met_forget(&rail->shared.half_met);
}

/* Open a new gate for each endpoint: a process may have stayed in the old one. */
static int open_gate(struct wf_rail *rail, struct wf_error *e)
{
	int err;

	wf_gate_close(&rail->shared.gate);
	rail->shared.shut_ns = 0;
	rail->shared.shut_for_ns = 0;
	if (!wf_provider_has(rail->row, WF_QUIRK_SHARED_LOCK, fi_version()))
		return 0;
	err = wf_gate_open(&rail->shared.gate);
	return err ? fail(rail, err, "no gate", e) : 0;
}

/* Open the endpoint of a shared rail, with its vector and queue. */
static int open_endpoint(struct wf_rail *rail, struct wf_error *e)
{
	struct fi_av_attr av = {
		.type = FI_AV_TABLE,
		.count = rail->caps.peers_max == UINT32_MAX ? 0 : rail->caps.peers_max,
	};
	int err = wf_devshm_check(rail->row->devshm_bytes, e);

	if (!err)
		err = open_gate(rail, e);
	if (err)
		return err;
	err = WF_RAIL_CALL(rail, fi_av_open, rail->domain, &av, &rail->shared.av, NULL);
	if (err)
		return fail(rail, err, "no address vector", e);
	err = wf_cq_open(rail, NULL, &rail->queues.cq, e);
	if (err)
		goto close_all;
	err = WF_RAIL_CALL(rail, fi_endpoint, rail->domain, rail->info, &rail->shared.ep, NULL);
	if (!err)
		err = WF_RAIL_CALL(rail, fi_ep_bind, rail->shared.ep, &rail->queues.cq.fid->fid,
				   FI_TRANSMIT | FI_RECV);
	if (!err)
		err = WF_RAIL_CALL(rail, fi_ep_bind, rail->shared.ep, &rail->shared.av->fid, 0);
	if (!err)
		err = WF_RAIL_CALL(rail, fi_enable, rail->shared.ep);
	if (!err)
		err = name_of(rail, &rail->shared.ep->fid);
	if (err) {
		fail(rail, err, "no endpoint", e);
		goto close_all;
	}
	find_files(rail);
	err = rail->self.files[0] ? wf_devshm_fill(rail->self.files, e) : 0;
	if (err)
		goto close_all;
	rail->shared.life++;
	rail->shared.peers_count = 0;
	return 0;

close_all:
	close_endpoint(rail);
	return err;
}

static int open_endpoint_at(struct wf_rail *rail, uint16_t port, struct wf_error *e)
{
	struct fi_info *info;
	int err;

	err = source_info(rail, port, &info);
	if (err)
		return fail(rail, err, "no address to bind", e);
	fi_freeinfo(rail->info);
	rail->info = info;
	if (!rail->fabric) {
		err = WF_RAIL_CALL(rail, fi_fabric, info->fabric_attr, &rail->fabric, NULL);
		if (err)
			return fail(rail, err, "no fabric", e);
		err = WF_RAIL_CALL(rail, fi_domain, rail->fabric, info, &rail->domain, NULL);
		if (err)
			return fail(rail, err, "no domain", e);
	}
	return open_endpoint(rail, e);
}

/* Try each port of the range that was given. */
static int bind_somewhere(struct wf_rail *rail, struct wf_error *e)
{
	uint32_t port = rail->bind.port_first;
	int err;

	do {
		err = rail->caps.connected ? listen_at(rail, (uint16_t)port) :
					     open_endpoint_at(rail, (uint16_t)port, e);
	} while (err == -EADDRINUSE && ++port <= rail->bind.port_last);
	if (err == -EADDRINUSE)
		return wf_error_set(e, err, "%s on %s: every port from %u to %u is in use",
				    rail->caps.provider, rail->caps.domain, rail->bind.port_first,
				    rail->bind.port_last);
	return err && rail->caps.connected ? fail(rail, err, "cannot listen", e) : err;
}

static int open_connected(struct wf_rail *rail, uint32_t slots, struct wf_error *e)
{
	int err;

	err = bind_somewhere(rail, e);
	if (err)
		return err;
	err = WF_RAIL_CALL(rail, fi_domain, rail->fabric, rail->info, &rail->domain, NULL);
	if (err)
		return fail(rail, err, "no domain", e);
	wf_orphans_open(rail);
	err = wf_wait_add_eq(rail, e);
	if (err)
		return err;
	err = WF_RAIL_CALL(rail, fi_srx_context, rail->domain, rail->info->rx_attr,
			   &rail->conns.srx, NULL);
	if (err)
		return fail(rail, err, "no shared receive context", e);
	err = wf_slots_open(rail, slots, e);
	if (err)
		return err;
	if (!wf_provider_has(rail->row, WF_QUIRK_CQ_PER_EP, fi_version())) {
		err = wf_cq_open(rail, NULL, &rail->queues.cq, e);
		if (err)
			return err;
	}
	return wf_slots_grow(rail, WF_SLOTS_STEP, e);
}

static int open_shared(struct wf_rail *rail, uint32_t slots, struct wf_error *e)
{
	int err;

	rail->slots.most = slots; /* for the size of the queue, which is opened first */
	err = bind_somewhere(rail, e);
	if (err)
		return err;
	err = wf_slots_open(rail, slots, e);
	if (err)
		return err;
	return wf_slots_grow(rail, WF_SLOTS_STEP, e);
}

int wf_rail_open(const struct wf_select_candidate *candidate, const struct wf_rail_config *config,
		 struct wf_rail **rail, struct wf_error *e)
{
	struct wf_rail *r = calloc(1, sizeof(*r));
	size_t slots = config->slots_count;
	int err;

	if (!r)
		return wf_error_set(e, -ENOMEM, "no memory for a rail");
	r->row = candidate->row;
	r->own.reads = wf_provider_has(r->row, WF_QUIRK_READ_LOCKS, fi_version());
	r->caps = candidate->caps;
	if (r->own.reads)
		r->caps.read_spans_max = WF_READ_SPANS_MAX; /* a chunk of 1 MiB in blocks of 64 KiB */
	r->caps.names = wf_names_of(r->caps.provider, r->caps.domain);
	r->counters = config->counters ? config->counters : &r->unread;
	r->recorder = config->recorder;
	r->own.wake = config->wake;
	r->own.wake_ctx = config->wake_ctx;
	r->make_room = config->make_room;
	r->make_room_ctx = config->make_room_ctx;
	r->bind.port_first = config->port_first;
	r->bind.port_last = WF_MAX(config->port_last, config->port_first);
	snprintf(r->bind.host, sizeof(r->bind.host), "%s", config->host ? config->host : "");
	wf_list_init(&r->queues.all);
	wf_list_init(&r->queues.warm);
	wf_list_init(&r->queues.cq.node);
	wf_list_init(&r->queues.cq.warm_node);
	wf_list_init(&r->spare);
	wf_list_init(&r->notices);
	wf_list_init(&r->delayed);
	wf_list_init(&r->eps);
	wf_list_init(&r->closed);
	wf_list_init(&r->shared.half_met.all);
	wf_list_init(&r->conns.requests);
	wf_list_init(&r->mrs);
	wf_list_init(&r->slots.refused);
	wf_table_init(&r->posts, POSTS_MAX);
	err = wf_wait_open(r, e);
	if (err)
		goto close_rail;
	if (!r->caps.names) {
		err = wf_error_set(e, -ENOSPC, "%s: too many names of providers and devices",
				   r->caps.provider);
		goto close_rail;
	}
	r->candidate = fi_dupinfo(candidate->info);
	slots = WF_MIN(slots, candidate->info->rx_attr->size);
	if (!r->candidate || !slots) {
		err = wf_error_set(e, slots ? -ENOMEM : -EINVAL, "%s: a rail needs %s",
				   r->caps.provider, slots ? "memory" : "receive slots");
		goto close_rail;
	}
	wf_signals_save();
	err = r->caps.connected ? open_connected(r, (uint32_t)slots, e) :
				  open_shared(r, (uint32_t)slots, e);
	wf_signals_restore();
	if (err)
		goto close_rail;
	*rail = r;
	return 0;

close_rail:
	wf_rail_close(r);
	return err;
}

static void free_closed(struct wf_rail *rail)
{
	struct wf_list *node;

	while ((node = wf_list_pop(&rail->closed)))
		free(WF_CONTAINER(node, struct wf_ep, node));
}

/* Wait for our own operations, but not for ever, where closing under traffic crashes. */
static bool settled(struct wf_rail *rail)
{
	uint64_t until = wf_clock_now() + SETTLE_NS;

	if (!rail->shared.ep || !wf_provider_has(rail->row, WF_QUIRK_NEVER_CLOSE, fi_version()))
		return true;
	do {
		struct wf_rail_event events[16];

		while (wf_rail_poll(rail, events, WF_COUNT(events)))
			;
	} while (rail->busy && wf_clock_now() < until);
	return !rail->busy;
}

void wf_rail_stop(struct wf_rail *rail)
{
	struct wf_list *node;

	if (!settled(rail))
		return; /* the rail leaks on purpose: closing it would crash */
	/* A request that nobody has read yet has a connection, which only a reject closes. */
	if (rail->conns.eq)
		wf_eq_drain(rail);
	while ((node = wf_list_first(&rail->conns.requests)))
		wf_ep_reject(rail, WF_CONTAINER(node, struct wf_rail_request, node));
	while ((node = wf_list_first(&rail->eps)))
		wf_ep_close(WF_CONTAINER(node, struct wf_ep, node));
	/* Draining the event queue may have brought new requests. */
	while ((node = wf_list_first(&rail->conns.requests)))
		wf_ep_reject(rail, WF_CONTAINER(node, struct wf_rail_request, node));
	free_closed(rail);
	close_endpoint(rail);
}

void wf_rail_close(struct wf_rail *rail)
{
	struct wf_list *node;

	if (!rail)
		return;
	wf_rail_stop(rail);
	if (rail->shared.ep)
		return; /* the rail could not be stopped */
	wf_copy_thread_close(rail->own.helper);
	if (rail->conns.srx)
		WF_RAIL_CALL(rail, fi_close, &rail->conns.srx->fid);
	if (rail->conns.pep && wf_provider_has(rail->row, WF_QUIRK_HALF_OPEN, fi_version()))
		wf_sock_close_orphans(rail->self.address, rail->self.address_bytes);
	if (rail->conns.pep)
		WF_RAIL_CALL(rail, fi_close, &rail->conns.pep->fid);
	wf_slots_close(rail);
	while ((node = wf_list_first(&rail->mrs)))
		wf_mr_close(WF_CONTAINER(node, struct wf_mr, node));
	if (rail->domain)
		WF_RAIL_CALL(rail, fi_close, &rail->domain->fid);
	if (rail->conns.eq)
		WF_RAIL_CALL(rail, fi_close, &rail->conns.eq->fid);
	if (rail->fabric)
		WF_RAIL_CALL(rail, fi_close, &rail->fabric->fid);
	wf_gate_close(&rail->shared.gate);
	wf_wait_close(rail);
	while ((node = wf_list_pop(&rail->spare)))
		free(WF_CONTAINER(node, struct wf_post, node));
	wf_table_fini(&rail->posts);
	fi_freeinfo(rail->info);
	fi_freeinfo(rail->candidate);
	free(rail);
}

int wf_rail_reopen(struct wf_rail *rail, struct wf_error *e)
{
	int err;

	if (rail->caps.connected)
		return wf_error_set(e, -ENOSYS, "%s is connected: close the endpoint instead",
				    rail->caps.provider);
	if (wf_provider_has(rail->row, WF_QUIRK_NEVER_CLOSE, fi_version()) ||
	    (rail->info->domain_attr->mr_mode & FI_MR_ENDPOINT))
		return wf_error_set(e, -ENOSYS, "%s: its endpoint cannot be replaced",
				    rail->caps.provider);

	/* Operations under way end here: their posts are forgotten, so nobody hears of them. */
	WF_LIST_EACH(node, &rail->eps) {
		struct wf_ep *ep = WF_CONTAINER(node, struct wf_ep, node);

		wf_post_drop_all(ep);
		ep->dead = true;
	}
	wf_signals_save();
	close_endpoint(rail);
	err = bind_somewhere(rail, e);
	wf_signals_restore();
	if (err)
		return err;
	wf_slots_again(rail);
	return 0;
}

const struct wf_rail_caps *wf_rail_caps(const struct wf_rail *rail)
{
	return &rail->caps;
}

uint32_t wf_rail_slots(const struct wf_rail *rail)
{
	return rail->slots.count;
}

uint32_t wf_rail_slots_most(const struct wf_rail *rail)
{
	return rail->slots.most;
}

int wf_rail_grow(struct wf_rail *rail, uint32_t slots_count, struct wf_error *e)
{
	return wf_slots_grow(rail, slots_count, e);
}

size_t wf_rail_address(const struct wf_rail *rail, uint8_t *address)
{
	memcpy(address, rail->self.address, rail->self.address_bytes);
	return rail->self.address_bytes;
}

int wf_rail_gate_fd(const struct wf_rail *rail)
{
	return rail->shared.gate.page ? rail->shared.gate.shared.fd : -1;
}

bool wf_rail_is_stuck(const struct wf_rail *rail)
{
	return rail->shared.half_met.count >= WF_HALF_MET_MAX ||
	       rail->shared.shut_for_ns > STUCK_NS;
}

const char *wf_rail_files(const struct wf_rail *rail)
{
	return rail->self.files;
}

/* End the reads that the helper has made. */
static void hear_helper(struct wf_rail *rail)
{
	struct wf_post *post;
	int status;

	while ((post = wf_copy_thread_ended(rail->own.helper, &status)))
		wf_cq_end(rail, post, status);
}

/* Could the provider have anything to tell? */
static bool may_have_news(const struct wf_rail *rail)
{
	return rail->busy || rail->shared.shut_ns || wf_gate_knocked(&rail->shared.gate);
}

static void look_at_queues(struct wf_rail *rail, bool look)
{
	bool empty = true;

	if (look || rail->queues.cold_count)
		wf_wait_hear(rail);
	WF_LIST_EACH(node, &rail->queues.warm) {
		struct wf_cq *cq = WF_CONTAINER(node, struct wf_cq, warm_node);
		int count = wf_cq_read(rail, cq);

		if (count)
			cq->empty = 0;
		empty &= !count;
		if (!look && count)
			wf_wait_heard(rail, cq, count);
		else if (!look)
			wf_wait_unheard(rail, cq);
	}
	rail->queues.empty = empty && rail->wait.pollfd;
}

/* Make progress on all messages; is there a notice?  @look: read queues without a sign, too. */
static bool progress(struct wf_rail *rail, bool look)
{
	if (rail->own.helper)
		hear_helper(rail);
	wf_list_splice(&rail->notices, &rail->delayed);
	if (!wf_list_empty(&rail->slots.refused))
		wf_slots_retry(rail);
	if (look || may_have_news(rail))
		look_at_queues(rail, look);
	return !wf_list_empty(&rail->notices);
}

/*
 * The event queue had news and no event: the provider has accepted a connection that says nothing
 * yet, and there may be more behind it.
 */
static bool take_in(struct wf_rail *rail)
{
	uint32_t waiting = wf_orphans_waiting(rail), count = 0;
	bool any = false;

	/* With net the event queue rings for messages as well, while no connection waits. */
	while (!any && waiting && count < TAKE_IN_MAX && wf_wait_eq_ready(rail)) {
		count++;
		any = wf_eq_read(rail);
	}
	/* With no descriptor left nothing is accepted, and looking again would not help. */
	rail->wait.eq_rang = any || (count == TAKE_IN_MAX && wf_orphans_waiting(rail) < waiting);
	wf_orphans_suspect(rail, 1 + count);
	return any;
}

/*
 * Make progress on connections, now; is there news?  An event that says nothing to the owner may
 * hide one that does.
 */
static bool progress_connections(struct wf_rail *rail)
{
	bool any = rail->conns.eq && wf_eq_read(rail);

	if (!any && rail->wait.eq_rang)
		any = take_in(rail);
	return any || !wf_list_empty(&rail->notices);
}

bool wf_rail_next(struct wf_rail *rail, struct wf_rail_event *event)
{
	struct wf_list *node = wf_list_pop(&rail->notices);
	struct wf_rail_notice *notice;

	if (!node)
		return false;
	notice = WF_CONTAINER(node, struct wf_rail_notice, node);
	*event = notice->event;
	if (event->kind == WF_EVENT_SENT || event->kind == WF_EVENT_READ)
		wf_post_give(rail, WF_CONTAINER(notice, struct wf_post, notice));
	return true;
}

int wf_rail_poll(struct wf_rail *rail, struct wf_rail_event *events, int max)
{
	bool due = !(++rail->polls % LOOK_POLLS), look = rail->woken || due;
	int n = 0;

	rail->woken = false;
	free_closed(rail);
	progress(rail, look);
	/* Before a sleep that queue is read anyhow. */
	if (due || rail->conns.connecting || rail->wait.eq_rang || (look && !wf_wait_has_eq(rail)))
		progress_connections(rail);
	while (n < max && wf_rail_next(rail, &events[n]))
		n++;
	return n;
}

void wf_rail_give(struct wf_rail *rail, uint32_t slot)
{
	wf_slots_post(rail, wf_slots_at(rail, slot));
}

int wf_rail_fd(const struct wf_rail *rail)
{
	return rail->wait.epoll;
}

int wf_rail_arm(struct wf_rail *rail)
{
	/* A queue has all its descriptors only after a look, so the look is first. */
	if (!rail->queues.empty && (progress(rail, true) || progress_connections(rail)))
		return -EAGAIN;
	if (rail->wait.eq_rang)
		return -EAGAIN;
	if (rail->shared.shut_ns)
		return -EAGAIN; /* a sender inside the gate leaves a message soon, or is dead */
	if (wf_wait_again(rail) || wf_wait_holds(rail))
		return -EAGAIN;
	/*
	 * Look again: the first look may have let more come, and news is not told twice.  Of the
	 * queues whose descriptors are all known only those are read that have rung since; what
	 * they say of the end of a connection does not ring.
	 */
	wf_wait_cool(rail);
	if (progress(rail, true) || progress_connections(rail) || rail->wait.eq_rang ||
	    wf_wait_holds(rail))
		return -EAGAIN;
	return wf_wait_try(rail);
}

bool wf_rail_untidy(const struct wf_rail *rail)
{
	return wf_orphans_expected(rail);
}

void wf_rail_tidy(struct wf_rail *rail)
{
	/* A request that has come but was not read has no owner yet, and is no orphan. */
	if (!progress_connections(rail))
		wf_orphans_look(rail);
}

void wf_rail_woken(struct wf_rail *rail)
{
	rail->woken = true;
}
