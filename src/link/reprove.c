/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/reprove.h"

#include <errno.h>

#include "link/internal.h"
#include "secure/acl.h"
#include "secure/credentials.h"

/* Doors that close at a time: a handshake takes a millisecond of this thread.  Not tuned. */
#define AT_A_TIME 8
#define PAUSE_NS (20 * WF_NS_PER_MS)

/*
 * Is the peer of @link proven by credentials that hold no more?  A redial has no session before its
 * handshake: what it proves is looked at when it is over.
 */
static bool is_stale(const struct wf_link *link)
{
	return link->conn && !link->redial.under_way &&
	       !wf_conn_is_proven_by(link->conn, link->engine->credentials);
}

static void close_door(struct wf_link *link)
{
	struct wf_error e;

	wf_error_set(&e, -ECONNRESET, "the credentials of this node have changed");
	wf_link_get(link);
	wf_link_close_conn(link);
	wf_keepalive_door_closed(link, &e);
	wf_link_put(link);
}

/* Give the frames of @link new keys, once its door is back.  False: that is still to be done. */
static bool renew_keys(struct wf_link *link)
{
	struct wf_seals *s = &link->seals;

	if (!s->renew)
		return true;
	if (!link->conn || link->redial.under_way || link->state != WF_LINK_UP)
		return false;
	s->renew = false;
	if (!s->on)
		return true;
	wf_counters_add(&link->engine->counters.links_rekeyed, 1);
	wf_link_get(link);
	wf_probe_renew(link);
	wf_link_put(link);
	return true;
}

static void go_on(struct wf_timer *timer)
{
	struct wf_engine *engine = WF_CONTAINER(timer, struct wf_engine, reprove_timer);
	unsigned left = AT_A_TIME;
	bool more = false;

	WF_LIST_EACH(at, &engine->link_list) {
		struct wf_link *link = WF_CONTAINER(at, struct wf_link, node);

		if (!is_stale(link)) {
			more |= !renew_keys(link) || link->redial.under_way;
			continue;
		}
		/* A link that is not up yet is proven, and looked at again. */
		if (wf_link_was_up(link) && left) {
			left--;
			more |= link->seals.renew;
			close_door(link);
		} else {
			more = true;
		}
	}
	if (more)
		wf_loop_timer(&engine->loop, timer, engine->loop.now_ns + PAUSE_NS, go_on);
}

void wf_reprove(struct wf_engine *engine, struct wf_credentials *credentials, struct wf_acl *acl,
		bool reprove)
{
	struct wf_credentials *credentials_before = engine->credentials;
	struct wf_acl *acl_before = engine->acl;

	engine->credentials = credentials ? wf_credentials_get(credentials) : NULL;
	engine->acl = acl ? wf_acl_get(acl) : NULL;
	wf_door_renew(engine->door, engine->credentials);
	wf_credentials_put(credentials_before);
	wf_acl_put(acl_before);
	if (!reprove)
		return;
	WF_LIST_EACH(at, &engine->link_list) {
		struct wf_link *link = WF_CONTAINER(at, struct wf_link, node);

		link->seals.renew = link->dialler && link->seals.known && wf_link_was_up(link);
	}
	wf_loop_timer(&engine->loop, &engine->reprove_timer, engine->loop.now_ns, go_on);
}
