/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/select.h"
#include "fabric/devshm.h"
#include "fabric/internal.h"
#include "fabric/libfabric.h"
#include "fabric/signals.h"
#include "util/environment.h"
#include "util/fork.h"

#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* The API that this code was written for: a later library is asked to behave like it. */
#define WRITTEN_FOR FI_VERSION(1, 17)
#define DMA_BUFS_SINCE FI_VERSION(1, 20)

/* A reason holds the longest name of a setting and a few words. */
#define REASON_BYTES 64

/* A ping on a rail that works takes well under this, also on a busy machine. */
#define PING_MS 500

void wf_select_version(uint32_t version, char text[WF_SELECT_VERSION_BYTES])
{
	snprintf(text, WF_SELECT_VERSION_BYTES, "%u.%u", FI_MAJOR(version), FI_MINOR(version));
}

const char *wf_select_libfabric_text(void)
{
	static _Thread_local char text[WF_SELECT_VERSION_BYTES];

	if (wf_libfabric_load(NULL))
		return "none";
	wf_select_version(fi_version(), text);
	return text;
}

uint32_t wf_select_api(bool device)
{
	uint32_t headers = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
	uint32_t wanted = device ? DMA_BUFS_SINCE : WRITTEN_FOR;

	return WF_MIN(WF_MIN(headers, wanted), fi_version());
}

struct fi_info *wf_select_hints(enum wf_provider_shape shape, bool device)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->caps = FI_MSG | FI_RMA;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	/* All modes that we can obey; the answer has those that the provider demands. */
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	if (shape == WF_SHAPE_CONNECTED) {
		hints->ep_attr->type = FI_EP_MSG;
		hints->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
		hints->mode = FI_RX_CQ_DATA; /* costs nothing: weft never sends such data */
	} else {
		hints->ep_attr->type = FI_EP_RDM;
		/* A registration can be bound to an endpoint only where there is a single one. */
		hints->domain_attr->mr_mode |= FI_MR_ENDPOINT;
	}
	if (device) {
		hints->caps |= FI_HMEM;
		hints->domain_attr->mr_mode |= FI_MR_HMEM;
	}
	return hints;
}

/* Does the user want provider @name, by weft's options or by @filter, which FI_PROVIDER says? */
static bool is_wanted(const struct wf_options *options, const char *filter, const char *name)
{
	if (wf_options_lists(options->provider, name))
		return true;
	/* "^a,b" says which ones are not wanted. */
	return filter && *filter != '^' && wf_options_lists(filter, name);
}

static bool is_named(const struct wf_options *options, const char *name)
{
	return is_wanted(options, wf_environment_get("FI_PROVIDER"), name);
}

/* Make the settings for every libfabric, or for some versions alone, once in the process. */
static void prepare(const struct wf_options *options, bool by_version)
{
	const char *filter = wf_environment_get("FI_PROVIDER");
	static bool prepared[2];
	const struct wf_provider_setting *s;

	wf_fork_hold();
	/* libfabric loads what FI_PROVIDER_PATH names, and asks nobody whether it may. */
	if (!prepared[false] && !wf_environment_trusted())
		wf_environment_forget(wf_provider_variables);
	for (s = wf_provider_settings; s->name && !prepared[by_version]; s++)
		if ((!s->provider || is_wanted(options, filter, s->provider)) &&
		    (s->before ? by_version && fi_version() < s->before : !by_version))
			setenv(s->name, s->value, 0);
	prepared[by_version] = true;
	wf_fork_let();
}

/*
 * libfabric reads its environment once, at its first use, and libraries that come with it do so
 * while they are loaded: the first node decides.
 */
static int load(const struct wf_options *options, struct wf_error *e)
{
	int err;

	prepare(options, false);
	err = wf_libfabric_load(e);
	if (!err)
		prepare(options, true);
	return err;
}

/*
 * A filter that names a provider makes libfabric offer every layer over it
 * too; a user who asked for the plain provider does not want to see them.
 */
static bool is_side_offer(const struct wf_provider *row, const char *name)
{
	const char *filter = wf_environment_get("FI_PROVIDER");

	return filter && *filter && *filter != '^' && strchr(name, ';') && !row->refused &&
	       !wf_options_lists(filter, name);
}

/* The PCI address of the NIC, "" where libfabric does not say. */
static void fill_pci(char pci[WF_TOPOLOGY_ADDRESS_BYTES], const struct fi_info *info)
{
	const struct fi_bus_attr *bus = info->nic ? info->nic->bus_attr : NULL;

	pci[0] = '\0';
	if (bus && bus->bus_type == FI_BUS_PCI)
		snprintf(pci, WF_TOPOLOGY_ADDRESS_BYTES, "%04x:%02x:%02x.%u",
			 bus->attr.pci.domain_id, bus->attr.pci.bus_id, bus->attr.pci.device_id,
			 bus->attr.pci.function_id & 7);
}

static int node_of(const char *pci, const char *sysfs)
{
	char folder[WF_SYSFS_PATH_BYTES];

	if (!*pci ||
	    !wf_sysfs_path(folder, *sysfs ? sysfs : WF_SYSFS_ROOT, "bus/pci/devices/%s", pci))
		return -1;
	return wf_sysfs_node(folder);
}

/* Returns the longest frame; with longer ones than the row's a provider may be unsafe. */
static uint64_t frame_bytes(const struct wf_provider *row, const struct wf_options *options)
{
	return options->frame_bytes ? WF_MIN(options->frame_bytes, row->frame_bytes) :
				      row->frame_bytes;
}

static void fill_caps(struct wf_rail_caps *c, const struct wf_provider *row,
		      const struct fi_info *info, const struct wf_options *options)
{
	uint32_t version = fi_version();
	uint64_t most = info->ep_attr->max_msg_size;

	*c = (struct wf_rail_caps){
		.protocol = info->ep_attr->protocol,
		.protocol_version = info->ep_attr->protocol_version,
		.libfabric = version,
		.connected = row->shape == WF_SHAPE_CONNECTED,
		.same_host = row->same_host,
		.host.between_processes = wf_provider_has(row, WF_QUIRK_ONE_REGION, version),
		.by_ip = row->by_ip,
		.memory.reg_cheap = row->reg_cheap,
		.memory.local = info->domain_attr->mr_mode & FI_MR_LOCAL,
		.memory.device = row->device && info->caps & FI_HMEM,
		.ping_ns = (row->ping_ms ? row->ping_ms : PING_MS) * WF_NS_PER_MS,
		.sync_read = wf_provider_has(row, WF_QUIRK_SYNC_READ, version),
		.host.leaves_files = wf_provider_has(row, WF_QUIRK_SHM_FILES, version),
		.host.dialled_first = wf_provider_has(row, WF_QUIRK_LIVE_NAME, version),
		.tested = row->tested,
		.wait = wf_provider_has(row, WF_QUIRK_SLOW_FD, version) ? WF_WAIT_POLLFD : row->wait,
		.frame_bytes = (uint32_t)WF_MIN(frame_bytes(row, options), most),
		.eager_bytes = options->eager_bytes ? options->eager_bytes : row->eager_bytes,
		.chunk_bytes = options->chunk_bytes ? options->chunk_bytes : row->chunk_bytes,
		.read_bytes_max = most,
		.depth = (uint32_t)(options->depth ? options->depth : row->depth),
		.helper_bytes = options->helper ? row->helper_bytes : 0,
		.peers_max = row->peers_max ? row->peers_max : UINT32_MAX,
	};
	c->inject_bytes = (uint32_t)WF_MIN(info->tx_attr->inject_size, (size_t)c->frame_bytes);
	c->chunk_bytes = WF_MIN(c->chunk_bytes, most);
	c->read_spans_max = (uint32_t)WF_MIN(info->tx_attr->iov_limit, info->tx_attr->rma_iov_limit);
	c->read_spans_max = WF_MIN(WF_MAX(c->read_spans_max, 1u), (uint32_t)WF_READ_SPANS_MAX);
	snprintf(c->provider, sizeof(c->provider), "%s", info->fabric_attr->prov_name);
	snprintf(c->domain, sizeof(c->domain), "%s", info->domain_attr->name);
	fill_pci(c->pci, info);
	c->numa_node = c->memory.device ? node_of(c->pci, options->sysfs) : -1;
}

static bool is_loopback(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET) {
		const struct sockaddr_in *v4 = (const void *)a;

		return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	}
	return a->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

static bool is_any(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr == INADDR_ANY;
	return a->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

static bool is_same_ip(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (is_loopback(a) && is_loopback(b)) /* all of 127/8 is one interface */
		return true;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)(const void *)b)->sin_addr.s_addr;
	if (a->sa_family == AF_INET6)
		return IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
					  &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr);
	return false;
}

static const struct sockaddr *source_of(const struct fi_info *info)
{
	size_t least = info->addr_format == FI_SOCKADDR_IN6 ? sizeof(struct sockaddr_in6) :
							      sizeof(struct sockaddr_in);

	if (info->addr_format != FI_SOCKADDR_IN && info->addr_format != FI_SOCKADDR_IN6)
		return NULL;
	return info->src_addrlen >= least ? info->src_addr : NULL;
}

/* Does the address of @info need a scope to mean anything?  libfabric does not carry one. */
static bool is_link_local(const struct fi_info *info)
{
	const struct sockaddr *a = source_of(info);

	return a && a->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

/* The place this node listens at. */
struct home {
	char host[WF_OPTION_TEXT_BYTES];
	struct addrinfo *addresses; /* NULL: all addresses of the host */
	bool loopback;
};

static int home_open(struct home *home, const struct wf_options *options, struct wf_error *e)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	const char *text = options->listen;
	const char *colon = strrchr(text, ':');
	size_t bytes = colon ? (size_t)(colon - text) : strlen(text);
	int err;

	if (bytes >= 2 && text[0] == '[' && text[bytes - 1] == ']') {
		text++;
		bytes -= 2;
	}
	*home = (struct home){ 0 };
	memcpy(home->host, text, bytes);
	if (!bytes)
		strcpy(home->host, "127.0.0.1");
	/* Without a name, home is loopback of either family: a host may have no 127.0.0.1. */
	err = getaddrinfo(bytes ? home->host : NULL, bytes ? NULL : "0", &hints,
			  &home->addresses);
	if (err)
		return wf_error_set(e, -EINVAL, "cannot listen on %s: %s", home->host,
				    gai_strerror(err));
	home->loopback = is_loopback(home->addresses->ai_addr);
	if (is_any(home->addresses->ai_addr)) {
		freeaddrinfo(home->addresses);
		home->addresses = NULL;
	}
	return 0;
}

static void home_close(struct home *home)
{
	if (home->addresses)
		freeaddrinfo(home->addresses);
}

static bool home_has(const struct home *home, const struct fi_info *info)
{
	const struct sockaddr *source = source_of(info);
	const struct addrinfo *a;

	for (a = home->addresses; source && a; a = a->ai_next)
		if (is_same_ip(source, a->ai_addr))
			return true;
	return false;
}

static bool device_is(const struct wf_options *options, const struct fi_info *info)
{
	const struct sockaddr *source = source_of(info);
	char ip[NI_MAXHOST];

	if (wf_options_lists(options->device, info->domain_attr->name))
		return true;
	return source &&
	       !getnameinfo(source, (socklen_t)info->src_addrlen, ip, sizeof(ip), NULL, 0,
			    NI_NUMERICHOST) &&
	       wf_options_lists(options->device, ip);
}

/*
 * How well does @info suit, among all that one provider offers?  0: not at
 * all.  A rail has an address of its own, so an RDMA adapter, or what WEFT_DEVICE
 * names, need not be the interface that the door listens on; but no rail leaves
 * loopback then.
 */
static int suits(const struct wf_select_candidate *c, const struct fi_info *info,
		 const struct wf_options *options, const struct home *home)
{
	const struct sockaddr *source = source_of(info);

	if (!c->row->by_ip)
		return 1;
	if (home_has(home, info))
		return 3;
	if (home->addresses)
		return (c->row->rdma || options->device[0]) && !home->loopback ? 2 : 0;
	if (source && is_loopback(source) &&
	    wf_provider_has(c->row, WF_QUIRK_LOCAL_NICS, fi_version()))
		return 0;
	return source && source->sa_family == AF_INET ? 2 : 1;
}

/*
 * The first process that was offered a provider that its forked children can't use.
 * 0: none yet.
 */
static _Atomic pid_t first_offered;

/* Does @provider, or the one that it is a layer of, serve no child of the process offered it? */
static bool serves_no_child(const char *provider)
{
	char core[64];

	snprintf(core, sizeof(core), "%.*s", (int)strcspn(provider, ";"), provider);
	return wf_provider_find(core)->not_forked;
}

/* Note that this process was offered @provider. */
static void note_offer(const char *provider)
{
	pid_t none = 0;

	if (serves_no_child(provider))
		atomic_compare_exchange_strong(&first_offered, &none, getpid());
}

/* Is @provider, of which there was an offer, in the hands of a process that forked this one? */
static bool is_a_parents(const char *provider)
{
	return serves_no_child(provider) && atomic_load(&first_offered) != getpid();
}

/* Why nobody gets @c, not even by name; NULL: no reason. */
static const char *refusal_of_all(const struct wf_select_candidate *c)
{
	if (c->row->refused)
		return c->row->refused;
	return is_a_parents(c->caps.provider) ?
		       "the process that forked this one has used it, and it does not survive "
		       "that: begin another program by exec" :
		       NULL;
}

/* A reason that names a setting, by the name that its user gave it. */
WF_PRINTF(3, 0)
static const char *named(const struct wf_options *options, const char *setting, const char *format,
			 char why[REASON_BYTES])
{
	snprintf(why, REASON_BYTES, format, wf_options_name(options, setting));
	return why;
}

/* Why @c can't be used, whatever else there is; NULL: @c can.  @why is room for the text. */
static const char *refusal(const struct wf_select_candidate *c, const struct wf_options *options,
			   char why[REASON_BYTES])
{
	const struct wf_provider *row = c->row;
	const char *refused = refusal_of_all(c);

	if (refused)
		return refused;
	if (options->provider[0] && !wf_options_lists(options->provider, c->caps.provider))
		return "WEFT_PROVIDER names others";
	if (row->by_name && !is_named(options, c->caps.provider))
		return "serves only when FI_PROVIDER or WEFT_PROVIDER names it";
	if (row->rdma && !options->rdma)
		return named(options, "WEFT_RDMA", "switched off by %s", why);
	if (row->same_host && !options->shm)
		return "switched off by WEFT_SHM";
	if (options->device[0] && !row->same_host && !device_is(options, c->info))
		return named(options, "WEFT_DEVICE", "%s names others", why);
	return NULL;
}

static void judge(struct wf_select_candidate *c, const struct wf_options *options,
		  const struct home *home)
{
	char why[REASON_BYTES];
	const char *why_not = refusal(c, options, why);
	struct wf_error room;

	if (why_not) {
		snprintf(c->reason, sizeof(c->reason), "%s", why_not);
	} else if (wf_devshm_check(c->row->devshm_bytes, &room)) {
		c->short_of_room = true;
		snprintf(c->reason, sizeof(c->reason), "%.150s", room.text);
	} else if (!suits(c, c->info, options, home) && !home->addresses) {
		snprintf(c->reason, sizeof(c->reason), "reaches no other host");
	} else if (!suits(c, c->info, options, home)) {
		c->elsewhere = true;
		snprintf(c->reason, sizeof(c->reason), "does not have %.80s, where this node listens",
			 home->host);
	} else {
		c->used = true;
	}
}

static bool same_provider(const struct wf_select_candidate *a, const struct wf_select_candidate *b)
{
	return !strcmp(a->caps.provider, b->caps.provider);
}

/* Do bodies go over @a and @b at once?  Needs an endpoint for each peer, and WEFT_DEVICE. */
static bool go_together(const struct wf_select_candidate *a, const struct wf_select_candidate *b,
			const struct wf_options *options)
{
	return options->device[0] && a->caps.connected && strcmp(a->caps.domain, b->caps.domain);
}

/* The first candidate of @c's provider that serves; NULL: no other comes before @c. */
static const struct wf_select_candidate *first_of(const struct wf_select *select,
						  const struct wf_select_candidate *c)
{
	for (size_t i = 0; &select->all[i] != c; i++)
		if (select->all[i].used && same_provider(c, &select->all[i]))
			return &select->all[i];
	return NULL;
}

/* Is there a choice between NICs? */
static bool are_several(const struct wf_select *select)
{
	for (size_t i = 0; i < select->count; i++)
		if (select->all[i].used && first_of(select, &select->all[i]))
			return true;
	return false;
}

/* Measure how far NICs are from the NUMA node that we are bound to, if there is a choice. */
static int measure(struct wf_select *select, const struct wf_options *options, struct wf_error *e)
{
	struct wf_topology t;
	struct wf_topology_place place, here = { 0 };
	size_t i;
	int err;

	select->numa_node = -1;
	if (!are_several(select))
		return 0;
	err = wf_topology_open(&t, options->sysfs);
	if (err)
		return wf_error_set(e, err, "what the NICs are near to can't be read: %s",
				    wf_error_name(err));
	select->numa_node = here.node = wf_topology_home(&t);
	for (i = 0; i < select->count && select->numa_node >= 0; i++) {
		struct wf_select_candidate *c = &select->all[i];

		/* Without a PCI address, the domain's name may be the kernel's for an interface. */
		c->distance = UINT_MAX;
		if (c->used && (!wf_topology_find(&t, c->caps.pci, &place) ||
				!wf_topology_find(&t, c->caps.domain, &place)))
			c->distance = wf_topology_distance(&t, &place, &here, &c->near);
	}
	wf_topology_close(&t);
	return 0;
}

/* Say in @text that @c serves because it is nearer than another that suits as well; else "". */
static void say_near(const struct wf_select *select, const struct wf_select_candidate *c,
		     const struct wf_options *options, const struct home *home, char text[64])
{
	size_t i;

	text[0] = '\0';
	for (i = 0; i < select->count; i++) {
		const struct wf_select_candidate *other = &select->all[i];

		if (same_provider(other, c) && other->distance > c->distance &&
		    other->distance != UINT_MAX &&
		    suits(other, other->info, options, home) == suits(c, c->info, options, home))
			snprintf(text, 64, ", nearest to NUMA node %d (%s)", select->numa_node,
				 wf_topology_classes[c->near]);
	}
}

/*
 * Compare two candidates of one provider: 1, 0 or -1, as @a suits better, as well, or less; then
 * the nearer is the better one.
 */
static int compare(const struct wf_select_candidate *a, const struct wf_select_candidate *b,
		   const struct wf_options *options, const struct home *home)
{
	int first = suits(a, a->info, options, home), second = suits(b, b->info, options, home);

	if (first != second)
		return first > second ? 1 : -1;
	return a->distance == b->distance ? 0 : a->distance < b->distance ? 1 : -1;
}

/* Keep one domain per provider, or all that are named; the others are for users who name them. */
static int keep_best(struct wf_select *select, const struct wf_options *options,
		     const struct home *home, struct wf_error *e)
{
	char near[64];
	size_t i, j;
	int err = measure(select, options, e);

	if (err)
		return err;
	for (i = 0; i < select->count; i++) {
		struct wf_select_candidate *c = &select->all[i];

		for (j = 0; j < select->count && c->used; j++) {
			struct wf_select_candidate *other = &select->all[j];
			int better;

			if (j == i || !other->used || !same_provider(c, other) ||
			    go_together(c, other, options))
				continue;
			better = compare(other, c, options, home);
			if (better > 0 || (!better && j < i)) {
				c->used = false;
				say_near(select, other, options, home, near);
				snprintf(c->reason, sizeof(c->reason), "%.60s serves%s",
					 other->caps.domain, near);
			}
		}
	}
	return 0;
}

static bool is_any_used(const struct wf_select *select)
{
	for (size_t i = 0; i < select->count; i++)
		if (select->all[i].used)
			return true;
	return false;
}

/*
 * Returns an offer of a device that @options name, first of all one that does not serve for the
 * address alone that the node listens at.  NULL: libfabric offers no such device.
 */
static const struct wf_select_candidate *device_of(const struct wf_select *select,
						   const struct wf_options *options)
{
	const struct wf_select_candidate *first = NULL;

	for (size_t i = 0; i < select->count; i++) {
		const struct wf_select_candidate *c = &select->all[i];

		if (c->row->same_host || !device_is(options, c->info))
			continue;
		if (c->elsewhere)
			return c;
		first = first ? first : c;
	}
	return first;
}

/* A user who names a device wants that one, not just the rails that are left without it. */
static void want_device(struct wf_select *select, const struct wf_options *options)
{
	bool any = false;

	for (size_t i = 0; i < select->count; i++)
		any |= select->all[i].used && !select->all[i].row->same_host;
	if (any || !options->device[0])
		return;
	for (size_t i = 0; i < select->count; i++) {
		struct wf_select_candidate *c = &select->all[i];

		if (c->used)
			snprintf(c->reason, sizeof(c->reason), "%s names a device that %s",
				 wf_options_name(options, "WEFT_DEVICE"),
				 device_of(select, options) ? "does not serve" : "is not here");
		c->used = false;
	}
}

static void explain(struct wf_select *select, const struct wf_options *options,
		    const struct home *home)
{
	char near[64];

	for (size_t i = 0; i < select->count; i++) {
		struct wf_select_candidate *c = &select->all[i];
		const struct wf_select_candidate *first = first_of(select, c);

		if (!c->used)
			continue;
		say_near(select, c, options, home, near);
		if (c->row->same_host)
			snprintf(c->reason, sizeof(c->reason), "for peers on this host");
		else if (first)
			snprintf(c->reason, sizeof(c->reason), "for bodies, beside %.60s",
				 first->caps.domain);
		else if (is_named(options, c->caps.provider))
			snprintf(c->reason, sizeof(c->reason), "asked for by name%s", near);
		else
			snprintf(c->reason, sizeof(c->reason), "rank %u%s", c->row->rank, near);
	}
}

/* Is @fresh a better offer of one domain than @c, for its address, or for memory it reaches? */
static bool is_better(const struct wf_select_candidate *fresh, const struct wf_select_candidate *c,
		      const struct wf_options *options, const struct home *home)
{
	int suits_fresh = suits(fresh, fresh->info, options, home);
	int suits_now = suits(c, c->info, options, home);

	return suits_fresh > suits_now ||
	       (suits_fresh == suits_now && fresh->caps.memory.device && !c->caps.memory.device);
}

/* Add @info, or keep the better of two offers of one domain.  Takes @info. */
static int add(struct wf_select *select, struct fi_info *info, const struct wf_options *options,
	       const struct home *home)
{
	struct wf_select_candidate fresh = {
		.row = wf_provider_find(info->fabric_attr->prov_name),
		.info = info,
	};
	struct wf_select_candidate *all;
	size_t i;

	fill_caps(&fresh.caps, fresh.row, info, options);
	note_offer(fresh.caps.provider);
	for (i = 0; i < select->count; i++) {
		struct wf_select_candidate *c = &select->all[i];

		if (!same_provider(c, &fresh) || strcmp(c->caps.domain, fresh.caps.domain))
			continue;
		if (is_better(&fresh, c, options, home)) {
			fi_freeinfo(c->info);
			*c = fresh;
		} else {
			fi_freeinfo(info);
		}
		return 0;
	}
	all = realloc(select->all, (select->count + 1) * sizeof(*all));
	if (!all) {
		fi_freeinfo(info);
		return -ENOMEM;
	}
	all[select->count++] = fresh;
	select->all = all;
	return 0;
}

static int ask(struct wf_select *select, enum wf_provider_shape shape, bool device,
	       const struct wf_options *options, const struct home *home, struct wf_error *e)
{
	struct fi_info *hints = wf_select_hints(shape, device);
	struct fi_info *list = NULL, *info, *next;
	int err;

	if (!hints)
		return wf_error_set(e, -ENOMEM, "no memory to ask libfabric");
	err = fi_getinfo(wf_select_api(device), NULL, NULL, 0, hints, &list);
	fi_freeinfo(hints);
	if (err == -FI_ENODATA)
		return 0;
	if (err)
		return wf_error_set(e, err, "fi_getinfo failed: %s", wf_error_name(err));
	for (info = list; info; info = next) {
		const char *name = info->fabric_attr->prov_name;
		const struct wf_provider *row = wf_provider_find(name);

		next = info->next;
		info->next = NULL;
		if (err || row->shape != shape || (device && !row->device) ||
		    is_side_offer(row, name) || is_link_local(info))
			fi_freeinfo(info);
		else if (add(select, info, options, home))
			err = wf_error_set(e, -ENOMEM, "no memory for what libfabric offers");
	}
	return err;
}

/* Within a provider, domains at the address this node listens at come first, then the nearest. */
static bool comes_before(const struct wf_select_candidate *a, const struct wf_select_candidate *b,
			 const struct wf_options *options, const struct home *home)
{
	if (a->row->rank != b->row->rank || !same_provider(a, b))
		return a->row->rank < b->row->rank;
	return compare(a, b, options, home) > 0;
}

/* Sort candidates, best first; among equals libfabric's order stays. */
static void sort(struct wf_select *select, const struct wf_options *options,
		 const struct home *home)
{
	size_t i, j;

	for (i = 1; i < select->count; i++) {
		struct wf_select_candidate moving = select->all[i];

		for (j = i; j && comes_before(&moving, &select->all[j - 1], options, home); j--)
			select->all[j] = select->all[j - 1];
		select->all[j] = moving;
	}
}

/* Is there an offer of the provider, or of the device, of the candidate @at before it? */
static bool is_repeated(const struct wf_select *select, size_t at, bool devices)
{
	const struct wf_select_candidate *c = &select->all[at];

	for (size_t i = 0; i < at; i++)
		if (devices ? !strcmp(select->all[i].caps.domain, c->caps.domain) :
			      same_provider(&select->all[i], c))
			return true;
	return false;
}

/* Write the names of all providers that are here, or of their devices, with commas. */
static void list_what_is_here(const struct wf_select *select, bool devices, char *text,
			      size_t bytes)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < select->count && used < bytes; i++) {
		const struct wf_select_candidate *c = &select->all[i];

		if (refusal_of_all(c) || (devices && c->row->same_host) ||
		    is_repeated(select, i, devices))
			continue;
		used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? ", " : "",
					 devices ? c->caps.domain : c->caps.provider);
	}
}

/* Write the settings that narrow the choice, as they go on after "no provider is left". */
static void list_settings(const struct wf_options *options, const char *filter, char *text,
			  size_t bytes)
{
	const struct {
		const char *name, *value, *origin;
	} settings[] = {
		{ "FI_PROVIDER", filter ? filter : "", "" },
		{ "WEFT_PROVIDER", options->provider, wf_options_origin(options, "WEFT_PROVIDER") },
		{ wf_options_name(options, "WEFT_DEVICE"), options->device,
		  wf_options_origin(options, "WEFT_DEVICE") },
	};
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < WF_COUNT(settings) && used < bytes; i++)
		if (settings[i].value[0])
			used += (size_t)snprintf(text + used, bytes - used, " with %s=%.40s%s",
						 settings[i].name, settings[i].value,
						 settings[i].origin);
}

/* Say what was asked for and what there is; nothing is usable. */
static int nothing_left(const struct wf_select *select, const struct wf_options *options,
			struct wf_error *e)
{
	const char *filter = wf_environment_get("FI_PROVIDER");
	const struct wf_select_candidate *device = device_of(select, options);
	bool by_device = options->device[0] && !device;
	char with[240], here[160];

	if (!select->count && filter && !*filter)
		return wf_error_set(e, -ENODATA,
				    "FI_PROVIDER is set but empty, which hides every provider: "
				    "unset it or name one");
	if (!select->count && filter)
		return wf_error_set(e, -ENODATA,
				    "FI_PROVIDER=%.100s leaves no provider that weft can use; "
				    "`fi_info -l` lists what libfabric %s has here",
				    filter, wf_select_libfabric_text());
	if (!select->count)
		return wf_error_set(e, -ENODATA, "libfabric %s offers no provider here",
				    wf_select_libfabric_text());
	list_settings(options, filter, with, sizeof(with));
	if (device && device->elsewhere)
		return wf_error_set(e, -ENODATA, "no provider is left%s: %s %s; set WEFT_LISTEN to "
				    "an address of that device", with, device->caps.domain,
				    device->reason);
	list_what_is_here(select, by_device, here, sizeof(here));
	return wf_error_set(e, -ENODATA,
			    "no provider is left%s; %shere are %s, and `weft info` says why each is "
			    "not used", with, by_device ? "the devices " : "", here);
}

/* Nobody who asks for a refused provider gets another one in silence. */
static int refused_by_name(const struct wf_select *select, const struct wf_options *options,
			   struct wf_error *e)
{
	size_t i;

	for (i = 0; i < select->count; i++) {
		const struct wf_select_candidate *c = &select->all[i];
		const char *refused = refusal_of_all(c);

		if (refused && (is_named(options, c->caps.provider) ||
				is_named(options, c->row->name)))
			return wf_error_set(e, -EINVAL, "%s is refused: %s", c->caps.provider,
					    refused);
	}
	return 0;
}

/* A strict user gets every provider that WEFT_PROVIDER names, or none. */
static int all_serve(const struct wf_select *select, const struct wf_options *options,
		     struct wf_error *e)
{
	const char *at = options->provider;
	char name[WF_OPTION_TEXT_BYTES];

	if (!*at || !wf_options_lists(options->strict, "no-fallback"))
		return 0;
	for (;;) {
		size_t bytes = strcspn(at, ","), i = 0;
		const char *why = "libfabric has none of that name here";

		snprintf(name, sizeof(name), "%.*s", (int)bytes, at);
		while (i < select->count && !(select->all[i].used &&
					      !strcasecmp(select->all[i].caps.provider, name))) {
			if (!strcasecmp(select->all[i].caps.provider, name))
				why = select->all[i].reason;
			i++;
		}
		if (i == select->count)
			return wf_error_set(e, -ENODATA, "WEFT_PROVIDER names %.60s%s, which does "
					    "not serve, and WEFT_STRICT says no-fallback: %s", name,
					    wf_options_origin(options, "WEFT_PROVIDER"), why);
		if (!at[bytes])
			return 0;
		at += bytes + 1;
	}
}

static bool has_row(const struct wf_select *select, const struct wf_provider *row)
{
	for (size_t i = 0; i < select->count; i++)
		if (select->all[i].row == row)
			return true;
	return false;
}

/* An offer of @row as libfabric would make it; NULL: no memory. */
static struct fi_info *offer_of(const struct wf_provider *row)
{
	struct fi_info *info = fi_dupinfo(NULL);

	if (!info)
		return NULL;
	info->fabric_attr->prov_name = strdup(row->name);
	info->domain_attr->name = strdup(row->name);
	info->ep_attr->max_msg_size = SIZE_MAX;
	if (info->fabric_attr->prov_name && info->domain_attr->name)
		return info;
	fi_freeinfo(info);
	return NULL;
}

/*
 * libfabric does not offer a provider that finds too little room in /dev/shm.  It is listed all
 * the same, so that a user who misses it is told why.
 */
static int add_those_without_room(struct wf_select *select, const struct wf_options *options,
				  const struct home *home, struct wf_error *e)
{
	for (size_t i = 0; wf_providers[i]; i++) {
		const struct wf_provider *row = wf_providers[i];
		struct fi_info *info;

		if (has_row(select, row) || !wf_devshm_check(row->devshm_bytes, NULL))
			continue;
		info = offer_of(row);
		if (!info || add(select, info, options, home))
			return wf_error_set(e, -ENOMEM, "no memory for what libfabric offers");
	}
	return 0;
}

int wf_select_look(const struct wf_options *options, struct wf_select *select, struct wf_error *e)
{
	struct wf_select found = { 0 };
	struct home home;
	size_t i;
	int err;

	err = load(options, e);
	if (err)
		return err;
	err = home_open(&home, options, e);
	if (err)
		return err;
	wf_signals_save();
	err = ask(&found, WF_SHAPE_CONNECTED, false, options, &home, e);
	if (!err && strcmp(options->cuda, "no"))
		err = ask(&found, WF_SHAPE_CONNECTED, true, options, &home, e);
	if (!err)
		err = ask(&found, WF_SHAPE_SHARED, false, options, &home, e);
	wf_signals_restore();
	if (!err)
		err = add_those_without_room(&found, options, &home, e);
	if (!err && !found.count)
		err = nothing_left(&found, options, e);
	if (err)
		goto close_found;

	for (i = 0; i < found.count; i++)
		judge(&found.all[i], options, &home);
	err = keep_best(&found, options, &home, e);
	if (err)
		goto close_found;
	want_device(&found, options);
	sort(&found, options, &home);
	explain(&found, options, &home);
	home_close(&home);
	*select = found;
	return 0;

close_found:
	wf_select_close(&found);
	home_close(&home);
	return err;
}

int wf_select_open(const struct wf_options *options, struct wf_select *select, struct wf_error *e)
{
	struct wf_select found;
	int err = wf_select_look(options, &found, e);

	if (err)
		return err;
	err = refused_by_name(&found, options, e);
	if (err)
		goto close_found;
	err = is_any_used(&found) ? all_serve(&found, options, e) : nothing_left(&found, options, e);
	if (err)
		goto close_found;
	*select = found;
	return 0;

close_found:
	wf_select_close(&found);
	return err;
}

/* Is provider @name, of @bytes bytes, offered? */
static bool is_offered(const struct wf_select *select, const char *name, size_t bytes)
{
	for (size_t i = 0; i < select->count; i++)
		if (strlen(select->all[i].caps.provider) == bytes &&
		    !strncasecmp(select->all[i].caps.provider, name, bytes))
			return true;
	return false;
}

bool wf_select_absent(const struct wf_select *select, const struct wf_options *options,
		      char names[WF_OPTION_TEXT_BYTES])
{
	size_t used = 0;

	names[0] = '\0';
	for (const char *at = options->provider; *at; at += *at == ',') {
		size_t bytes = strcspn(at, ",");

		if (bytes && !is_offered(select, at, bytes))
			used += (size_t)snprintf(names + used, WF_OPTION_TEXT_BYTES - used, "%s%.*s",
						 used ? "," : "", (int)bytes, at);
		at += bytes;
	}
	return used;
}

void wf_select_without_host(struct wf_select *select, const char *why)
{
	for (size_t i = 0; i < select->count; i++) {
		struct wf_select_candidate *c = &select->all[i];

		if (!c->used || !c->caps.same_host)
			continue;
		c->used = false;
		snprintf(c->reason, sizeof(c->reason), "%.*s", (int)sizeof(c->reason) - 1, why);
	}
}

void wf_select_close(struct wf_select *select)
{
	size_t i;

	for (i = 0; i < select->count; i++)
		fi_freeinfo(select->all[i].info);
	free(select->all);
	*select = (struct wf_select){ 0 };
}
