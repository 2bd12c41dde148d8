/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stage: the way of a body between a device and rails that do not reach it there.
 *
 * It passes through a room in the pool, in pieces (wire/record.h) and in order: byte n of
 * it is at n % room_bytes for a while.  On its way out each piece is filled from the
 * device, and on its way in drained to it, as soon as the owner says that it may be; what
 * fits the room at once does so side by side, while rails move the rest.
 *
 * What another process of this host has on a device needs no room: it is mapped here by a
 * handle, and copied from device to device.
 *
 * A copy can't be called back.  Only when none is under way is a stage quiet: then its
 * body may be reused, and it can be closed.
 *
 * Threads: owner.
 */
#ifndef WF_STAGE_H
#define WF_STAGE_H

#include "memory/kind.h"
#include "transfer/transfer.h"

/* Less is staged before another's memory is opened, or a device's registered; not tuned. */
#define WF_STAGE_DIRECT_BYTES (512 * KIB)
#define WF_STAGE_PIECES 4 /* in the room: filling, moving, draining, and one between; not tuned */

struct wf_stage {
	/* It has come further, has become quiet, or, with @e, has failed: that may be said again. */
	void (*moved)(struct wf_stage *stage, const struct wf_error *e);
	void *owner;

	/* read by the owner */
	uint8_t *room; /* NULL: not taken yet; or where the other's body is mapped */
	uint64_t room_bytes, piece_bytes;
	uint64_t ended; /* of the body, from its beginning: filled or drained */
	struct wf_error why; /* code 0: nothing has failed */

	/* its own */
	struct wf_transfer *transfer;
	const struct wf_kind_body *body;
	enum wf_kind_way way;
	uint64_t bytes;	       /* of the body */
	uint64_t limit;	       /* as far as it may be copied */
	uint64_t begun, over;  /* copies: those between are under way */
	bool follows;	       /* the program's stream has come as far as the body's mark */
	void *import; /* what is mapped; NULL: nothing */
	bool held;
	bool awaited; /* that the program's stream has come so far, though nothing may be copied yet */
	bool stopped, settled; /* settled: its owner knows that the node has closed */
	uint64_t waits_ns;     /* since then for what is under way now */
	struct wf_list node;   /* in transfer->stages */
	struct wf_timer timer;
	struct wf_kind_copy copies[WF_STAGE_PIECES]; /* of piece n: n % WF_STAGE_PIECES */
};

/* For the first @bytes of @body, which is borrowed until it is closed.  -ENOMEM. */
int wf_stage_open(struct wf_transfer *t, const struct wf_kind_body *body, uint64_t bytes,
		  enum wf_kind_way way, struct wf_stage **stage);

/*
 * Is a rail of @caps, whose NIC may reach the device, to do so?  Not if it has to go through the
 * link between NUMA nodes, as a rule the slower way, nor for a short body; but
 * @only: there is nothing else.
 */
bool wf_stage_is_reached(const struct wf_stage *stage, const struct wf_caps *caps, bool only);

/* Has the program's stream come as far as the body's mark?  If not, moved says so when it has. */
bool wf_stage_ready(struct wf_stage *stage);

/* Harmless when it has one.  -EAGAIN: the pool has none now.  -ENOBUFS, -ENOMEM with a sentence. */
int wf_stage_take_room(struct wf_stage *stage, struct wf_error *e);

/*
 * The body is at @offset of what another process has given the @handle of: it is copied from
 * there, and the room given back.  For one on its way in, of which nothing was copied.  @handle
 * is WF_BODY_HANDLE_BYTES.  A negative code with a sentence: it is as before.
 */
int wf_stage_import(struct wf_stage *stage, const uint8_t *handle, uint64_t offset,
		    struct wf_error *e);

/* One that is quiet: back to the pool with it, or what is mapped is the other's again.  Harmless without. */
void wf_stage_give_room(struct wf_stage *stage);

/* Its owner may have given up what is mapped: begin no copy until that is known. */
void wf_stage_hold(struct wf_stage *stage, bool hold);

/* The first @limit bytes may be copied, which never becomes less; moved is never called inside. */
void wf_stage_go(struct wf_stage *stage, uint64_t limit);

/*
 * The first @bytes need no copy, because a rail has reached the device itself.  Where a piece
 * begins, or the end; of one that is quiet.
 */
void wf_stage_skip(struct wf_stage *stage, uint64_t bytes);

/* Begin no copy any more: it becomes quiet.  Accepts NULL. */
void wf_stage_stop(struct wf_stage *stage);
bool wf_stage_quiet(const struct wf_stage *stage);

/* One that is quiet.  Accepts NULL. */
void wf_stage_close(struct wf_stage *stage);

/* Of all there are. */
bool wf_stage_all_quiet(const struct wf_transfer *t);

/*
 * The node closes: wait for what is under way, and have what is not over fail; so does what is
 * begun after that.
 */
void wf_stage_settle(struct wf_transfer *t);

#endif
