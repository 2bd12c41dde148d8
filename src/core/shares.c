/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/shares.h"

#include <errno.h>
#include <stdlib.h>

struct wf_shares_slot {
	struct wf_list node;      /* in a list of shares or of the holder, unless taken */
	struct wf_share *holder;  /* NULL: free, or taken by a sender that has gone */
	uint64_t serial;          /* serial of the last announcement */
	bool taken;
	/* An earlier announcement that was withdrawn, while its sender has not been told. */
	struct wf_list withdrawn; /* in the list of that sender */
	uint64_t withdrawn_serial;
};

static struct wf_shares_slot *slot_of(struct wf_list *node)
{
	return WF_CONTAINER(node, struct wf_shares_slot, node);
}

static struct wf_share *share_of(struct wf_list *node)
{
	return WF_CONTAINER(node, struct wf_share, node);
}

int wf_shares_init(struct wf_shares *s, uint32_t count, void (*wake)(struct wf_share *share))
{
	int err;

	*s = (struct wf_shares){ .wake = wake, .count = count };
	s->slots = calloc(count, sizeof(s->slots[0]));
	if (!s->slots)
		return -ENOMEM;
	err = -pthread_mutex_init(&s->lock, NULL);
	if (err) {
		free(s->slots);
		return err;
	}
	wf_list_init(&s->all);
	wf_list_init(&s->free);
	for (uint32_t i = 0; i < count; i++) {
		wf_list_init(&s->slots[i].withdrawn);
		wf_list_init(&s->slots[i].node);
		wf_list_append(&s->free, &s->slots[i].node);
	}
	return 0;
}

void wf_shares_fini(struct wf_shares *s)
{
	pthread_mutex_destroy(&s->lock);
	free(s->slots);
}

/* Sharing.  All of it is under the lock. */

/* Returns an announced slot of @share that may be withdrawn; NULL: none for now. */
static struct wf_shares_slot *withdrawable(const struct wf_share *share)
{
	struct wf_list *untold = wf_list_first(&share->untold);

	/* Best one that its holder does not know of. */
	if (untold)
		return slot_of(untold);
	/* A sender uses first what came first: the last one is looked at first. */
	for (struct wf_list *at = share->told.prev; at != &share->told; at = at->prev)
		if (wf_list_empty(&slot_of(at)->withdrawn))
			return slot_of(at);
	return NULL;
}

/* Returns the share with the fewest slots, the one longest without a new one; NULL: none. */
static struct wf_share *poorest(const struct wf_shares *s)
{
	struct wf_share *found = NULL;

	WF_LIST_EACH(at, &s->all)
		if (!found || share_of(at)->held < found->held)
			found = share_of(at);
	return found;
}

/* Returns the share with the most slots among those that can give one up; NULL: none. */
static struct wf_share *richest(const struct wf_shares *s)
{
	struct wf_share *found = NULL;

	WF_LIST_EACH(at, &s->all)
		if ((!found || share_of(at)->held > found->held) && withdrawable(share_of(at)))
			found = share_of(at);
	return found;
}

static uint32_t most(const struct wf_shares *s)
{
	return (s->count + s->share_count - 1) / s->share_count;
}

static void announce(struct wf_shares *s, struct wf_shares_slot *slot, struct wf_share *to)
{
	slot->serial = ++s->serial;
	slot->holder = to;
	to->held++;
	wf_list_append(&to->untold, &slot->node);
	wf_list_remove(&to->node);
	wf_list_append(&s->all, &to->node);
	s->wake(to);
}

/* Announce what is free. */
static void deal(struct wf_shares *s)
{
	struct wf_share *to;

	while (!wf_list_empty(&s->free) && (to = poorest(s)) && to->held < most(s))
		announce(s, slot_of(wf_list_pop(&s->free)), to);
}

static void release(struct wf_shares *s, struct wf_shares_slot *slot)
{
	wf_list_remove(&slot->node);
	if (slot->holder)
		slot->holder->held--;
	slot->holder = NULL;
	slot->taken = false;
	wf_list_append(&s->free, &slot->node);
}

/* Free an announced slot of @from, which has one that may be withdrawn. */
static void withdraw(struct wf_shares *s, struct wf_share *from)
{
	bool told = wf_list_empty(&from->untold);
	struct wf_shares_slot *slot = withdrawable(from);

	if (told) {
		slot->withdrawn_serial = slot->serial;
		wf_list_append(&from->withdrawn, &slot->withdrawn);
	}
	release(s, slot);
	if (told)
		s->wake(from);
}

/* Move announced slots from the share with the most to that with the fewest. */
static void level(struct wf_shares *s)
{
	struct wf_share *from, *to;

	for (;;) {
		deal(s);
		from = richest(s);
		to = poorest(s);
		if (!from || to->held + 1 >= from->held)
			return;
		withdraw(s, from);
		announce(s, slot_of(wf_list_pop(&s->free)), to);
	}
}

/* Senders */

int wf_shares_join(struct wf_shares *s, struct wf_share *share,
		   bool (*is_same)(const struct wf_share *share, const void *ctx), const void *ctx)
{
	unsigned same = 0;
	int err = 0;

	wf_list_init(&share->node);
	wf_list_init(&share->untold);
	wf_list_init(&share->told);
	wf_list_init(&share->withdrawn);
	share->held = 0;
	pthread_mutex_lock(&s->lock);
	WF_LIST_EACH(at, &s->all)
		same += is_same(share_of(at), ctx);
	if (same >= WF_SHARES_OF_PEER_MAX)
		err = -EEXIST;
	else if (s->share_count == WF_SHARES_MAX)
		err = -ENOSPC;
	if (!err) {
		wf_list_append(&s->all, &share->node);
		s->share_count++;
		level(s);
	}
	pthread_mutex_unlock(&s->lock);
	return err;
}

void wf_shares_leave(struct wf_shares *s, struct wf_share *share)
{
	struct wf_list *node;

	pthread_mutex_lock(&s->lock);
	wf_list_remove(&share->node);
	s->share_count--;
	while ((node = wf_list_first(&share->untold)) || (node = wf_list_first(&share->told)))
		release(s, slot_of(node));
	while (wf_list_pop(&share->withdrawn))
		;
	for (uint32_t i = 0; i < s->count && share->held; i++) {
		if (s->slots[i].holder != share)
			continue;
		s->slots[i].holder = NULL;
		share->held--;
	}
	if (s->share_count)
		level(s);
	pthread_mutex_unlock(&s->lock);
}

void wf_shares_tell(struct wf_shares *s, struct wf_share *share, struct wf_shares_told *told)
{
	struct wf_list *node;

	told->count = told->withdrawn_count = 0;
	pthread_mutex_lock(&s->lock);
	while (told->withdrawn_count < WF_SHARES_TOLD_MAX && (node = wf_list_pop(&share->withdrawn)))
		told->withdrawn[told->withdrawn_count++] =
			WF_CONTAINER(node, struct wf_shares_slot, withdrawn)->withdrawn_serial;
	/* New holders of those slots may lose them, too, from now on. */
	if (told->withdrawn_count && s->share_count)
		level(s);
	while (told->count < WF_SHARES_TOLD_MAX && (node = wf_list_move(&share->told, &share->untold))) {
		told->numbers[told->count] = (uint64_t)(slot_of(node) - s->slots);
		told->serials[told->count++] = slot_of(node)->serial;
	}
	pthread_mutex_unlock(&s->lock);
}

/* Slots */

bool wf_shares_take(struct wf_shares *s, uint64_t number, uint64_t serial,
		    bool (*is_holder)(const struct wf_share *share, const void *ctx),
		    const void *ctx)
{
	struct wf_shares_slot *slot;
	bool takes;

	if (number >= s->count)
		return false;
	slot = &s->slots[number];
	pthread_mutex_lock(&s->lock);
	takes = !slot->taken && slot->holder && slot->serial == serial &&
		is_holder(slot->holder, ctx);
	if (takes) {
		slot->taken = true;
		wf_list_remove(&slot->node);
	}
	pthread_mutex_unlock(&s->lock);
	return takes;
}

void wf_shares_untake(struct wf_shares *s, uint64_t number)
{
	struct wf_shares_slot *slot = &s->slots[number];

	pthread_mutex_lock(&s->lock);
	if (slot->holder) {
		slot->taken = false;
		wf_list_append(&slot->holder->told, &slot->node);
	} else {
		release(s, slot);
		if (s->share_count)
			deal(s);
	}
	pthread_mutex_unlock(&s->lock);
}

void wf_shares_give(struct wf_shares *s, uint64_t number)
{
	pthread_mutex_lock(&s->lock);
	release(s, &s->slots[number]);
	if (s->share_count)
		deal(s);
	pthread_mutex_unlock(&s->lock);
}
