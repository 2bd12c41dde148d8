/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Topology of this host: publishers of memory, the devices that may use it, and how far they are
 * from each other.  weft_alloc_near() chooses by it.
 *
 * Threads: any; a topology belongs to one thread at a time.
 */
#ifndef WEFT_TOPOLOGY_H
#define WEFT_TOPOLOGY_H

#include <weft/node.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_topology;

/* A publisher: provider of memory of one place.  Strings live as long as the topology. */
struct weft_publisher {
	size_t size;
	const char *name;    /* name in rules: "host:0", "p2pmem:0000:3b:00.0" */
	const char *kind;    /* "host", "huge", "pinned", "cuda", "p2pmem" or "software" */
	const char *address; /* address of the PCI device; "": memory of the host */
	int numa_node;       /* -1: not known */
	int published;       /* 0: the publisher gives no memory now */
	int lends;           /* not 0: peers of this host can map the memory, to read it there */
	uint64_t bytes;      /* bytes that the publisher has */
	uint64_t available_bytes; /* bytes that could be given at weft_topology_open() */
	const char *why_not; /* why @published is 0; "": it is not, or the reason is unknown */
};
#define WEFT_PUBLISHER_INIT WEFT_SIZED_INIT(struct weft_publisher)

/* A client: device that may use memory, as a NIC, GPU or NVMe. */
struct weft_client {
	size_t size;
	const char *name;    /* first of @names */
	const char *names;   /* all names of the device, with commas */
	const char *address;
	const char *kind;    /* "nic", "gpu" or "nvme" */
	int numa_node;
};
#define WEFT_CLIENT_INIT WEFT_SIZED_INIT(struct weft_client)

/* Relation of a publisher to a client. */
struct weft_pair {
	size_t size;
	const char *path;  /* "X", "PIX", "PXB", "PHB", "NODE" or "SYS", as nvidia-smi has them */
	unsigned distance; /* the lower, the nearer */
	int allowed;       /* not 0: the rules allow this pair */
	/* Not 0: a page for this client alone would be from here: never from a CUDA device. */
	int chosen;
	char why[240];     /* reason, or what is in the way */
};
#define WEFT_PAIR_INIT WEFT_SIZED_INIT(struct weft_pair)

/*
 * Look at this host, as WEFT_RULES and WEFT_SYSFS say and @options say further (NULL: nothing).
 * Returns @topology owned: free it with weft_topology_close().  -EINVAL: an option is wrong, or
 * rules can't be read.  -ENODEV: rules name a device that is not there.
 */
WEFT_API int weft_topology_open(const struct weft_node_options *options,
				struct weft_topology **topology);

/* Free @topology; accepts NULL. */
WEFT_API void weft_topology_close(struct weft_topology *topology);

/* Returns the number of publishers. */
WEFT_API size_t weft_topology_publishers(const struct weft_topology *topology);

/* Returns the number of clients. */
WEFT_API size_t weft_topology_clients(const struct weft_topology *topology);

/* Describe a publisher; set ->size first.  -EINVAL: there is no such publisher. */
WEFT_API int weft_topology_publisher(const struct weft_topology *topology, size_t index,
				     struct weft_publisher *publisher);

/* Describe a client; set ->size first.  -EINVAL: there is no such client. */
WEFT_API int weft_topology_client(const struct weft_topology *topology, size_t index,
				  struct weft_client *client);

/* Describe a pair; set ->size first.  -EINVAL: there is no such publisher or client. */
WEFT_API int weft_topology_pair(const struct weft_topology *topology, size_t publisher,
				size_t client, struct weft_pair *pair);

#ifdef __cplusplus
}
#endif
#endif
