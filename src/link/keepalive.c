/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Failure detection: heartbeats over the door while something waits for the peer, a redial when
 * the door closes, and the process itself on the same host.
 */
#include "link/keepalive.h"
#include "link/link.h"
#include "link/internal.h"

#include <errno.h>
#include <stdio.h>

/*
 * Time for the redial of a peer whose end nobody would tell.  Four redials have begun by then, so
 * that a network which has lost a connection may lose more for a second.
 */
#define REDIAL_WAIT_NS (1500 * WF_NS_PER_MS)
#define REDIAL_TRY_NS (250 * WF_NS_PER_MS)   /* first redial; TCP repeats its SYN after 1 s */
#define REDIAL_PAUSE_NS (100 * WF_NS_PER_MS) /* pause between redials that get no answer */

static bool waiting(const struct wf_link *link)
{
	return wf_link_was_up(link) &&
	       (link->keepalive.watch_count || !wf_list_empty(&link->out.frames) ||
		link->out.waiting || link->out.control_frame);
}

static void send_beat(struct wf_link *link, uint64_t number, bool answer)
{
	struct wf_greet greet = { .kind = WF_GREET_BEAT };

	greet.beat.number = number;
	greet.beat.answer = answer;
	if (link->conn)
		wf_conn_send(link->conn, &greet);
}

void wf_keepalive_probe(struct wf_link *link)
{
	link = wf_link_real(link);
	send_beat(link, ++link->keepalive.beat_number, false);
}

static void beat_in(struct wf_link *link, uint64_t ns);

/*
 * Bring the silence up to date.  A step counts for the time it should have taken, and a bit more
 * on a busy machine: if this node stood still, the peer has had no chance yet.
 */
static void listen(struct wf_link *link)
{
	struct wf_engine *engine = link->engine;
	uint64_t most_ns = link->keepalive.beat_step_ns + engine->options.lost_ns / 8;
	uint64_t step_ns = WF_MIN(engine->loop.now_ns - link->keepalive.beat_sent_ns, most_ns);

	if (link->keepalive.heard_ns >= link->keepalive.beat_sent_ns) {
		link->keepalive.silent_ns =
			WF_MIN(engine->loop.now_ns - link->keepalive.heard_ns, most_ns);
		link->keepalive.unanswered_ns = 0;
		return;
	}
	link->keepalive.silent_ns += step_ns;
	link->keepalive.unanswered_ns += step_ns;
	wf_link_record(link, WF_RECORDER_BEAT_MISSED, link->keepalive.silent_ns / WF_NS_PER_MS, 0);
}

/*
 * Returns how long the peer may still be silent: for the limit since it was heard, and for most of
 * it since it was asked.  When it fell silent in between is not known; a peer that stood still for
 * three quarters of the limit asks before it goes on (wf_keepalive_may_be_given_up).
 */
static uint64_t left_ns(const struct wf_link *link)
{
	uint64_t lost_ns = link->engine->options.lost_ns, asked_ns = lost_ns - lost_ns / 8;

	return WF_MAX(lost_ns - WF_MIN(link->keepalive.silent_ns, lost_ns),
		      asked_ns - WF_MIN(link->keepalive.unanswered_ns, asked_ns));
}

/* Are reads stuck?  The peer lives, but its memory can't be read: nothing else would notice. */
static bool reads_are_stuck(const struct wf_link *link)
{
	return link->state == WF_LINK_UP && link->reads.count &&
	       link->keepalive.beat_answered_ns > link->reads.ns + WF_LINK_READING_NS;
}

static void beat(struct wf_timer *timer)
{
	struct wf_link *link = WF_CONTAINER(timer, struct wf_link, keepalive.beat_timer);
	struct wf_engine *engine = link->engine;
	struct wf_error e;

	if (!waiting(link))
		return;
	listen(link);
	if (!left_ns(link)) {
		wf_error_set(&e, -EHOSTDOWN, "%s has been silent for %.1f s", wf_link_label(link),
			     (double)(engine->loop.now_ns - link->keepalive.heard_ns) /
				     WF_NS_PER_S);
		wf_link_die(link, &e);
		return;
	}
	link->keepalive.beat_sent_ns = engine->loop.now_ns;
	wf_keepalive_probe(link);
	beat_in(link, WF_MIN(engine->options.heartbeat_ns, left_ns(link)));
	wf_lane_look(link);
	if (reads_are_stuck(link))
		wf_link_rail_failed(link, "reads do not end while the peer is alive");
}

static void beat_in(struct wf_link *link, uint64_t ns)
{
	struct wf_engine *engine = link->engine;

	link->keepalive.beat_step_ns = ns;
	wf_loop_timer(&engine->loop, &link->keepalive.beat_timer, engine->loop.now_ns + ns, beat);
}

void wf_keepalive_start(struct wf_link *link)
{
	if (WF_SILENT || link->keepalive.beat_timer.armed || !waiting(link))
		return;
	link->keepalive.beat_sent_ns = 0;
	beat_in(link, link->engine->options.heartbeat_ns);
}

void wf_keepalive_beat(struct wf_link *link, uint64_t number, bool answer)
{
	if (answer)
		link->keepalive.beat_answered_ns = link->engine->loop.now_ns;
	else
		send_beat(link, number, true);
	/*
	 * One of the two waits, maybe for credit that was held back because of what others keep
	 * here.  Nothing else tells this link that they keep less by now, maybe at another worker.
	 */
	if (link->slots.kept_short) {
		link->slots.kept_less = true;
		wf_link_mark(link);
	}
}

void wf_keepalive_heard(struct wf_link *link)
{
	link->keepalive.heard_ns = link->engine->loop.now_ns;
}

/* Have @e say that the peer of @link is gone, and how. */
static void say_gone(const struct wf_link *link, const char *how, struct wf_error *e)
{
	wf_error_set(e, -ECONNRESET, "%s is gone: %s", wf_link_label(link), how);
}

static void lost(struct wf_link *link, const char *how)
{
	struct wf_error e;

	say_gone(link, how, &e);
	wf_link_die(link, &e);
}

/*
 * Returns how long the dialled side waits for the redial of a side with the limit @lost_ns: the
 * dialling side gives up later, and may then reuse memory that it has offered.  With @watched, a
 * process of this host whose end is told, the peer may be frozen: otherwise it is more likely
 * dead.
 */
static uint64_t redial_wait_ns(uint64_t lost_ns, bool watched)
{
	uint64_t wait_ns = WF_MIN(REDIAL_WAIT_NS, lost_ns - lost_ns / 4);

	return watched ? WF_MAX(wait_ns, lost_ns / 2) : wait_ns;
}

static bool may_be_missed(const struct wf_link *link)
{
	const struct wf_engine *engine = link->engine;
	uint64_t lost_ns = engine->options.lost_ns, wait_ns = redial_wait_ns(lost_ns, false);

	return link->dialler && wf_link_was_up(link) && (!link->conn || link->redial.under_way) &&
	       engine->loop.now_ns + lost_ns >= link->redial.until_ns + wait_ns - wait_ns / 4;
}

/*
 * Can withdrawn memory be read on?  Yes where reads ask nobody, or the key is that of a whole
 * slab.
 */
static bool keys_last(const struct wf_rail_caps *caps)
{
	return caps->sync_read || (!caps->connected && !caps->memory.reg_cheap);
}

bool wf_keepalive_may_be_given_up(const struct wf_link *link, uint64_t still_ns)
{
	uint64_t limit_ns = WF_MIN(link->peer->lost_ns, WF_KEEPALIVE_LEASE_NS);

	/*
	 * A rail that is being tried counts, too: for the peer it may have come up, and have
	 * carried offers.  A quarter less: for the way, and for turns that did not look at the
	 * door.
	 */
	return link->on && keys_last(wf_rail_caps(link->on->rail)) &&
	       (still_ns >= limit_ns - limit_ns / 4 || may_be_missed(link));
}

/* End a link whose dialling side has not come back in its time. */
static void not_redialled(struct wf_link *link)
{
	struct wf_error e;

	say_gone(link, "its door closed and it did not dial again", &e);
	if (wf_link_was_up(link))
		wf_link_die(link, &e);
	else
		wf_dial_gone(link, &e);
}

static void redial(struct wf_timer *timer)
{
	struct wf_link *link = WF_CONTAINER(timer, struct wf_link, redial.timer);

	if (!link->conn && link->dialler)
		wf_dial_again(link);
	else if (!link->conn)
		not_redialled(link);
	wf_link_put(link);
}

/* Redial in @ns.  A timer that waits for the door holds the link: nobody else may. */
static void redial_in(struct wf_link *link, uint64_t ns)
{
	struct wf_engine *engine = link->engine;

	if (!link->redial.timer.armed)
		wf_link_get(link);
	wf_loop_timer(&engine->loop, &link->redial.timer, engine->loop.now_ns + ns, redial);
}

void wf_keepalive_redialled(struct wf_link *link)
{
	if (!link->redial.timer.armed)
		return;
	wf_timer_stop(&link->engine->loop.timers, &link->redial.timer);
	wf_link_put(link);
}

void wf_keepalive_forget(struct wf_link *link)
{
	wf_timer_stop(&link->engine->loop.timers, &link->keepalive.beat_timer);
	wf_keepalive_redialled(link);
	link->redial = (struct wf_keepalive_redial){ 0 };
}

/* Redial a link that was up and whose door has closed, or whose redial has failed with @e. */
void wf_keepalive_door_closed(struct wf_link *link, const struct wf_error *e)
{
	struct wf_engine *engine = link->engine;
	char how[WF_ERROR_BYTES];

	wf_link_record(link, WF_RECORDER_DOOR_CLOSED, 0, (uint64_t)e->code);
	if (link->side.host && wf_host_peer_dead(link->side.host)) {
		wf_keepalive_host_dead(link);
		return;
	}
	if (!link->dialler) {
		redial_in(link, redial_wait_ns(link->peer->lost_ns, link->side.host));
		return;
	}
	snprintf(how, sizeof(how), "its door closed and then: %.400s", e->text);
	/* A killed process closes its door before its end is told, and only then is it swept up. */
	if (e->code == -ECONNREFUSED && !link->side.host)
		link->redial.until_ns = WF_MIN(link->redial.until_ns, engine->loop.now_ns);
	if (!link->redial.under_way) {
		link->redial.until_ns = engine->loop.now_ns + engine->options.lost_ns;
		link->redial.try_ns = REDIAL_TRY_NS;
		redial_in(link, 0);
	} else if (engine->loop.now_ns >= link->redial.until_ns) {
		lost(link, how);
	} else {
		redial_in(link, e->code == -ETIMEDOUT ? 0 : REDIAL_PAUSE_NS);
	}
}

void wf_keepalive_host_dead(struct wf_link *link)
{
	wf_host_peer_sweep(link->side.host);
	lost(link, "its process has ended");
}
