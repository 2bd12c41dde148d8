/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/arena.h"

#include "fabric/rail.h"

void wf_arena_enter(struct wf_list *arenas, struct wf_arena *arena, void *base, size_t bytes)
{
	wf_region_init(&arena->own, base, bytes, WF_ACCESS_LOCAL);
	wf_region_init(&arena->shown, base, bytes, WF_ACCESS_REMOTE_READ);
	arena->own.kind = arena->shown.kind = WF_COUNTERS_USER;
	arena->grants = 0;
	arena->leaving = false;
	wf_list_append(arenas, &arena->node);
}

int wf_arena_register(struct wf_arena *arena, struct wf_rail *rail, struct wf_error *e)
{
	const struct wf_rail_caps *caps = wf_rail_caps(rail);
	struct wf_mr *mr;
	int err = 0;

	if (caps->memory.local)
		err = wf_region_mr(&arena->own, rail, &mr, e);
	if (!err && !caps->memory.reg_cheap)
		err = wf_region_mr(&arena->shown, rail, &mr, e);
	return err;
}

static void end(struct wf_arena *arena)
{
	wf_region_forget(&arena->own, NULL);
	wf_region_forget(&arena->shown, NULL);
	wf_list_remove(&arena->node);
	arena->left(arena);
}

void wf_arena_leave(struct wf_arena *arena)
{
	arena->leaving = true;
	if (!arena->grants)
		end(arena);
}

struct wf_arena *wf_arena_find(const struct wf_list *arenas, const void *at, size_t bytes)
{
	WF_LIST_EACH(node, arenas) {
		struct wf_arena *arena = WF_CONTAINER(node, struct wf_arena, node);
		uintptr_t from = (uintptr_t)at - (uintptr_t)arena->own.base;

		if (!arena->leaving && from <= arena->own.bytes && bytes <= arena->own.bytes - from)
			return arena;
	}
	return NULL;
}

void wf_arena_hold(struct wf_arena *arena)
{
	arena->grants++;
}

void wf_arena_release(struct wf_arena *arena)
{
	if (!--arena->grants && arena->leaving)
		end(arena);
}

void wf_arena_forget(const struct wf_list *arenas, const struct wf_rail *rail)
{
	WF_LIST_EACH(node, arenas) {
		struct wf_arena *arena = WF_CONTAINER(node, struct wf_arena, node);

		wf_region_forget(&arena->own, rail);
		wf_region_forget(&arena->shown, rail);
	}
}
