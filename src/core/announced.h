/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Announced: the slots of a peer's landing that are announced to this node, by a stream that is
 * opened when the first push needs one, and the pushes that wait for one.
 *
 * A slot is used once.  One whose push failed is kept: the owner may not know of the push.  If the
 * owner does, it refuses the next push into that slot, which waits for another then.
 *
 * Threads: owner, the worker of the peer.
 */
#ifndef WF_CORE_ANNOUNCED_H
#define WF_CORE_ANNOUNCED_H

#include <weft/weft.h>
#include "util/error.h"
#include "util/list.h"

struct wf_access_name;
struct wf_announced;

/* A slot that this node may push into.  Freed by free(). */
struct wf_announced_slot {
	struct wf_list node; /* in announced->slots; for whoever has the slot, else */
	uint32_t number;
	uint64_t serial, bytes;
};

/* A push that waits.  One of the two functions follows, unless it leaves the line. */
struct wf_announced_wait {
	struct wf_list node;
	/* Here is @slot, the waiter's own. */
	void (*come)(struct wf_announced_wait *wait, struct wf_announced_slot *slot);
	/* None comes, because of @e. */
	void (*fail)(struct wf_announced_wait *wait, const struct wf_error *e);
};

struct wf_announced {
	/* set by the owner; the rest is zero but for what wf_announced_init() sets */
	struct weft_peer *peer;
	const struct wf_access_name *name;
	void (*closed)(struct wf_announced *a); /* closing is over */

	struct weft_stream *stream; /* NULL: none, or it has failed */
	unsigned busy;              /* operations of streams that have not ended */
	uint64_t heard_ns;          /* time of the owner's last word, or of the call without one */
	bool closing;
	bool matching;              /* slots are being given to those who wait */
	uint32_t count;
	struct wf_list slots;       /* the longest here first */
	struct wf_list waiting;     /* struct wf_announced_wait */
};

void wf_announced_init(struct wf_announced *a, struct weft_peer *peer,
		       const struct wf_access_name *name, void (*closed)(struct wf_announced *a));

/* Get a slot for @wait, now or later; @first: before all others that wait. */
void wf_announced_await(struct wf_announced *a, struct wf_announced_wait *wait, bool first);

/* Let @wait leave the line. */
void wf_announced_leave(struct wf_announced_wait *wait);

/*
 * Note that a push has waited in vain until its deadline.  An owner without memory may have ended
 * the call and not been able to say so: a stream on which nothing was heard for @silent_ns is
 * opened anew.  Sooner it is not, however short the deadlines are: the answer may be on its way,
 * and an owner that has not got the cancel yet counts both streams, and has a limit for them.
 */
void wf_announced_late(struct wf_announced *a, uint64_t silent_ns);

/* Keep @slot, into which nothing was pushed for all that is known here. */
void wf_announced_keep(struct wf_announced *a, struct wf_announced_slot *slot);

/* Give all slots up, with nobody waiting.  closed() follows, maybe inside. */
void wf_announced_close(struct wf_announced *a);

/* Free what is left, as the node has closed. */
void wf_announced_fini(struct wf_announced *a);

#endif
