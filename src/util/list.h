/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A doubly linked list threaded through its members.  A member that is in no list points to
 * itself, so removing it twice is harmless.
 *
 * Threads: the owner of the list.
 */
#ifndef WF_LIST_H
#define WF_LIST_H

#include "util/base.h"

struct wf_list {
	struct wf_list *next, *prev;
};

static inline void wf_list_init(struct wf_list *l)
{
	l->next = l;
	l->prev = l;
}

static inline bool wf_list_empty(const struct wf_list *l)
{
	return l->next == l;
}

static inline void wf_list_insert_before(struct wf_list *at, struct wf_list *node)
{
	node->next = at;
	node->prev = at->prev;
	at->prev->next = node;
	at->prev = node;
}

static inline void wf_list_append(struct wf_list *l, struct wf_list *node)
{
	wf_list_insert_before(l, node);
}

static inline void wf_list_prepend(struct wf_list *l, struct wf_list *node)
{
	wf_list_insert_before(l->next, node);
}

static inline void wf_list_remove(struct wf_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	wf_list_init(node);
}

/* The first member, or NULL. */
static inline struct wf_list *wf_list_first(const struct wf_list *l)
{
	return wf_list_empty(l) ? NULL : l->next;
}

/* Take the first member out and return it, or NULL. */
static inline struct wf_list *wf_list_pop(struct wf_list *l)
{
	struct wf_list *node = wf_list_first(l);

	if (node)
		wf_list_remove(node);
	return node;
}

/* Move every member of @from to the end of @to. */
static inline void wf_list_splice(struct wf_list *to, struct wf_list *from)
{
	if (wf_list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	wf_list_init(from);
}

/* Move all members of @from to @list, which need not be set up.  Returns NULL. */
static inline struct wf_list *wf_list_take(struct wf_list *list, struct wf_list *from)
{
	wf_list_init(list);
	wf_list_splice(list, from);
	return NULL;
}

/* Move the first member of @from to the end of @to.  Returns the member, or NULL. */
static inline struct wf_list *wf_list_move(struct wf_list *to, struct wf_list *from)
{
	struct wf_list *node = wf_list_pop(from);

	if (node)
		wf_list_append(to, node);
	return node;
}

/* Visit all members: @node may be removed inside the loop, other members may not. */
#define WF_LIST_EACH(node, list)                                               \
	for (struct wf_list *node = (list)->next, *node##_next = node->next;   \
	     node != (list); node = node##_next, node##_next = node->next)

/*
 * Visit the members that are there at the start: any member may be removed inside the loop, and
 * those appended there are not visited.  The loop may not be left by break or return.
 */
#define WF_LIST_EACH_OF_NOW(node, list)                                        \
	for (struct wf_list node##_due, *node = wf_list_take(&node##_due, list); \
	     (node = wf_list_move(list, &node##_due));)

#endif
