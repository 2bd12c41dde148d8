/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keepalive: failure detection: heartbeats over the door, and the redial when the door closes.
 *
 * Threads: owner.
 */
#ifndef WF_KEEPALIVE_H
#define WF_KEEPALIVE_H

#include "loop/timer.h"
#include "util/error.h"

struct wf_link;

/*
 * Operations that wait for the peer, and the heartbeats meanwhile.  Both outlive the peer: an
 * operation may wait for the next life, and the first heartbeat of each life begins anew.
 */
struct wf_keepalive {
	unsigned watch_count;      /* operations that wait for this peer */
	uint64_t heard_ns;
	uint64_t beat_number, beat_sent_ns, beat_answered_ns;
	uint64_t beat_step_ns;     /* from the last heartbeat to the next */
	uint64_t silent_ns;        /* since the peer was last heard, as far as we were awake */
	uint64_t unanswered_ns;    /* since the first heartbeat after the peer was last heard */
	struct wf_timer beat_timer;
};

/* A door that has closed and is to come back.  Valid until the peer dies. */
struct wf_keepalive_redial {
	bool under_way;            /* the dial under way is a redial */
	uint64_t until_ns;         /* when a door that closed must be back */
	uint64_t try_ns;           /* time for the next redial; grows when no answer comes */
	struct wf_timer timer;     /* holds the link while it is armed */
};

/* Send heartbeats from now on, as long as something waits for the peer. */
void wf_keepalive_start(struct wf_link *link);

/* Ask through the door whether the peer lives. */
void wf_keepalive_probe(struct wf_link *link);

/* Has the peer answered a probe or a heartbeat after @ns? */
static inline bool wf_keepalive_has_answered(const struct wf_keepalive *keepalive, uint64_t ns)
{
	return keepalive->beat_answered_ns > ns;
}

/*
 * The least time that a body on a shared rail stays when its reader does not answer a withdrawal.
 */
#define WF_KEEPALIVE_LEASE_NS (1500 * WF_NS_PER_MS)

/*
 * May the peer have given this node up, and reused memory that it offered, because this node stood
 * still for @still_ns or its door was closed for so long?  For rails where neither a key nor the
 * end of a connection says so.
 */
bool wf_keepalive_may_be_given_up(const struct wf_link *link, uint64_t still_ns);

void wf_keepalive_beat(struct wf_link *link, uint64_t number, bool answer);
void wf_keepalive_heard(struct wf_link *link);
void wf_keepalive_door_closed(struct wf_link *link, const struct wf_error *e);
void wf_keepalive_redialled(struct wf_link *link);
void wf_keepalive_host_dead(struct wf_link *link);

/* Stop the heartbeats and the redial of @link, whose peer is dead. */
void wf_keepalive_forget(struct wf_link *link);

#endif
