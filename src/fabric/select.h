/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Selection of the offers of libfabric that this node uses, and why not the others.
 *
 * FI_PROVIDER is honoured as libfabric's users expect, and WEFT_PROVIDER and
 * WEFT_DEVICE narrow further.  Order: verbs, efa, native tcp; the same-host
 * rail besides; a provider whose row says by_name, only when named.  Of several
 * NICs of one provider that suit alike, the one nearest to the NUMA node that the
 * process is bound to.
 *
 * Threads: any; one struct belongs to one thread at a time.
 */
#ifndef WF_SELECT_H
#define WF_SELECT_H

#include "providers/provider.h"
#include "util/error.h"
#include "util/names.h"
#include "util/options.h"
#include "util/topology.h"

struct fi_info;

/* Needs and reach of a rail when memory is registered. */
struct wf_select_memory {
	bool reg_cheap; /* make a key per offer */
	bool local;     /* local buffers need a descriptor */
	bool device;    /* the NIC may reach a device's memory: registering says whether it does */
};

/* Properties of a rail between processes of one host. */
struct wf_select_host {
	bool between_processes; /* two endpoints of one process must never meet */
	bool leaves_files;      /* a killed process leaves files in /dev/shm */
	bool dialled_first;     /* the dialled side speaks first: it knows the other by then */
};

/*
 * Properties of a rail, for floors above that would else ask which provider it is.  Options for
 * chunk, depth and eager have already been put in.
 */
#define WF_READ_SPANS_MAX 16 /* most providers take 4; our own reads over shm take all */

struct wf_rail_caps {
	char provider[64]; /* libfabric's full name */
	char domain[64];
	const struct wf_names *names; /* @provider and @domain, kept for ever; NULL: no open rail */
	char pci[WF_TOPOLOGY_ADDRESS_BYTES]; /* PCI address of the NIC; "": not known */
	int numa_node;          /* node of @pci, where @memory.device is true; -1: not known */
	uint32_t protocol, protocol_version; /* two ends must agree on both and on the name */
	uint32_t libfabric;     /* fi_version() */
	bool connected;         /* an endpoint per link; else shared */
	bool same_host;
	bool by_ip;
	bool sync_read;         /* a read is done when the call returns */
	bool tested;
	struct wf_select_memory memory;
	struct wf_select_host host;
	enum wf_provider_wait wait;
	uint32_t frame_bytes;
	uint32_t inject_bytes;
	uint64_t eager_bytes;
	uint64_t chunk_bytes;
	uint64_t read_bytes_max;
	uint32_t read_spans_max; /* pieces of memory at either end that one read takes */
	uint32_t depth;
	uint64_t helper_bytes;  /* shortest body that a helper helps to read; 0: none */
	uint64_t ping_ns; /* time limit of a ping */
	uint32_t peers_max;
};

struct wf_select_candidate {
	const struct wf_provider *row;
	struct fi_info *info;
	struct wf_rail_caps caps;
	bool used;
	bool short_of_room; /* not used, for want of room in /dev/shm: the reason says how much */
	bool elsewhere; /* not used, for the node listens at an address of another domain's */
	enum wf_topology_near near; /* class of @distance */
	unsigned distance; /* from @numa_node of the select; 0: no such node; UINT_MAX: not known */
	char reason[160]; /* why the candidate is used or not */
};

struct wf_select {
	struct wf_select_candidate *all; /* best first */
	size_t count;
	int numa_node;            /* node that the process is bound to; -1: none, or nobody asks */
};

/*
 * Ask libfabric, and select.  -ENODATA: nothing is left; the sentence says what was asked
 * for (FI_PROVIDER set but empty included) and what there is.  -EINVAL: a
 * named provider is refused, with the reason.
 */
int wf_select_open(const struct wf_options *options, struct wf_select *select,
		   struct wf_error *e);

/*
 * Ask libfabric only to look: what is there and why it is not used, also where
 * nothing is left for a node.  -ENODATA: libfabric offers nothing at all.
 */
int wf_select_look(const struct wf_options *options, struct wf_select *select,
		   struct wf_error *e);
void wf_select_close(struct wf_select *select);

/*
 * Write, comma-separated, the names in WEFT_PROVIDER that no offer has.  Returns whether there are
 * any.
 */
bool wf_select_absent(const struct wf_select *select, const struct wf_options *options,
		      char names[WF_OPTION_TEXT_BYTES]);

/* Mark all same-host rails of @select as not used, for the reason @why. */
void wf_select_without_host(struct wf_select *select, const char *why);

/* The version of the loaded libfabric, as text. */
const char *wf_select_libfabric_text(void);

/* Write @version as text. */
#define WF_SELECT_VERSION_BYTES 24
void wf_select_version(uint32_t version, char text[WF_SELECT_VERSION_BYTES]);

#endif
