/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who publishes memory on this host, which devices may use it, and how far they are
 * from each other: what weft_alloc_near chooses by.
 *
 * Threads: any; one topology belongs to one thread at a time.
 */
#ifndef WEFT_TOPOLOGY_H
#define WEFT_TOPOLOGY_H

#include <weft/node.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_topology;

/* Memory of one place.  Strings live as long as the topology. */
struct weft_publisher {
	size_t size;
	const char *name;    /* as rules name it: "host:0", "p2pmem:0000:3b:00.0" */
	const char *kind;    /* "host", "huge", "pinned", "cuda", "p2pmem" or "software" */
	const char *address; /* of its PCI device; "" for memory of the host */
	int numa_node;       /* -1: not known */
	int published;       /* else it gives none now */
	int lends;           /* peers of this host can read it where it is */
	uint64_t bytes;
	uint64_t available_bytes;
	const char *why_not; /* it is not published; "": it is, or nobody says why */
};

/* A device that may use memory: a NIC, GPU or NVMe. */
struct weft_client {
	size_t size;
	const char *name;    /* the first of its names */
	const char *names;   /* all of them, with commas */
	const char *address;
	const char *kind;    /* "nic", "gpu" or "nvme" */
	int numa_node;
};

/* What a publisher is to a client. */
struct weft_pair {
	size_t size;
	const char *path;  /* "X", "PIX", "PXB", "PHB", "NODE" or "SYS", as nvidia-smi has them */
	unsigned distance; /* the lower is nearer */
	int allowed;       /* by the rules */
	int chosen;        /* a page for this client alone would be from here: never one of a CUDA device */
	char why[240];     /* or why not */
};

/*
 * Look at this host, as WEFT_RULES and WEFT_SYSFS say and what @options say further
 * (NULL: nothing).  -EINVAL: rules can't be read.  -ENODEV: they name a device that is not there.
 */
WEFT_API int weft_topology_open(const struct weft_node_options *options,
				struct weft_topology **topology);
WEFT_API void weft_topology_close(struct weft_topology *topology);

WEFT_API size_t weft_topology_publishers(const struct weft_topology *topology);
WEFT_API size_t weft_topology_clients(const struct weft_topology *topology);

/* Describe one of them, or two; set ->size first.  -EINVAL: there is no such one. */
WEFT_API int weft_topology_publisher(const struct weft_topology *topology, size_t index,
				     struct weft_publisher *publisher);
WEFT_API int weft_topology_client(const struct weft_topology *topology, size_t index,
				  struct weft_client *client);
WEFT_API int weft_topology_pair(const struct weft_topology *topology, size_t publisher,
				size_t client, struct weft_pair *pair);

#ifdef __cplusplus
}
#endif
#endif
