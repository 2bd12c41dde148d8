/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which of libfabric's offers this node uses, and why not the others.
 *
 * FI_PROVIDER is honoured as libfabric's users expect, and WEFT_PROVIDER and
 * WEFT_DEVICE narrow further.  Order: verbs, efa, native tcp; the same-host
 * rail besides; what a row says is by name only, when named.  Of several NICs
 * of one provider that suit alike, that which is nearest to the NUMA node that
 * the process is bound to.
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

/* Memory that a rail is to reach. */
struct wf_select_memory {
	bool reg_cheap; /* make a key per offer */
	bool local;     /* local buffers need a descriptor */
	bool device;    /* the NIC may reach a device's memory: registering says whether it does */
};

/* Processes of one host on a rail that serves between them. */
struct wf_select_host {
	bool between_processes; /* two endpoints of one process must never meet */
	bool leaves_files;      /* in /dev/shm, after a kill */
	bool dialled_first;     /* the dialled side speaks first: it knows the other by then */
};

/*
 * What the floors above ask instead of "which provider is it?".  Options for
 * chunk, depth and eager have already been put in.
 */
struct wf_caps {
	char provider[64]; /* libfabric's full name */
	char domain[64];
	const struct wf_names *names; /* both, for those who outlive the rail; NULL: no rail is open */
	char pci[WF_TOPOLOGY_ADDRESS_BYTES]; /* of its NIC, where libfabric says that; "" */
	int numa_node;          /* of that, where @memory.device is true; -1: not known */
	uint32_t protocol, protocol_version; /* two ends must agree on both and on the name */
	uint32_t libfabric;     /* fi_version() */
	bool connected;         /* an endpoint per link; else shared */
	bool same_host;
	bool by_ip;
	bool sync_read;         /* a read is done when the call returns */
	bool tested;
	struct wf_select_memory memory;
	struct wf_select_host host;
	enum wf_wait wait;
	uint32_t frame_bytes;
	uint32_t inject_bytes;
	uint64_t eager_bytes;
	uint64_t chunk_bytes;
	uint64_t read_bytes_max;
	uint32_t depth;
	uint64_t helper_bytes;  /* bodies from here up are read with a helper's help; 0: none */
	uint64_t ping_ns; /* how long a ping may take */
	uint32_t peers_max;
};

struct wf_candidate {
	const struct wf_provider *row;
	struct fi_info *info;
	struct wf_caps caps;
	bool used;
	bool short_of_room; /* not used, for want of room in /dev/shm: the reason says how much */
	enum wf_near near; /* to the NUMA node that the process is bound to: */
	unsigned distance; /* 0: it is bound to none, or nobody asks; UINT_MAX: not known */
	char reason[160]; /* why it is used or not */
};

struct wf_select {
	struct wf_candidate *all; /* best first */
	size_t count;
	int numa_node;            /* that the process is bound to; -1: to none, or nobody asks */
};

/*
 * Ask libfabric.  -ENODATA: nothing is left; the sentence says what was asked
 * for (FI_PROVIDER set but empty included) and what there is.  -EINVAL: a
 * named provider is refused, with the reason.
 */
int wf_select_open(const struct wf_options *options, struct wf_select *select,
		   struct wf_error *e);

/*
 * The same for who only looks: what is there and why it is not used, also where
 * nothing is left for a node.  -ENODATA: libfabric offers nothing at all.
 */
int wf_select_look(const struct wf_options *options, struct wf_select *select,
		   struct wf_error *e);
void wf_select_close(struct wf_select *select);

/* No same-host rail of @select can be used, because of @why. */
void wf_select_without_host(struct wf_select *select, const char *why);

/* The version of the running library, as text. */
const char *wf_select_libfabric_text(void);

/* A version as text. */
#define WF_SELECT_VERSION_BYTES 24
void wf_select_version(uint32_t version, char text[WF_SELECT_VERSION_BYTES]);

#endif
