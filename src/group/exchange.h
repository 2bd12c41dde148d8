/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exchange: one collective in one process, as a list of sends and receives, and of cells, where what
 * comes is combined.
 *
 * Whoever makes an exchange fills its list; then it runs by itself: receives and sends begin at
 * once, but receives for cells a few cells at a time; a cell is combined when all for it has come,
 * and sends that wait for a cell begin then.  The first failure ends the exchange here and
 * everywhere, by aborting the group's step.
 *
 * Threads: the maker's alone until wf_exchange_launch(); any worker's then.
 */
#ifndef WF_GROUP_EXCHANGE_H
#define WF_GROUP_EXCHANGE_H

#include <weft/weft.h>
#include "group/reduce.h"

/* Names of collectives, each of which has tensors of a rank of its own, so that two do not mix. */
enum wf_exchange_kind {
	WF_EXCHANGE_BARRIER,
	WF_EXCHANGE_ALL_REDUCE,
	WF_EXCHANGE_REDUCE,
	WF_EXCHANGE_REDUCE_SCATTER,
	WF_EXCHANGE_ALL_GATHER,
	WF_EXCHANGE_GATHER,
	WF_EXCHANGE_SCATTER,
	WF_EXCHANGE_ALL_TO_ALL,
	WF_EXCHANGE_BROADCAST,
};

#define WF_EXCHANGE_AT_ONCE UINT32_MAX /* a send that waits for no cell */

struct wf_exchange;

/*
 * Make an exchange of @kind for @group, of at most @transfers sends and receives and @cells cells.
 * Failures are recorded.
 */
int wf_exchange_new(struct weft_group *group, enum wf_exchange_kind kind, size_t transfers,
		    size_t cells, struct wf_exchange **x);

/*
 * Add a cell, which combines @own of this process with what comes from all other ranks, of @count
 * elements, to @out, by @reduce.  The next receives are the cell's, one of each other rank in their
 * order.  Returns the cell's number.
 */
uint32_t wf_exchange_cell(struct wf_exchange *x, const struct wf_reduce *reduce, const void *own,
			  void *out, size_t count);

/* Add a receive of @bytes from @rank, with the number @tag, into the cell that was added last. */
void wf_exchange_recv_for_cell(struct wf_exchange *x, uint32_t rank, uint32_t tag, size_t bytes);

/* Add a receive of @bytes from @rank, with the number @tag, to @into. */
void wf_exchange_recv(struct wf_exchange *x, uint32_t rank, uint32_t tag, void *into,
		      size_t bytes);

/*
 * Add a send of @bytes at @data to @rank, with the number @tag, once cell @after is combined, or
 * WF_EXCHANGE_AT_ONCE.
 */
void wf_exchange_send(struct wf_exchange *x, uint32_t rank, uint32_t tag, const void *data,
		      size_t bytes, uint32_t after);

/*
 * Let @cell wait until the send that was added last has ended, too: its data is where the cell's
 * result goes.
 */
void wf_exchange_hold(struct wf_exchange *x, uint32_t cell);

/* Begin @x, which is the operation's from now on, also on failure; recorded. */
int wf_exchange_launch(struct wf_exchange *x, const struct weft_op_options *options,
		       struct weft_op **op);

/* Free @x, which was not launched. */
void wf_exchange_drop(struct wf_exchange *x);

#endif
