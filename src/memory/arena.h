/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arenas: memory of the program's that stays registered, so that sends, receives and windows in it
 * register nothing where registering is dear.
 *
 * A grant within an arena uses its registrations and keeps it: an arena that is to leave does so
 * when the last of these grants ends.  Arenas may overlap; the first that holds a range whole
 * serves it.
 *
 * Threads: owner.
 */
#ifndef WF_ARENA_H
#define WF_ARENA_H

#include "memory/region.h"
#include "util/list.h"

struct wf_arena {
	struct wf_list node;     /* in a list of arenas */
	struct wf_region own;    /* registered for our sends and reads */
	struct wf_region shown;  /* registered for peers to read */
	uint32_t grants;         /* grants that use the arena */
	bool leaving;
	void (*left)(struct wf_arena *arena); /* nothing is registered any more */
};

/* Add the @bytes at @base to @arenas. */
void wf_arena_enter(struct wf_list *arenas, struct wf_arena *arena, void *base, size_t bytes);

/* Register the arena with @rail, if registering there is dear.  Codes as wf_mr_open(). */
int wf_arena_register(struct wf_arena *arena, struct wf_rail *rail, struct wf_error *e);

/* Let the arena go when no grant uses it any more; left follows, maybe inside. */
void wf_arena_leave(struct wf_arena *arena);

/* Returns the arena that holds @bytes at @at, or NULL. */
struct wf_arena *wf_arena_find(const struct wf_list *arenas, const void *at, size_t bytes);

/* Count a grant that uses the arena, or one that did. */
void wf_arena_hold(struct wf_arena *arena);
void wf_arena_release(struct wf_arena *arena);

/* Close the registrations of all arenas with @rail; NULL: with every rail. */
void wf_arena_forget(const struct wf_list *arenas, const struct wf_rail *rail);

#endif
