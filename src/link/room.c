/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/room.h"
#include "link/link.h"
#include "link/internal.h"

/* Returns the room beside tensors that are held, which may be of an earlier life. */
static uint64_t left(const struct wf_link *link)
{
	uint64_t most = link->engine->options.room_bytes;

	return most - WF_MIN(link->room.held, most);
}

void wf_room_begin(struct wf_link *link)
{
	link->room.total = left(link);
}

bool wf_room_take(struct wf_link *link, uint64_t bytes)
{
	link = wf_link_real(link);
	if (link->room.granted - link->room.spent < bytes)
		return false;
	link->room.spent += bytes;
	return true;
}

bool wf_room_use(struct wf_link *link, uint64_t bytes)
{
	if (link->room.total - link->room.used < bytes)
		return false;
	link->room.used += bytes;
	link->room.held += bytes;
	return true;
}

void wf_room_unuse(struct wf_link *link, uint64_t bytes)
{
	link->room.used -= bytes;
	link->room.held -= bytes;
}

void wf_room_give(struct wf_link *link, uint64_t bytes)
{
	struct wf_engine *w = link->engine;

	link = wf_link_real(link);
	link->room.held -= bytes;
	link->room.total = WF_MAX(link->room.total, link->room.used + left(link));
	/*
	 * The next frame tells the total; a frame of its own only when half of it would be unknown
	 * to the peer.
	 */
	if (link->state == WF_LINK_UP &&
	    link->room.total - link->room.told > w->options.room_bytes / 2)
		wf_link_mark(link);
}
