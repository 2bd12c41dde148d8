/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A publisher: memory of one place, of which pieces are given out: that of a NUMA node, or
 * memory that a device offers to its peers.
 *
 * Each kind is a row of ops.  A piece that the processor reaches is mapped here, and
 * registering it with a rail is its user's business: whether a rail takes memory of a device
 * only trying tells.  A piece of a CUDA device is not registered: transfers see to that.
 *
 * Threads: any; find and look one at a time.
 */
#ifndef WF_PUBLISHER_H
#define WF_PUBLISHER_H

#include "memory/rules.h"
#include "util/sealed.h"

/* Rights to a publisher's memory. */
enum wf_publisher_right {
	WF_PUBLISHER_CPU = 1,  /* the processor reads and writes it; else it is a CUDA device's */
	WF_PUBLISHER_LENDS = 2 /* other processes of this host can map it to read */
};

struct wf_publisher_piece {
	void *base;
	size_t bytes;
	struct wf_sealed file; /* base NULL: other processes can't map it */
	bool anywhere;         /* the system does not let us choose where it lies */
	int device;            /* CUDA device that has the memory; 0 for the host's */
};

struct wf_publisher_ops;

struct wf_publisher {
	const struct wf_publisher_ops *how;
	char name[WF_RULE_NAME_BYTES]; /* name in rules: "p2pmem:0000:3b:00.0" */
	struct wf_topology_place place;
	const struct wf_topology *topology;
	size_t page_bytes;     /* pieces come in multiples of a page */
	int device;            /* CUDA device; 0 where there is none */
	uint64_t stated_bytes; /* size by the rule that made it, or by the device */
	char why_not[WF_ERROR_BYTES]; /* why it can't publish; "": it may, or that is not known */

	/* results of the last look */
	uint64_t bytes, available_bytes;
	bool published;    /* false: no more is given, and what was given stays */

	/* bytes in pieces given out here */
	uint64_t used_bytes;
};

struct wf_publisher_list {
	struct wf_publisher *all;
	size_t count;
	const char *cuda; /* WEFT_CUDA's setting, for find() */
};

/* A kind of publisher.  Every op is present. */
struct wf_publisher_ops {
	const char *kind;
	unsigned rights;

	/* Add the publishers of this kind that there are.  -ENOMEM, -ENODEV with a sentence. */
	int (*find)(struct wf_publisher_list *list, const struct wf_topology *t,
		    const struct wf_rules *rules, struct wf_error *e);

	/*
	 * Set how much there is, and whether it is published; all are 0 on the call.  why_not
	 * may say why it is not published.
	 */
	void (*look)(struct wf_publisher *p);

	/*
	 * Take @bytes, a multiple of the page, all zero or not.  Returns a negative code with a
	 * sentence on an error.
	 */
	int (*take)(const struct wf_publisher *p, size_t bytes, struct wf_publisher_piece *piece,
		    struct wf_error *e);

	void (*give)(struct wf_publisher_piece *piece);

	/* Part a forked child's piece from its parent's: a copy, or no memory at all. */
	void (*forked)(struct wf_publisher_piece *piece);
};

/* All kinds; ends with NULL. */
extern const struct wf_publisher_ops *const wf_publishers[];
extern const struct wf_publisher_ops wf_publish_host, wf_publish_huge, wf_publish_pinned,
	wf_publish_cuda, wf_publish_p2pmem, wf_publish_software;

/* Add a publisher @at a place, as "0" or an address, for find().  -ENOMEM with a sentence. */
int wf_publisher_add(struct wf_publisher_list *list, const struct wf_publisher_ops *how,
		     const char *at, const struct wf_topology_place *place,
		     const struct wf_topology *t, size_t page_bytes, struct wf_error *e);

/* Add a publisher on each NUMA node, of its memory in pages. */
int wf_publisher_add_nodes(struct wf_publisher_list *list, const struct wf_publisher_ops *how,
			   const struct wf_topology *t, struct wf_error *e);

/* Look at @p anew. */
void wf_publisher_look(struct wf_publisher *p);

/*
 * Place @mapped on the publisher's NUMA node, if there are several, and make it the @piece; for
 * take().  A container may not be allowed to choose the node.  On a negative code, with a
 * sentence, @mapped is unmapped.
 */
int wf_publisher_bind(const struct wf_publisher *p, struct wf_publisher_piece *mapped,
		      struct wf_publisher_piece *piece, struct wf_error *e);

/*
 * Let memory that is touched from now on lie on NUMA node @node if there is room: a full node is no
 * reason to be killed.  -EPERM, -ENOSYS: a container may not be allowed to.
 */
int wf_publisher_prefer(void *base, size_t bytes, unsigned node);

/* Unmap a piece that is mapped, or a file of memory; for give(). */
void wf_publisher_unmap(struct wf_publisher_piece *piece);

/* Make a file of memory a copy, for forked(). */
void wf_publisher_unshare(struct wf_publisher_piece *piece);

#endif
