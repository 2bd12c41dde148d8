/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A publisher: memory of one place, of which pieces are given out: that of a NUMA
 * node, or what a device offers to its peers.
 *
 * Each kind is a row of ops.  A piece that the processor reaches is mapped here, and
 * registering it with a rail is its user's business: whether a rail takes memory of a device
 * only trying tells.  One of a CUDA device is registered for nobody: transfers see to that.
 *
 * Threads: any; of find and look one at a time.
 */
#ifndef WF_PUBLISHER_H
#define WF_PUBLISHER_H

#include "memory/rules.h"
#include "util/sealed.h"

/* What may be done with its memory. */
enum wf_publisher_right {
	WF_PUBLISHER_CPU = 1,  /* the processor reads and writes it; all else is of a CUDA device */
	WF_PUBLISHER_LENDS = 2 /* others of this host can map it to read */
};

struct wf_piece {
	void *base;
	size_t bytes;
	struct wf_sealed file; /* base NULL: others can't map it */
	bool anywhere;         /* the system does not let us say where it lies */
	int device;            /* of CUDA, whose memory it is; 0 where that is the host's */
};

struct wf_publish;

struct wf_publisher {
	const struct wf_publish *how;
	char name[WF_RULE_NAME_BYTES]; /* as rules name it: "p2pmem:0000:3b:00.0" */
	struct wf_place place;
	const struct wf_topology *topology;
	size_t page_bytes;     /* pieces come in multiples of it */
	int device;            /* of CUDA; 0 where it is none */
	uint64_t stated_bytes; /* by the rule that made it, or the device */
	char why_not[WF_ERROR_BYTES]; /* it can't publish; "": it may, or that is not known */

	/* as it was last looked at */
	uint64_t bytes, available_bytes;
	bool published;    /* no: it gives nothing any more, and what it gave stays */

	/* what was given out here */
	uint64_t used_bytes;
};

struct wf_publisher_list {
	struct wf_publisher *all;
	size_t count;
	const char *cuda; /* for find(): WEFT_CUDA's setting */
};

/* A kind of publisher.  Every op is present. */
struct wf_publish {
	const char *kind;
	unsigned rights;

	/* Add those that there are.  -ENOMEM, -ENODEV with a sentence. */
	int (*find)(struct wf_publisher_list *list, const struct wf_topology *t,
		    const struct wf_rules *rules, struct wf_error *e);

	/*
	 * See how much there is, and whether it is published.  All 0 on the call.  Where there
	 * is more to say than that it is not, that stands in why_not.
	 */
	void (*look)(struct wf_publisher *p);

	/* @bytes, a multiple of its page, all zero or not.  A negative code with a sentence. */
	int (*take)(const struct wf_publisher *p, size_t bytes, struct wf_piece *piece,
		    struct wf_error *e);

	void (*give)(struct wf_piece *piece);

	/* In a forked child: what it writes there is not its parent's any more, or it has none of it. */
	void (*forked)(struct wf_piece *piece);
};

/* NULL ends them. */
extern const struct wf_publish *const wf_publishers[];
extern const struct wf_publish wf_publish_host, wf_publish_huge, wf_publish_pinned,
	wf_publish_cuda, wf_publish_p2pmem, wf_publish_software;

/* For find(): a publisher @at a place, as "0" or an address.  -ENOMEM with a sentence. */
int wf_publisher_add(struct wf_publisher_list *list, const struct wf_publish *how, const char *at,
		     const struct wf_place *place, const struct wf_topology *t, size_t page_bytes,
		     struct wf_error *e);

/* One on each NUMA node, of its memory in pages. */
int wf_publisher_add_nodes(struct wf_publisher_list *list, const struct wf_publish *how,
			   const struct wf_topology *t, struct wf_error *e);

/* Look at @p anew. */
void wf_publisher_look(struct wf_publisher *p);

/*
 * For take(): @mapped is to lie on the publisher's NUMA node, if there are several, and
 * then is the @piece.  A container may not be allowed to say so.  A negative code with a
 * sentence: it is unmapped.
 */
int wf_publisher_bind(const struct wf_publisher *p, struct wf_piece *mapped,
		      struct wf_piece *piece, struct wf_error *e);

/* For give() and forked(): what is mapped, or a file of memory. */
void wf_publisher_unmap(struct wf_piece *piece);
void wf_publisher_unshare(struct wf_piece *piece);

#endif
