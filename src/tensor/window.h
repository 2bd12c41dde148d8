/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows: ranges of this node's memory that peers may read and write while they are open.
 *
 * A peer that knows a window's name asks for a range, which is offered to it (a loan), or pushes
 * a body, which is read into the window.  Only reads of this node ever write a window, so a peer
 * that timed out, died or started anew can't write into memory that is used again; and a loan is
 * an offer like any other, withdrawn when the window closes.
 *
 * Memory of a device is staged where the rail does not reach it: a loan is filled when it is read,
 * and a push has come when its bytes are on the device.  Only a rail that reaches the device has
 * the window as one loan; else each range is lent alone.
 *
 * Windows are of the node: any worker finds them by a table under a lock.  What peers do with one
 * is a use, of the worker that has the peer.  A window is first taken out of the table, then
 * stopped at each worker, and is quiet when no worker has a use of it.
 *
 * Threads: owner, but for the table and what is said of it.
 */
#ifndef WF_WINDOW_H
#define WF_WINDOW_H

#include <pthread.h>
#include <weft/window.h>
#include "transfer/outgoing.h"
#include "transfer/pull.h"
#include "wire/access.h"

/* All open windows of a node. */
struct wf_window_table {
	pthread_mutex_t lock;
	struct wf_table windows;
};

/* The note of a put or get whose body is there. */
struct wf_window_note {
	struct wf_list node; /* for use by whoever has the note */
	void *from;          /* for use by whoever has the note */
	uint32_t number;
	bool of_get;
	bool has_body; /* the note came with a body */
	uint16_t count;
	uint8_t bytes[];
};

/* The part of a window that one worker has. */
struct wf_window_share {
	struct wf_list uses;
	bool stopping;
	/* No use is left, and none comes: called once after wf_window_stop(), maybe inside. */
	void (*quiet)(struct wf_window_share *share);
	void *ctx; /* for use by quiet() */
};

struct wf_windows;

struct wf_window {
	/* set by the owner */
	void *at;
	uint64_t bytes;
	unsigned rights; /* enum weft_window_right */
	const struct wf_kind_body *device; /* the device that has the memory; NULL: the host */
	/*
	 * May @push of the peer of @link be taken?  Asked last, before anything is read.  A note
	 * that comes with it has a place then, until one of the two functions below.  Runs at any
	 * worker.
	 */
	enum weft_status (*admits)(struct wf_window *window, struct wf_windows *at,
				   struct wf_link *link, const struct wf_access_push *push);
	/*
	 * The last body of a put of the peer of @link is there (@counts), or @note, which is taken,
	 * has come after its body; or both.  Runs at any worker.
	 */
	void (*told)(struct wf_window *window, struct wf_windows *at, struct wf_link *link,
		     bool counts, struct wf_window_note *note);
	/* A note that had a place does not come.  Takes @note.  Runs at any worker. */
	void (*not_told)(struct wf_window *window, struct wf_window_note *note);
	/* The window fills from its beginning: what is asked for beyond @filled_bytes is lent later. */
	bool fills;
	uint64_t filled_bytes; /* see wf_window_fill() */
	uint64_t taken_bytes;  /* bytes of loans that peers have read to their end */
	void (*taken)(struct wf_window *window); /* @taken_bytes has grown */
	void *taken_ctx;       /* for use by taken() */

	struct wf_access_name name; /* set by wf_window_add() */
	struct wf_window_share *shares; /* one for each worker */
};

/* The windows as one worker sees them. */
struct wf_windows {
	struct wf_transfer *transfer;
	struct wf_window_table *table;
	struct wf_freelist *pulls; /* spare struct wf_pull */
	const struct wf_terms *terms; /* terms of the node, for all bodies */
	unsigned worker;           /* index of the worker's share in each window */
};

/* Set the table of a node up.  A negative code: no lock. */
int wf_window_table_init(struct wf_window_table *table);
void wf_window_table_fini(struct wf_window_table *table);

/* Set @w up.  Borrows all that it is given. */
void wf_window_init(struct wf_windows *w, struct wf_transfer *t, struct wf_window_table *table,
		    struct wf_freelist *pulls, const struct wf_terms *terms, unsigned worker);

/* Let peers find @window, whose name is made.  -ENOMEM, -ENOSPC.  Threads: any, callback. */
int wf_window_add(struct wf_window_table *table, struct wf_window *window);

/* Let no peer find @window any more.  Threads: any, callback. */
void wf_window_remove(struct wf_window_table *table, struct wf_window *window);

/* Stop all uses of @window, which was removed, at this worker; its share's quiet() follows. */
void wf_window_stop(struct wf_windows *w, struct wf_window *window);

/* Take back what this worker has lent to peers that may get no more, as the list has it now. */
void wf_window_recall(struct wf_windows *w);

/* Lend what waits until the first @bytes of @window are there.  One worker has the node alone. */
void wf_window_fill(struct wf_windows *w, struct wf_window *window, uint64_t bytes);

/* Take PUSH, BLOCKS and ASK records.  -EBADMSG.  -ENOMEM: nothing was done. */
int wf_window_push(struct wf_windows *w, struct wf_link *link, const struct wf_record *record);
int wf_window_blocks(struct wf_link *link, const struct wf_record *record);
int wf_window_ask(struct wf_windows *w, struct wf_link *link, const struct wf_record *record);

/* Take an ASK record of a node that closes, and has no window any more. */
int wf_window_turn_away(struct wf_link *link, const struct wf_record *record);

#endif
