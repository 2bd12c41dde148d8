/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The door side of a link: dialling with patience, and the greeting.
 *
 * A hello proves nothing about its sender.  Only a link that was dialled to an address stands for
 * that address, and two links have one peer only by proof: see same.c.  The incarnation says at
 * which worker a peer is met, so that there can be a proof.
 */
#include "link/dial.h"
#include "link/link.h"
#include "link/internal.h"
#include "link/reprove.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "secure/credentials.h"
#include "util/clock.h"
#include "util/random.h"
#include "util/status.h"

#define DIAL_PAUSE_NS (20 * WF_NS_PER_MS) /* first pause; it doubles */
#define DIAL_PAUSE_MAX_NS WF_NS_PER_S
#define HANDSHAKE_TIMES 4 /* WEFT_LOST for a handshake; not tuned */
#define REFUSED_NS (WF_REPROVE_LOOK_NS + WF_REPROVE_LOOK_NS / 2)
#define HOME_NS (5 * WF_NS_PER_MS) /* pause between looks whether another worker has the peer */
#define HOME_MAX_NS (100 * WF_NS_PER_MS) /* time for the peer to move its dial; not tuned */

static void dial_timer(struct wf_timer *timer);
static void answer_late(struct wf_timer *timer);

static void fill_hello(struct wf_link *link, struct wf_greet *greet)
{
	struct wf_engine *engine = link->engine;
	struct wf_greet_hello *h = &greet->hello;

	memset(greet, 0, sizeof(*greet));
	greet->kind = WF_GREET_HELLO;
	h->wire_min = WF_WIRE_VERSION;
	h->wire_max = WF_WIRE_VERSION;
	memcpy(h->incarnation, engine->directory->incarnation, sizeof(h->incarnation));
	snprintf(h->name, sizeof(h->name), "%s", engine->name);
	snprintf(h->address, sizeof(h->address), "%s", engine->address);
	snprintf(h->security, sizeof(h->security), "%s", wf_options_security(&engine->options));
	h->cipher = wf_seal_preferred();
	h->side = engine->sidedoor ? wf_host_number(engine->host) : 0;
	h->manual = engine->manual;
	h->link = link->id;
	h->token = link->token;
	h->lost_ns = engine->options.lost_ns;
	h->record_bytes_max = WF_LINK_RECORD_BYTES_MAX;
	h->checksums = WF_BODY_SUM_XXH3;
	h->compressions = WF_COMPRESSION_ZSTD;
	h->lanes = WF_LANES_MAX;
	h->checksum = engine->options.checksum;
	if (link->redial.under_way) {
		h->resume_link = link->peer->link;
		h->resume_token = link->peer->token;
	}
	h->rail_count = engine->rail_count;
	for (uint32_t i = 0; i < engine->rail_count; i++) {
		const struct wf_rail_caps *caps = wf_rail_caps(engine->rails[i].rail);
		struct wf_greet_rail *r = &h->rails[i];

		snprintf(r->provider, sizeof(r->provider), "%s", caps->provider);
		r->libfabric = caps->libfabric;
		r->protocol = caps->protocol;
		r->protocol_version = caps->protocol_version;
		r->frame_bytes = caps->frame_bytes;
		r->connected = caps->connected;
		r->same_host = caps->same_host;
		/* An address that tells of the host goes by the side door alone. */
		if (caps->same_host)
			r->edition = engine->rails[i].edition;
		else
			r->address_bytes =
				(uint32_t)wf_rail_address(engine->rails[i].rail, r->address);
	}
}

/* Send our hello; a second one, because our rails have changed, tells just that. */
void wf_dial_tell(struct wf_link *link)
{
	struct wf_greet greet;

	fill_hello(link, &greet);
	wf_conn_send(link->conn, &greet);
}

static void refuse(struct wf_conn *conn, enum weft_status status, const char *text)
{
	struct wf_greet greet = { .kind = WF_GREET_REFUSE };

	greet.refuse.status = status;
	snprintf(greet.refuse.text, sizeof(greet.refuse.text), "%s", text);
	wf_conn_send(conn, &greet);
	wf_conn_close(conn);
}

/*
 * Returns when a peer that is dialled is given up.  A peer that was there before, and one that is
 * past its time, has one more dial, as long as silence may last.
 */
static uint64_t until_ns(const struct wf_link *link)
{
	const struct wf_engine *engine = link->engine;
	uint64_t until = link->redial.under_way ? link->redial.until_ns : link->dial.until_ns;

	return until > engine->loop.now_ns ? until : engine->loop.now_ns + engine->options.lost_ns;
}

/* Returns when a dial without an answer is over; the system itself would try for minutes. */
static uint64_t answer_until_ns(struct wf_link *link)
{
	uint64_t try_until = link->engine->loop.now_ns + link->redial.try_ns;

	if (!link->redial.under_way)
		return until_ns(link);
	link->redial.try_ns += link->redial.try_ns / 2;
	return WF_MIN(until_ns(link), try_until);
}

/* No dial helps against another user's port, nor without the right key or certificate. */
static bool is_refusal(int code)
{
	return code == -EACCES || code == -EKEYREJECTED;
}

/*
 * Is a refusal because of @code the last word?  One of a key is not at first: either end may be
 * about to look at its key file, where there is a new one.
 */
static bool is_final(struct wf_link *link, int code)
{
	const struct wf_engine *engine = link->engine;

	if (code != -EKEYREJECTED || !wf_credentials_have_key(engine->credentials))
		return is_refusal(code);
	if (!link->dial.refused_ns)
		link->dial.refused_ns = engine->loop.now_ns;
	return engine->loop.now_ns - link->dial.refused_ns >= REFUSED_NS;
}

/* End @link: dialling is given up because of @e, or because its time, if @timed, is up. */
static void give_up(struct wf_link *link, bool timed, const struct wf_error *e)
{
	char span[64] = "";
	struct wf_error why;

	if (timed)
		snprintf(span, sizeof(span), " in %.3g s (WEFT_CONNECT_TIMEOUT)",
			 (double)link->engine->options.connect_ns / WF_NS_PER_S);
	wf_error_set(&why, is_refusal(e->code) ? e->code : -EHOSTUNREACH,
		     "%s can't be reached%s: %s", wf_link_label(link), span, e->text);
	link->probe.tried[0] = '\0'; /* the reason is in @why, and one line of the log has both */
	wf_link_die(link, &why);
}

/* Dial again after a pause, or give up: a dial has failed, or what it led to. */
static void again_or_die(struct wf_link *link, const struct wf_error *e)
{
	struct wf_engine *engine = link->engine;
	uint64_t pause = link->dial.pause_ns;

	if ((link->dial.met && e->code == -ECONNREFUSED) || is_final(link, e->code)) {
		give_up(link, false, e);
		return;
	}
	if (engine->loop.now_ns >= link->dial.until_ns) {
		give_up(link, link->dial.until_ns, e);
		return;
	}
	wf_log(&engine->log, WF_LOG_DEBUG, "%s: the dial failed and another follows: %s",
	       wf_link_label(link), e->text);
	wf_link_forget_peer(link);
	wf_link_record(link, WF_RECORDER_DIAL_FAILED, pause / WF_NS_PER_MS, (uint64_t)e->code);
	snprintf(link->probe.tried, sizeof(link->probe.tried), "%s", e->text);
	link->state = WF_LINK_DIALLING;
	wf_link_renew(link);
	link->dial.pause_ns = WF_MIN(2 * pause, DIAL_PAUSE_MAX_NS);
	/* Between half and all of the pause, so that many peers don't come at once. */
	pause = pause / 2 + wf_random_u64() % (pause / 2);
	wf_loop_timer(&engine->loop, &link->dial.timer,
		      WF_MIN(engine->loop.now_ns + pause, until_ns(link)), dial_timer);
}

static void dial(struct wf_link *link)
{
	struct wf_engine *engine = link->engine;
	struct wf_error e;

	wf_link_record(link, WF_RECORDER_DIAL, 0, 0);
	wf_log(&engine->log, WF_LOG_DEBUG, "%s: this node dials %s", wf_link_label(link),
	       link->address);
	if (!wf_door_dial(engine->door, link->address, link, &link->conn, &e)) {
		wf_link_get(link);
		/*
		 * The hello is queued at once, though it leaves only when the dial is through:
		 * before anything else.
		 */
		wf_dial_tell(link);
		wf_loop_timer(&engine->loop, &link->dial.timer, answer_until_ns(link), answer_late);
	} else if (link->redial.under_way) {
		wf_keepalive_door_closed(link, &e);
	} else {
		again_or_die(link, &e);
	}
}

static void dial_timer(struct wf_timer *timer)
{
	dial(WF_CONTAINER(timer, struct wf_link, dial.timer));
}

void wf_dial_start(struct wf_link *link)
{
	struct wf_engine *engine = link->engine;

	if (!link->address[0])
		return;
	link->dialler = true;
	link->state = WF_LINK_DIALLING;
	link->dial.pause_ns = DIAL_PAUSE_NS;
	link->dial.refused_ns = 0;
	link->dial.until_ns = link->dial.met ? 0 : engine->loop.now_ns + engine->options.connect_ns;
	/*
	 * The dial starts from the loop, so that no function of the door is called inside another.
	 */
	wf_loop_timer(&engine->loop, &link->dial.timer, engine->loop.now_ns, dial_timer);
}

void wf_dial_again(struct wf_link *link)
{
	link->redial.under_way = true;
	dial(link);
}

void wf_dial_anew(struct wf_link *link, const struct wf_error *e)
{
	wf_link_get(link);
	wf_link_close_conn(link);
	if (link->redial.under_way)
		wf_keepalive_door_closed(link, e);
	else
		again_or_die(link, e);
	wf_link_put(link);
}

/* End our dial, which has led to nothing yet; @what says how far it came. */
static void late(struct wf_link *link, const char *what)
{
	struct wf_error e;

	if (!link->conn || (wf_link_greeted(link) && !link->redial.under_way))
		return;
	wf_error_set(&e, -ETIMEDOUT, "%s %s", link->address, what);
	wf_dial_anew(link, &e);
}

static void answer_late(struct wf_timer *timer)
{
	late(WF_CONTAINER(timer, struct wf_link, dial.timer), "does not answer");
}

/* End a dial whose connection opened without a hello: the other end may be no node at all. */
static void hello_late(struct wf_timer *timer)
{
	late(WF_CONTAINER(timer, struct wf_link, dial.timer),
	     "took the connection and did not answer");
}

/* Wait for the next word of whoever has taken the connection, for @timeout_ns. */
static void await(struct wf_link *link, uint64_t timeout_ns)
{
	struct wf_engine *engine = link->engine;

	wf_loop_timer(&engine->loop, &link->dial.timer,
		      WF_MIN(engine->loop.now_ns + timeout_ns, until_ns(link)), hello_late);
}

static void connected(void *ctx, struct wf_conn *conn)
{
	struct wf_link *link = wf_conn_owner(conn);

	(void)ctx;
	/*
	 * A redial has a limit already, which is sooner.  The kernel takes connections of many
	 * dials at once, whose handshakes wait for each other at the door.
	 */
	if (!link->redial.under_way)
		await(link, HANDSHAKE_TIMES * link->engine->options.lost_ns);
}

static void opened(void *ctx, struct wf_conn *conn)
{
	struct wf_link *link = wf_conn_owner(conn);

	(void)ctx;
	await(link, link->engine->options.lost_ns);
}

/* End a link that was dialled to us and never came up, whose door has closed for good. */
void wf_dial_gone(struct wf_link *link, const struct wf_error *e)
{
	if (wf_same_closed(link))
		return; /* the peer has settled on another connection */
	if (link->keepalive.watch_count && link->address[0]) {
		/* An operation waits for that address, with the patience of one who dials. */
		wf_link_forget_peer(link);
		wf_link_renew(link);
		wf_dial_start(link);
	} else {
		wf_link_die(link, e);
	}
}

static void closed(void *ctx, struct wf_conn *conn, const struct wf_error *e)
{
	struct wf_link *link = wf_conn_owner(conn);

	(void)ctx;
	if (link->conn != conn)
		return;
	link->conn = NULL;
	/* With our pong the link is up for the dialler, which will come back to it. */
	if (link->stage >= WF_LINK_STAGE_PONGED || link->redial.under_way)
		wf_keepalive_door_closed(link, e);
	else if (!link->dialler)
		wf_dial_gone(link, e);
	else if (!wf_same_closed(link))
		again_or_die(link, e);
	wf_link_put(link);
}

/*
 * Take over the peer's hello, which came by @conn; -EPROTO with a sentence if we can't work with
 * it.  -EXDEV: another worker of this node, *@home, has the peer; the hello and the link's secret
 * are kept, and the link is not greeted.
 */
static int accept_hello(struct wf_link *link, const struct wf_conn *conn,
			const struct wf_greet_hello *hello, struct wf_engine **home,
			struct wf_error *e)
{
	struct wf_engine *engine = link->engine;
	const char *ours = wf_options_security(&engine->options);
	const char *theirs = hello->security[0] ? hello->security : "open";
	int err;

	if (hello->wire_min > WF_WIRE_VERSION || hello->wire_max < WF_WIRE_VERSION)
		return wf_error_set(e, -EPROTO,
				    "the peer speaks wire versions %u to %u, this node %d",
				    hello->wire_min, hello->wire_max, WF_WIRE_VERSION);
	if (!memcmp(hello->incarnation, engine->directory->incarnation, WF_INCARNATION_BYTES))
		return wf_error_set(e, -EINVAL, "%s is this node itself", link->address);
	if (!hello->link)
		return wf_error_set(e, -EPROTO, "the hello of the peer names no link");
	/* The sentence is read at both ends, so "this node" would be wrong at one of them. */
	if (strcmp(theirs, ours))
		return wf_error_set(e, -EPROTO, "WEFT_SECURITY is %s at the node that dials, and "
				    "%s at the one that is dialled: neither gives way",
				    link->dialler ? ours : theirs, link->dialler ? theirs : ours);
	if (hello->cipher >= WF_SEAL_CIPHERS)
		return wf_error_set(e, -EPROTO, "the hello of the peer names no cipher");
	err = wf_link_keep_hello(link, hello, e);
	if (err)
		return err;
	err = wf_seals_meet(link, conn);
	if (err)
		return wf_error_set(e, err, "no memory for the secret of a link");
	*home = wf_directory_claim(engine->directory, &link->home, link->peer->incarnation);
	if (*home != engine)
		return wf_error_set(e, -EXDEV, "another worker of this node has the peer");
	link->stage = WF_LINK_STAGE_GREETED;
	/*
	 * A peer that was met before is there again: if it closes this connection, that may be for
	 * another one.
	 */
	if (!link->dial.until_ns)
		link->dial.until_ns = engine->loop.now_ns + engine->options.connect_ns;
	snprintf(link->name, sizeof(link->name), "%s", hello->name);
	snprintf(link->dial.gate_text, sizeof(link->dial.gate_text), "it has not come to the side door");
	link->keepalive.heard_ns = engine->loop.now_ns;
	wf_eager_credit_begin(link);
	wf_link_record(link, WF_RECORDER_HELLO, hello->rail_count, 0);
	wf_log(&engine->log, WF_LOG_DEBUG, "%s: its hello has come from %s", wf_link_label(link),
	       wf_conn_remote(conn));
	return 0;
}

static void greeted(struct wf_link *link, const struct wf_greet_hello *hello);

static void greeted_again(struct wf_timer *timer)
{
	struct wf_link *link = WF_CONTAINER(timer, struct wf_link, dial.timer);

	if (link->conn && !wf_link_greeted(link))
		greeted(link, link->peer);
}

/*
 * Move operations that wait for the peer to worker @home, which has it by the incarnation that it
 * claims; they dial again there.  But a peer of the lower incarnation may be moving its own dial
 * because of this one: then @home will not have it for long.
 */
static void elsewhere(struct wf_link *link, const struct wf_greet_hello *hello,
		      struct wf_engine *home)
{
	struct wf_engine *engine = link->engine;
	struct wf_error e;

	if (link->stage != WF_LINK_STAGE_MOVING)
		link->keepalive.heard_ns = engine->loop.now_ns;
	link->stage = WF_LINK_STAGE_MOVING;
	if (!wf_same_decides(engine, hello->incarnation) &&
	    engine->loop.now_ns - link->keepalive.heard_ns < HOME_MAX_NS &&
	    !wf_link_keep_hello(link, hello, &e)) { /* without GREETED nothing uses the hello */
		wf_loop_timer(&engine->loop, &link->dial.timer, engine->loop.now_ns + HOME_NS,
			      greeted_again);
		return;
	}
	wf_link_get(link);
	wf_timer_stop(&engine->loop.timers, &link->dial.timer);
	wf_link_close_conn(link);
	link->stage = WF_LINK_STAGE_UNMET;
	link->state = WF_LINK_IDLE;
	wf_link_renew(link);
	engine->sink->elsewhere(engine->sink_ctx, link, home);
	wf_link_put(link);
}

/* Are @a and @b hellos of one end of one link? */
static bool says_the_same(const struct wf_greet_hello *a, const struct wf_greet_hello *b)
{
	return a->link == b->link && a->token == b->token &&
	       !memcmp(a->incarnation, b->incarnation, WF_INCARNATION_BYTES);
}

/* Note that the door of @link was redialled, whose peer has proven itself again. */
static void door_is_back(struct wf_link *link)
{
	struct wf_engine *engine = link->engine;

	wf_keepalive_redialled(link);
	wf_keepalive_heard(link);
	wf_counters_add(&engine->counters.links_resumed, 1);
	wf_link_record(link, WF_RECORDER_RESUMED, 0, 0);
	engine->sink->proven(engine->sink_ctx, link);
}

/* Take the hello with which the peer has answered our dial. */
static void greeted(struct wf_link *link, const struct wf_greet_hello *hello)
{
	struct wf_engine *engine = link->engine, *home;
	struct wf_error e;
	int err;

	if (link->redial.under_way) {
		link->redial.under_way = false;
		wf_conn_forget_first(link->conn);
		if (says_the_same(link->peer, hello) && wf_seals_meet_again(link, link->conn)) {
			door_is_back(link);
			wf_probe_rails(link, hello);
			return;
		}
		wf_error_set(&e, -ECONNRESET, "%s has started anew", wf_link_label(link));
		wf_link_die(link, &e);
		return;
	}
	if (wf_link_greeted(link)) {
		if (!says_the_same(link->peer, hello))
			wf_link_violate(link, "a second hello that is not the first one's");
		else
			wf_probe_rails(link, hello);
		return;
	}
	home = wf_directory_find(engine->directory, hello->incarnation);
	if (home && home != engine) {
		elsewhere(link, hello, home);
		return;
	}
	err = accept_hello(link, link->conn, hello, &home, &e);
	if (err == -EXDEV)
		elsewhere(link, hello, home); /* @home has had the peer only since this moment */
	else if (err)
		wf_link_die(link, &e);
	else
		wf_same_dialled(link);
}

static void resume(struct wf_engine *engine, struct wf_conn *conn,
		   const struct wf_greet_hello *hello)
{
	struct wf_link *link = wf_table_get(&engine->links, hello->resume_link);

	if (!link || link->token != hello->resume_token || !wf_link_greeted(link) ||
	    !says_the_same(link->peer, hello) || !wf_seals_meet_again(link, conn)) {
		refuse(conn, WEFT_UNAVAILABLE, "that link is gone");
		return;
	}
	wf_link_get(link); /* the reference of the new conn */
	wf_link_close_conn(link);
	link->conn = conn;
	wf_conn_adopt(conn, link);
	wf_conn_trust(conn); /* the peer knows the token */
	wf_conn_forget_first(conn);
	door_is_back(link);
	wf_dial_tell(link);
	wf_probe_rails(link, hello);
}

/*
 * A stranger on the way from the worker whose door it came through to the worker that is to have
 * it.
 */
struct visit {
	struct wf_loop_task task;
	struct wf_directory_home home;
	struct wf_conn *conn;
	struct wf_greet_hello hello;
};

static void link_stranger(struct wf_engine *engine, struct wf_conn *conn,
			  const struct wf_greet_hello *hello);

static void arrive(struct wf_loop_task *task)
{
	struct visit *v = WF_CONTAINER(task, struct visit, task);
	struct wf_engine *engine = v->home.engine;

	wf_door_take(v->conn, engine->loop.now_ns);
	if (engine->rail_count)
		link_stranger(engine, v->conn, &v->hello);
	else
		wf_conn_close(v->conn); /* the node closes */
	wf_directory_leave(engine->directory, &v->home);
	free(v);
}

/* Pass the stranger to worker @to, which is to answer. */
static void show_to(struct wf_engine *to, struct wf_conn *conn, const struct wf_greet_hello *hello)
{
	struct visit *v = malloc(sizeof(*v));

	if (!v || wf_door_pass(conn, to->door, &v->conn)) {
		free(v);
		refuse(conn, WEFT_RESOURCE_EXHAUSTED, "no memory for another link");
		return;
	}
	v->task.run = arrive;
	v->hello = *hello;
	wf_directory_enter(to->directory, &v->home, to, "");
	(void)wf_directory_claim(to->directory, &v->home, v->hello.incarnation);
	wf_loop_submit(&to->loop, &v->task);
}

/* Find the worker that is to have a stranger from our door. */
static void welcome(struct wf_engine *engine, struct wf_conn *conn,
		    const struct wf_greet_hello *hello)
{
	struct wf_directory_home home;

	wf_directory_place(engine->directory, &home, hello->address, hello->incarnation);
	if (home.engine == engine)
		link_stranger(engine, conn, hello);
	else
		show_to(home.engine, conn, hello);
	wf_directory_leave(engine->directory, &home);
}

/* Was @conn authenticated with credentials that have been replaced since, and hold no more? */
static bool is_outdated(const struct wf_engine *engine, const struct wf_conn *conn)
{
	return engine->credentials && !wf_conn_does(conn, engine->credentials);
}

/* Make a link for a stranger that no other worker has: the directory says so meanwhile. */
static void link_stranger(struct wf_engine *engine, struct wf_conn *conn,
			  const struct wf_greet_hello *hello)
{
	struct wf_engine *home;
	struct wf_greet greet;
	struct wf_link *link;
	struct wf_error e;
	struct wf_link *other;
	int err;

	/* Without a word, so that an honest peer dials again and proves itself anew. */
	if (is_outdated(engine, conn)) {
		wf_conn_close(conn);
		return;
	}
	if (hello->resume_link) {
		resume(engine, conn, hello);
		return;
	}
	if (!memcmp(hello->incarnation, engine->directory->incarnation, WF_INCARNATION_BYTES)) {
		refuse(conn, WEFT_INVALID_ARGUMENT, "that address is this node's own");
		return;
	}
	other = wf_link_find(engine, hello->incarnation, NULL);
	/*
	 * If the stranger is that peer, has forgotten that link, and word of it is lost, its host
	 * says so now.
	 */
	if (other)
		wf_keepalive_probe(other);
	err = wf_link_create(engine, &link);
	if (err) {
		refuse(conn, WEFT_RESOURCE_EXHAUSTED, "no memory for another link");
		return;
	}
	err = accept_hello(link, conn, hello, &home, &e);
	if (err) {
		refuse(conn, WEFT_FAILED_PRECONDITION, e.text);
		goto put_link;
	}
	link->state = WF_LINK_TRYING;
	link->dialler = false;
	link->conn = conn;
	wf_link_get(link);
	wf_conn_adopt(conn, link);
	fill_hello(link, &greet);
	wf_same_accepted(link, &greet);
	wf_probe_start(link);
put_link:
	wf_link_put(link);
}

/*
 * Dial anew if the door of @link is still open: the peer had no descriptor for its side door, say.
 */
static void start_late(struct wf_timer *timer)
{
	struct wf_link *link = WF_CONTAINER(timer, struct wf_link, dial.timer);
	struct wf_error e;

	if (!link->conn)
		return;
	wf_error_set(&e, -EHOSTUNREACH, "%s", link->dial.gate_text);
	wf_dial_anew(link, &e);
}

/*
 * Look for a rail after waiting for the side door in vain.  Where none serves without it the link
 * waits for its door: a peer that gives this link up, for another one between the two, closes
 * both, in any order.
 */
static void start_without(struct wf_link *link)
{
	struct wf_engine *engine = link->engine;

	wf_probe_list(link);
	if (link->probe.pair_count)
		wf_probe_start(link);
	else
		wf_loop_timer(&engine->loop, &link->dial.timer,
			      engine->loop.now_ns + WF_SIDEDOOR_WAIT_NS, start_late);
}

static void beside_settled(struct wf_link *link, bool met)
{
	if (met)
		wf_probe_start(link);
	else
		start_without(link);
}

const struct wf_sidedoor_events wf_dial_beside = {
	.opened = wf_probe_list,
	.settled = beside_settled,
};

static void refused(struct wf_link *link, const struct wf_greet *greet)
{
	struct wf_error e;

	wf_error_set(&e, wf_status_code(greet->refuse.status ? greet->refuse.status
							      : WEFT_UNKNOWN),
		     "%s refuses: %s", wf_link_label(link), greet->refuse.text);
	wf_link_die(link, &e);
}

/*
 * Refuse a stranger; one that does not speak weft is told nothing.  The log says so once a second
 * at most: strangers decide how often it happens.
 */
static void kept_out(void *ctx, struct wf_conn *conn, const struct wf_error *e)
{
	struct wf_engine *engine = ctx;

	if (engine->loop.now_ns >= engine->kept_out_ns) {
		engine->kept_out_ns = engine->loop.now_ns + WF_NS_PER_S;
		wf_log(&engine->log, WF_LOG_WARN, "%s is kept out: %s", wf_conn_remote(conn),
		       e->text);
	}
	if (wf_door_is_garbage(e->code))
		wf_conn_close(conn);
	else
		refuse(conn, WEFT_PERMISSION_DENIED, e->text);
}

static void message(void *ctx, struct wf_conn *conn, const struct wf_greet *greet)
{
	struct wf_link *link = wf_conn_owner(conn);
	struct wf_engine *engine = ctx;
	struct wf_error e;

	if (!link && greet->kind != WF_GREET_HELLO) {
		wf_error_set(&e, -EBADMSG, "%s sent another message before its hello",
			     wf_conn_remote(conn));
		kept_out(engine, conn, &e);
		return;
	}
	if (!link) {
		welcome(engine, conn, &greet->hello);
		return;
	}
	if (greet->kind == WF_GREET_HELLO) {
		greeted(link, &greet->hello);
		return;
	}
	if (greet->kind == WF_GREET_REFUSE) {
		refused(link, greet);
		return;
	}
	/* The peer has answered the dial, and may be another worker's: see elsewhere(). */
	if (link->stage == WF_LINK_STAGE_MOVING && greet->kind == WF_GREET_SAME) {
		wf_same_unknown(link, greet);
		return;
	}
	if (!wf_link_greeted(link) && greet->kind != WF_GREET_GOODBYE) {
		wf_link_violate(link, "a message before its hello");
		return;
	}
	wf_keepalive_heard(link);
	switch (greet->kind) {
	case WF_GREET_TRY:
		wf_probe_try(link, greet->try.epoch, greet->try.mine, greet->try.yours);
		break;
	case WF_GREET_CANNOT:
		wf_probe_cannot(link, greet->try.epoch, greet->try.text);
		break;
	case WF_GREET_BEAT:
		wf_keepalive_beat(link, greet->beat.number, greet->beat.answer);
		break;
	case WF_GREET_RESYNC:
		wf_tx_resync(link, greet);
		break;
	case WF_GREET_SAME:
		wf_same_heard(link, greet);
		break;
	case WF_GREET_GOODBYE:
		wf_error_set(&e, -ESHUTDOWN, "%s said goodbye%s%s", wf_link_label(link),
			     greet->refuse.text[0] ? ": " : "", greet->refuse.text);
		wf_link_die(link, &e);
		break;
	default:
		break;
	}
}

const struct wf_door_events wf_dial_events = {
	.connected = connected,
	.opened = opened,
	.refused = kept_out,
	.message = message,
	.closed = closed,
};
