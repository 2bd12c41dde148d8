/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shares: which of its senders each slot of a landing is announced to.
 *
 * A slot is free, announced to one sender, or taken: a tensor is on its way into it or lies there.
 * Only its holder can take it, by the serial of that very announcement.  Senders have equal shares:
 * a free slot goes to the one with the fewest, and announced slots move to one that has two less.
 *
 * Threads: any.
 */
#ifndef WF_CORE_SHARES_H
#define WF_CORE_SHARES_H

#include <pthread.h>
#include "util/list.h"

/* The share of one sender.  Private to shares.c, but for its memory. */
struct wf_share {
	struct wf_list node;      /* in shares->all */
	struct wf_list untold;    /* slots whose announcement is yet to be written */
	struct wf_list told;      /* slots announced */
	struct wf_list withdrawn; /* slots whose withdrawal is yet to be written */
	uint32_t held;            /* slots untold, told, or taken by this sender */
};

struct wf_shares_slot;

struct wf_shares {
	pthread_mutex_t lock;
	/* There is something to tell the sender of @share.  Called under the lock. */
	void (*wake)(struct wf_share *share);
	struct wf_list all;  /* struct wf_share */
	uint32_t share_count;
	struct wf_list free; /* slots */
	uint64_t serial;     /* serial of the last announcement */
	uint32_t count;
	struct wf_shares_slot *slots;
};

#define WF_SHARES_MAX 4096 /* senders of a landing: none has a slot beyond that anyway */
#define WF_SHARES_OF_PEER_MAX 4 /* more than a program needs, and few that a greedy peer can have */
#define WF_SHARES_TOLD_MAX 64 /* in one message, which fits a frame */

/* Words for a sender: slots that it may take, and serials of those it may not take any more. */
struct wf_shares_told {
	uint64_t numbers[WF_SHARES_TOLD_MAX], serials[WF_SHARES_TOLD_MAX];
	uint64_t withdrawn[WF_SHARES_TOLD_MAX];
	size_t count, withdrawn_count;
};

/* Set @s up with @count free slots.  -ENOMEM; or no lock. */
int wf_shares_init(struct wf_shares *s, uint32_t count, void (*wake)(struct wf_share *share));
void wf_shares_fini(struct wf_shares *s);

/* Let a sender in.  -EEXIST: too many shares are @is_same.  -ENOSPC: there are too many of all. */
int wf_shares_join(struct wf_shares *s, struct wf_share *share,
		   bool (*is_same)(const struct wf_share *share, const void *ctx), const void *ctx);

/* Let a sender go: its slots are free, but for those taken. */
void wf_shares_leave(struct wf_shares *s, struct wf_share *share);

/* Take what is to be told to the sender of @share. */
void wf_shares_tell(struct wf_shares *s, struct wf_share *share, struct wf_shares_told *told);

/*
 * Take slot @number for the holder that @is_holder.  False: the slot was not announced to that one
 * by @serial, or is taken; nothing was done.
 */
bool wf_shares_take(struct wf_shares *s, uint64_t number, uint64_t serial,
		    bool (*is_holder)(const struct wf_share *share, const void *ctx),
		    const void *ctx);

/* Undo wf_shares_take(), if the holder is still there. */
void wf_shares_untake(struct wf_shares *s, uint64_t number);

/* Give taken slot @number back: it is free. */
void wf_shares_give(struct wf_shares *s, uint64_t number);

#endif
