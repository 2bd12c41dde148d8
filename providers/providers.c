/* SPDX-License-Identifier: BSD-2-Clause */
#include "providers/rows.h"

#include <string.h>

#include <rdma/fabric.h>

const struct wf_provider *const wf_providers[] = {
	&wf_provider_shm,
	&wf_provider_verbs,
	&wf_provider_efa,
	&wf_provider_tcp,
	&wf_provider_net,
	&wf_provider_sockets,
	&wf_provider_rxm,
	&wf_provider_udp,
	&wf_provider_mrail,
	&wf_provider_generic,
	NULL,
};

/*
 * From libfabric 1.20 on a buffer holds the longest message that goes at once, and both ends
 * must agree on that: with a buffer of 1 KiB such a libfabric refuses an older one, and cuts
 * every frame up.
 */
#define RXM_EAGER FI_VERSION(1, 20)

const struct wf_provider_setting wf_provider_settings[] = {
	{ "FI_OFI_RXM_CM_PROGRESS_INTERVAL", "100",
	  "microseconds; the default of 10 ms delays every connection", NULL, 0 },
	{ "FI_OFI_RXM_MSG_RX_SIZE", "64", "an endpoint takes 19 MB instead of 72", NULL, 0 },
	{ "FI_OFI_RXM_MSG_TX_SIZE", "64", "as above", NULL, 0 },
	{ "FI_OFI_RXM_BUFFER_SIZE", "1024",
	  "where tcp;ofi_rxm is named: an endpoint takes 3 MB instead of 19", "tcp;ofi_rxm",
	  RXM_EAGER },
	{ "FI_OFI_RXM_EAGER_LIMIT", "16384",
	  "as above: messages that are longer than a buffer go at once all the same",
	  "tcp;ofi_rxm", RXM_EAGER },
	{ "FI_SOCKETS_CONN_TIMEOUT", "20",
	  "milliseconds; a send to a peer behind a cut cable holds its caller for as long, by "
	  "default 15 s", NULL, 0 },
	/* FI_MR_CACHE_MAX_COUNT=0 would forbid the cache without which shm of 2.x has no CUDA. */
	{ "FI_MR_CACHE_MONITOR", "disabled",
	  "what libfabric's cache registers, peers may write to, and its keys outlive their use",
	  NULL, 0 },
	{ "FI_MR_CUDA_CACHE_MONITOR_ENABLED", "0", "as above, for memory of CUDA devices", NULL, 0 },
	{ "IPATH_NO_BACKTRACE", "1", "no handler that prints and loops on a crash, in children",
	  NULL, 0 },
	{ "HFI_NO_BACKTRACE", "1", "as above, the later adapter", NULL, 0 },
	{ NULL, NULL, NULL, NULL, 0 },
};

const char *const wf_provider_variables[] = {
	"FI_", "OFI_", "PSM_", "PSM2_", "PSM3_", "IPATH_", "HFI_", "UCX_",
	NULL,
};

/*
 * A layered name, "core;layer", belongs to the row of its layer;
 * under an unknown layer a refused core stays refused.
 */
const struct wf_provider *wf_provider_find(const char *name)
{
	const char *layer = strrchr(name, ';');
	size_t core_bytes = strcspn(name, ";");
	const struct wf_provider *core = NULL;
	size_t i;

	for (i = 0; wf_providers[i]->name; i++) {
		const char *row = wf_providers[i]->name;

		if (!strcmp(row, layer ? layer + 1 : name))
			return wf_providers[i];
		if (layer && strlen(row) == core_bytes && !memcmp(row, name, core_bytes) &&
		    wf_providers[i]->refused)
			core = wf_providers[i];
	}
	return core ? core : wf_providers[i];
}

bool wf_provider_has(const struct wf_provider *row, enum wf_provider_quirk_kind kind,
		     unsigned version)
{
	const struct wf_provider_quirk *q;

	for (q = row->quirks; q->kind != WF_QUIRK_NONE; q++)
		if (q->kind == kind && version >= q->since && (!q->before || version < q->before))
			return true;
	return false;
}
