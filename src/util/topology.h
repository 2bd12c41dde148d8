/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Topology: how far PCI devices and the memory of NUMA nodes in this machine are from each
 * other.
 *
 * The topology is read once, from sysfs, and then stays as it is.  A device that the kernel
 * does not show is left out, without an error.
 *
 * Threads: any, once it is open.
 */
#ifndef WF_TOPOLOGY_H
#define WF_TOPOLOGY_H

#include "util/sysfs.h"

#define WF_TOPOLOGY_ADDRESS_BYTES 20 /* "0000:3b:00.0"; a domain may have eight digits */
#define WF_TOPOLOGY_NAMES_BYTES 96
#define WF_TOPOLOGY_NODES_MAX 64 /* further nodes are left out: the largest machines sold have 32 */

/* Kinds of devices that weft tells apart. */
enum wf_topology_device_kind { WF_DEVICE_OTHER, WF_DEVICE_NIC, WF_DEVICE_GPU, WF_DEVICE_NVME };

struct wf_topology_device {
	char address[WF_TOPOLOGY_ADDRESS_BYTES];
	char names[WF_TOPOLOGY_NAMES_BYTES]; /* comma list, as "mlx5_0,eth2"; "": none */
	char name[WF_TOPOLOGY_NAMES_BYTES];  /* the first of @names, else the address */
	enum wf_topology_device_kind kind;
	bool p2pmem;   /* the device offers memory to its peers */
	int node;      /* NUMA node; -1: not known */
	char *path;    /* real path, which goes through all bridges */
};

struct wf_topology_numa {
	int number;
	unsigned distances[WF_TOPOLOGY_NODES_MAX]; /* distance to each node, in order; 10: itself */
	char *cpus;               /* owned list of CPUs, as "0-15,32-47"; NULL: not known */
};

struct wf_topology {
	char root[256];
	struct wf_topology_device *devices; /* sorted by address */
	size_t device_count;
	struct wf_topology_numa nodes[WF_TOPOLOGY_NODES_MAX];
	size_t node_count; /* at least 1 */
};

/* Read the topology below @root (NULL or "": the kernel's).  -ENAMETOOLONG, -ENOMEM, -EMFILE. */
int wf_topology_open(struct wf_topology *t, const char *root);

/* Free the topology.  Accepts a zeroed struct. */
void wf_topology_close(struct wf_topology *t);

/* A device, or the memory of a node. */
struct wf_topology_place {
	const struct wf_topology_device *device; /* NULL: memory of @node */
	int node;                       /* -1: not known */
};

/*
 * Find a place by name: a PCI address ("0000:3b:00.0", "3b:00.0"), a device ("mlx5_0", "eth0",
 * "nvme0"; "gpu0" is the first GPU by address) or memory ("node1").  -ENODEV.
 */
int wf_topology_find(const struct wf_topology *t, const char *name,
		     struct wf_topology_place *place);

/* Return whether wf_topology_find() finds @place by @name. */
bool wf_topology_is(const struct wf_topology_place *place, const char *name);

/* Classes of distance as NCCL and nvidia-smi have them, the nearest first. */
enum wf_topology_near {
	WF_NEAR_SAME, /* X: a place and itself */
	WF_NEAR_PIX,  /* at most one switch or bridge between two devices */
	WF_NEAR_PXB,  /* several bridges, but no host bridge */
	WF_NEAR_PHB,  /* a host bridge (the processor); also a device and its node's memory */
	WF_NEAR_NODE, /* host bridges of one NUMA node */
	WF_NEAR_SYS   /* the link between NUMA nodes */
};

extern const char *const wf_topology_classes[];

/*
 * Return the distance: 100 for each class, 1 for each step up or down the tree of bridges, and
 * the firmware's distance between NUMA nodes.  Sets *@class, unless @class is NULL.
 */
unsigned wf_topology_distance(const struct wf_topology *t, const struct wf_topology_place *a,
			      const struct wf_topology_place *b, enum wf_topology_near *class);

/*
 * Return the NUMA node that this thread's CPUs, else its memory, are bound to; -1: to no single
 * one.
 */
int wf_topology_home(const struct wf_topology *t);

/* Return the NUMA node of the CPU that this thread runs on. */
int wf_topology_here(const struct wf_topology *t);

#endif
