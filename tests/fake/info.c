/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fake/internal.h"

#include "fabric/libfabric.h"
#include "fabric/signals.h"

#include <arpa/inet.h>

unsigned fake_offer_number(const char *domain)
{
	unsigned number = 1;

	while (number <= fake_net.offers_count &&
	       strcmp(fake_net.offers[number - 1].domain, domain))
		number++;
	MUST(number <= fake_net.offers_count);
	return number;
}

const struct offer *fake_offer_of(enum fi_ep_type type)
{
	size_t i;

	for (i = 0; i < fake_net.offers_count; i++)
		if (fake_net.offers[i].type == type)
			return &fake_net.offers[i];
	return NULL;
}

/*
 * These are in place of src/fabric/libfabric.c: the loading of libfabric, and what it
 * exports beside its tables.  The fake takes no signal, so src/fabric/signals.c, which
 * would ask the kernel about each whenever a rail is opened, is replaced as well.
 */

void wf_signals_save(void)
{
}

void wf_signals_restore(void)
{
}

int wf_libfabric_load(struct wf_error *e)
{
	(void)e;
	return 0;
}

const char *wf_libfabric_file(void)
{
	return NULL;
}

bool wf_libfabric_brought(const void *code)
{
	(void)code;
	return false;
}

uint32_t fi_version(void)
{
	return fake_net.knobs.version ? fake_net.knobs.version : FI_VERSION(1, 17);
}

const char *fi_strerror(int code)
{
	return code > 255 ? "libfabric's error" : strerror(code);
}

static void *copy_of(const void *bytes, size_t count)
{
	void *copy = bytes ? fake_make(count) : NULL;

	return copy ? memcpy(copy, bytes, count) : NULL;
}

static char *text_of(const char *text)
{
	return copy_of(text, text ? strlen(text) + 1 : 0);
}

static struct fi_info *dup_info(const struct fi_info *info)
{
	static const struct fi_info none;
	const struct fi_info *from = info ? info : &none;
	struct fi_info *to = copy_of(from, sizeof(*from));

	to->next = NULL;
	to->src_addr = copy_of(from->src_addr, from->src_addrlen);
	to->dest_addr = copy_of(from->dest_addr, from->dest_addrlen);
	to->tx_attr = fake_make(sizeof(*to->tx_attr));
	to->rx_attr = fake_make(sizeof(*to->rx_attr));
	to->ep_attr = fake_make(sizeof(*to->ep_attr));
	to->domain_attr = fake_make(sizeof(*to->domain_attr));
	to->fabric_attr = fake_make(sizeof(*to->fabric_attr));
	to->nic = NULL;
	if (!info)
		return to;
	if (from->nic) {
		to->nic = copy_of(from->nic, sizeof(*to->nic));
		to->nic->bus_attr = copy_of(from->nic->bus_attr, sizeof(*to->nic->bus_attr));
	}
	*to->tx_attr = *from->tx_attr;
	*to->rx_attr = *from->rx_attr;
	*to->ep_attr = *from->ep_attr;
	*to->domain_attr = *from->domain_attr;
	*to->fabric_attr = *from->fabric_attr;
	to->domain_attr->name = text_of(from->domain_attr->name);
	to->fabric_attr->name = text_of(from->fabric_attr->name);
	to->fabric_attr->prov_name = text_of(from->fabric_attr->prov_name);
	return to;
}

struct fi_info *fi_dupinfo(const struct fi_info *info)
{
	return fake_veto("fi_dupinfo") ? NULL : dup_info(info);
}

void fi_freeinfo(struct fi_info *info)
{
	struct fi_info *next;

	for (; info; info = next) {
		next = info->next;
		free(info->src_addr);
		free(info->dest_addr);
		free(info->tx_attr);
		free(info->rx_attr);
		free(info->ep_attr);
		free(info->domain_attr->name);
		free(info->domain_attr);
		free(info->fabric_attr->name);
		free(info->fabric_attr->prov_name);
		free(info->fabric_attr);
		free(info->nic ? info->nic->bus_attr : NULL);
		free(info->nic);
		free(info);
	}
}

struct fi_info *fake_new_info(const struct offer *offer)
{
	struct fi_info *info = dup_info(NULL);
	struct sockaddr_in *v4;
	struct sockaddr_in6 *v6;

	info->caps = FI_MSG | FI_RMA;
	info->ep_attr->type = offer->type;
	info->ep_attr->protocol = FI_PROTO_UNSPEC;
	info->ep_attr->protocol_version = 1;
	info->ep_attr->max_msg_size = FAKE_READ_MAX;
	info->tx_attr->size = 256;
	info->tx_attr->iov_limit = info->tx_attr->rma_iov_limit = FAKE_SPANS;
	info->tx_attr->inject_size = fake_net.knobs.inject_bytes;
	info->rx_attr->size = fake_net.knobs.slots_max;
	info->domain_attr->name = text_of(offer->domain);
	info->domain_attr->mr_mode = (int)fake_net.knobs.mr_mode;
	info->domain_attr->mr_key_size = 8;
	info->fabric_attr->name = text_of("fake");
	info->fabric_attr->prov_name = text_of(offer->provider);
	if (offer->bus) {
		info->nic = fake_make(sizeof(*info->nic));
		info->nic->bus_attr = fake_make(sizeof(*info->nic->bus_attr));
		info->nic->bus_attr->bus_type = FI_BUS_PCI;
		info->nic->bus_attr->attr.pci.bus_id = offer->bus;
		info->nic->bus_attr->attr.pci.device_id = offer->slot;
	}
	if (!offer->ip[0])
		return info;
	if (strchr(offer->ip, ':')) {
		v6 = fake_make(sizeof(*v6));
		v6->sin6_family = AF_INET6;
		MUST(inet_pton(AF_INET6, offer->ip, &v6->sin6_addr) == 1);
		info->addr_format = FI_SOCKADDR_IN6;
		info->src_addr = v6;
		info->src_addrlen = sizeof(*v6);
	} else {
		v4 = fake_make(sizeof(*v4));
		v4->sin_family = AF_INET;
		MUST(inet_pton(AF_INET, offer->ip, &v4->sin_addr) == 1);
		info->addr_format = FI_SOCKADDR_IN;
		info->src_addr = v4;
		info->src_addrlen = sizeof(*v4);
	}
	return info;
}

/* FI_PROVIDER, as libfabric reads it: the core's name or the whole one, ^ turns it round. */
static bool is_filtered(const char *provider)
{
	const char *filter = getenv("FI_PROVIDER");
	size_t core = strcspn(provider, ";"), item;
	bool negated, found = false;

	if (!filter)
		return false;
	negated = *filter == '^';
	for (filter += negated; *filter; filter += item + (filter[item] == ',')) {
		item = strcspn(filter, ",");
		found |= (item == core || item == strlen(provider)) &&
			 !strncmp(filter, provider, item);
	}
	return found == negated;
}

static bool fits(const struct offer *offer, const char *node, const struct fi_info *hints)
{
	const char *provider = hints->fabric_attr->prov_name;
	const char *domain = hints->domain_attr->name;

	return hints->ep_attr->type == offer->type &&
	       (!(hints->caps & FI_HMEM) || offer->device) && !is_filtered(offer->provider) &&
	       (!provider || !strncmp(offer->provider, provider, strlen(provider))) &&
	       (!domain || !strcmp(offer->domain, domain)) &&
	       (!node || !strcmp(offer->ip, node));
}

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
	       const struct fi_info *hints, struct fi_info **out)
{
	struct fi_info *list = NULL, **tail = &list;
	int err = fake_veto("fi_getinfo");
	size_t i;

	(void)flags;
	if (err)
		return err;
	MUST(version <= fi_version()); /* libfabric says -FI_ENOSYS */
	for (i = 0; i < fake_net.offers_count; i++) {
		if (!fits(&fake_net.offers[i], node, hints))
			continue;
		*tail = fake_new_info(&fake_net.offers[i]);
		(*tail)->fabric_attr->api_version = version;
		if (hints->caps & FI_HMEM) {
			MUST(hints->domain_attr->mr_mode & FI_MR_HMEM);
			(*tail)->caps |= FI_HMEM;
			(*tail)->domain_attr->mr_mode |= FI_MR_HMEM;
		}
		if (service && (*tail)->addr_format == FI_SOCKADDR_IN)
			((struct sockaddr_in *)(*tail)->src_addr)->sin_port =
				htons((uint16_t)atoi(service));
		tail = &(*tail)->next;
	}
	*out = list;
	return list ? 0 : -FI_ENODATA;
}

/* What tests call. */

void wf_fake_offer_nothing(void)
{
	fake_net.offers_count = 0;
}

void wf_fake_offer(enum fi_ep_type type, const char *provider, const char *domain, const char *ip)
{
	struct offer *offer = &fake_net.offers[fake_net.offers_count++];

	MUST(fake_net.offers_count <= FAKE_OFFERS);
	offer->type = type;
	snprintf(offer->provider, sizeof(offer->provider), "%s", provider);
	snprintf(offer->domain, sizeof(offer->domain), "%s", domain);
	snprintf(offer->ip, sizeof(offer->ip), "%s", ip ? ip : "");
	offer->bus = offer->slot = 0;
	offer->device = false;
}

void wf_fake_offer_at(uint8_t bus, uint8_t slot)
{
	struct offer *offer = &fake_net.offers[fake_net.offers_count - 1];

	offer->bus = bus;
	offer->slot = slot;
}

void wf_fake_offer_device(void)
{
	fake_net.offers[fake_net.offers_count - 1].device = true;
}
