/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Routes: which function takes the records of each type.
 *
 * Each floor above sets the routes of the types that it owns, before the worker opens;
 * credit that is given back is link's own.  A record without a route makes no sense.
 *
 * Threads: setup for the routes, owner for records.
 */
#ifndef WF_ROUTE_H
#define WF_ROUTE_H

#include <errno.h>
#include "wire/pack.h"
#include "wire/record.h"

struct wf_link;

struct wf_route {
	/*
	 * Take a whole record of @link; its bytes are gone on return.  -EBADMSG (the record makes
	 * no sense): the link ends.  -ENOMEM: nothing was done, and the record comes again.
	 */
	int (*take)(void *ctx, struct wf_link *link, const struct wf_record *record);
	void *ctx;
};

struct wf_routes {
	struct wf_route of[WF_RECORD_RETURNED + 1]; /* take NULL: no floor owns the type */
};

static inline void wf_route_set(struct wf_routes *routes, enum wf_record_type type,
				int (*take)(void *ctx, struct wf_link *link,
					    const struct wf_record *record),
				void *ctx)
{
	routes->of[type] = (struct wf_route){ take, ctx };
}

static inline int wf_route_record(const struct wf_routes *routes, struct wf_link *link,
				  const struct wf_record *record)
{
	const struct wf_route *route;

	if (record->type >= WF_COUNT(routes->of))
		return -EBADMSG;
	route = &routes->of[record->type];
	return route->take ? route->take(route->ctx, link, record) : -EBADMSG;
}

#endif
