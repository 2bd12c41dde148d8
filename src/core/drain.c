/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/drain.h"

#include <errno.h>

#include "core/node.h"
#include "core/peer_change.h"
#include "link/rights.h"

void wf_drain_up(struct wf_worker *worker, struct wf_link *link)
{
	if (!worker->serving.draining || link->above.drain_told)
		return;
	/* Without memory the peer learns it from the answer to each of its calls. */
	link->above.drain_told = !wf_message_post_small(link, 0, WF_RECORD_DRAIN, 0, 0, 0);
}

static int take_drain(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_record_small small;
	struct wf_error e;

	if (wf_record_small_get(record->bytes, record->count, &small))
		return -EBADMSG;
	if (wf_rights_check(link, WF_ACL_DRAIN, "", 0, &e))
		return 0;
	link->above.drains = true;
	wf_peer_change_note(ctx, link, NULL);
	return 0;
}

void wf_drain_route(struct wf_worker *worker, struct wf_routes *routes)
{
	wf_route_set(routes, WF_RECORD_DRAIN, take_drain, worker);
}

int wf_drain_check(const struct wf_link *link, struct wf_error *e)
{
	return link->above.drains ? wf_error_set(e, -ESHUTDOWN, "%s is draining",
						 wf_link_label(link))
				  : 0;
}

bool wf_drain_serves_none(const struct wf_worker *worker)
{
	return !atomic_load(&worker->engine.counters.served);
}

void wf_drain_wake(struct weft_node *node)
{
	/* Under the lock no thread is between its look at the workers and its sleep. */
	pthread_mutex_lock(&node->lock);
	pthread_cond_broadcast(&node->ended);
	pthread_mutex_unlock(&node->lock);
}

void wf_drain_gone(struct wf_worker *worker)
{
	if (worker->serving.draining && wf_drain_serves_none(worker))
		wf_drain_wake(worker->node);
}
