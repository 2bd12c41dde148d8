/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How far what is in this machine is from each other: PCI devices, and the
 * memory of NUMA nodes.
 *
 * It is read once, from sysfs, and then stays as it is.  What the kernel does
 * not tell is not there: that is no error.
 *
 * Threads: any, once it is open.
 */
#ifndef WF_TOPOLOGY_H
#define WF_TOPOLOGY_H

#include "util/sysfs.h"

#define WF_TOPOLOGY_ADDRESS_BYTES 20 /* "0000:3b:00.0"; a domain may have eight digits */
#define WF_TOPOLOGY_NAMES_BYTES 96
#define WF_TOPOLOGY_NODES_MAX 64 /* more are left out: the largest machines sold have 32 */

/* What a device is to us. */
enum wf_device_kind { WF_DEVICE_OTHER, WF_DEVICE_NIC, WF_DEVICE_GPU, WF_DEVICE_NVME };

struct wf_device {
	char address[WF_TOPOLOGY_ADDRESS_BYTES];
	char names[WF_TOPOLOGY_NAMES_BYTES]; /* as "mlx5_0,eth2"; "": none */
	char name[WF_TOPOLOGY_NAMES_BYTES];  /* what to call it: the first, else the address */
	enum wf_device_kind kind;
	bool p2pmem;   /* it has memory that peers may be given */
	int node;      /* of NUMA; -1: not known */
	char *path;    /* real, so that it goes through all bridges */
};

struct wf_numa {
	int number;
	unsigned distances[WF_TOPOLOGY_NODES_MAX]; /* to each, in their order; 10: to itself */
	char cpus[256];           /* as "0-15,32-47" */
};

struct wf_topology {
	char root[256];
	struct wf_device *devices; /* by address */
	size_t device_count;
	struct wf_numa nodes[WF_TOPOLOGY_NODES_MAX];
	size_t node_count; /* at least 1 */
};

/* @root NULL or "": the kernel's.  -ENAMETOOLONG, -ENOMEM, -EMFILE. */
int wf_topology_open(struct wf_topology *t, const char *root);

/* Accepts a zeroed one. */
void wf_topology_close(struct wf_topology *t);

/* A device, or the memory of a node. */
struct wf_place {
	const struct wf_device *device; /* NULL: memory */
	int node;                       /* -1: not known */
};

/*
 * By name: a PCI address ("0000:3b:00.0", "3b:00.0"), a device ("mlx5_0", "eth0",
 * "nvme0"; "gpu0" is the first GPU by address) or memory ("node1").  -ENODEV.
 */
int wf_topology_find(const struct wf_topology *t, const char *name, struct wf_place *place);

/* Is @name one of those by which @place is found? */
bool wf_topology_is(const struct wf_place *place, const char *name);

/* Classes as NCCL and nvidia-smi have them, the nearest first. */
enum wf_near {
	WF_NEAR_SAME, /* X: it is the same */
	WF_NEAR_PIX,  /* one switch or bridge between them, at most */
	WF_NEAR_PXB,  /* several, but no host bridge */
	WF_NEAR_PHB,  /* a host bridge, which is the processor; also a device and its node's memory */
	WF_NEAR_NODE, /* host bridges of one NUMA node */
	WF_NEAR_SYS   /* the link between NUMA nodes */
};

extern const char *const wf_topology_classes[];

/*
 * How far apart: 100 for each class, 1 for each step up or down the tree of
 * bridges, and what the firmware says that NUMA nodes are apart.
 */
unsigned wf_topology_distance(const struct wf_topology *t, const struct wf_place *a,
			      const struct wf_place *b, enum wf_near *class);

/* The NUMA node that this thread's processors, else its memory, are bound to; -1: to none alone. */
int wf_topology_home(const struct wf_topology *t);

/* The one whose processor it runs on. */
int wf_topology_here(const struct wf_topology *t);

#endif
