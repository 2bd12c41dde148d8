/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Views: bodies of peers of this host that are read in place, in the peer's memory.
 *
 * A view lasts until it is given back, be the transfer over or the peer dead: nobody writes to
 * its memory until then.  A view is found by its address, as chunks of the pool are.
 *
 * Threads: owner; any for wf_view_give.
 */
#ifndef WF_VIEW_H
#define WF_VIEW_H

#include "link/lease.h"
#include "util/map.h"

struct wf_views {
	struct wf_engine *engine;
	pthread_mutex_t lock; /* guards the map */
	struct wf_map map;    /* views by address */
};

struct wf_view {
	struct wf_map_node node;
	struct wf_lease_hold hold;
	struct wf_views *views;
	struct wf_link *link; /* a reference */
	uint64_t offer;
	uint8_t priority; /* priority of the offer: RELEASED comes after its answer */
	struct wf_loop_task task;
};

int wf_view_init(struct wf_views *views, struct wf_engine *engine);

/* End all views: their memory can't be read any more. */
void wf_view_fini(struct wf_views *views);

/*
 * Map @body, which the peer of @link offers as a view.  -ENOMEM, or as wf_shm_import_hold: the
 * body may still be pulled.
 */
int wf_view_open(struct wf_views *views, struct wf_link *link, const struct wf_body *body,
		 struct wf_view **view);

/* End the view, and tell its owner.  Frees @view. */
void wf_view_close(struct wf_view *view);

/* Close a view that begins at @at, soon.  -EINVAL: there is no such view.  Threads: any. */
int wf_view_give(struct wf_views *views, const void *at);

#endif
