/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proofs that the peers of two links are one node.  The incarnation in a hello is only the peer's
 * word: a reason to ask.  A side that has dialled one of the links proves to the peer of the other
 * that it is at home in both, and the peer proves it back: each by the two tokens of the other
 * link, which only its two ends know, over the two hellos of the connection that the proof goes
 * through.  So a proof is good for that connection alone, and a relay that passes hellos on and
 * changes an address or a token in one spoils it.  A token itself is never said.
 *
 * Only a link that this side dialled is offered for a proof: of those there are as many as the
 * program has opened, however many strangers claim an incarnation.
 *
 * A link that was dialled has no rail until that is settled, or its time is over, and messages
 * posted to it wait in its queue.  So nothing of it has been sent, and the queue goes over whole
 * when the two become one: in order, and once.  Had messages been sent over two links, there would
 * be no order between them and later ones.
 */
#include "link/same.h"
#include "link/link.h"
#include "link/internal.h"

#include <string.h>

#include "util/siphash.h"

#define HEARD_MAX 16 /* offers of one connection; an honest peer makes as many as it has dials */

bool wf_same_decides(const struct wf_engine *engine, const uint8_t *incarnation)
{
	return memcmp(engine->directory->incarnation, incarnation, WF_INCARNATION_BYTES) < 0;
}

/* May @link be up for the peer, which may have sent frames?  Then it is not to be given up. */
static bool may_be_up(const struct wf_link *link)
{
	return link->stage >= WF_LINK_STAGE_PONGED;
}

/*
 * Could the peers of both be one?  A link that waits for its door counts, for its ends still know
 * its tokens.
 */
static bool may_be_same(const struct wf_link *a, const struct wf_link *b)
{
	return a != b && wf_link_greeted(a) && wf_link_greeted(b) && !a->same && !b->same &&
	       !memcmp(a->peer->incarnation, b->peer->incarnation, WF_INCARNATION_BYTES) &&
	       wf_identity_is_same(a->seals.identity, b->seals.identity);
}

/*
 * Make the proof, through the door of @on, that @who is at home in @about as well; false: it can't
 * be made.
 */
static bool prove(const struct wf_link *on, const struct wf_link *about, bool who_is_us,
		  uint8_t proof[WF_GREET_PROOF_BYTES])
{
	bool dialled = wf_conn_dialled(on->conn);
	uint8_t speaker = dialled == who_is_us; /* 1: the speaker dialled this connection */
	size_t sent_bytes, got_bytes;
	const uint8_t *sent = wf_conn_first_sent(on->conn, &sent_bytes);
	const uint8_t *got = wf_conn_first_got(on->conn, &got_bytes);
	struct wf_siphash s;

	if (!sent || !got)
		return false;
	wf_siphash_begin(&s, about->dialler ? about->token : about->peer->token,
			 about->dialler ? about->peer->token : about->token);
	wf_siphash_add(&s, &speaker, 1);
	wf_siphash_add(&s, dialled ? sent : got, dialled ? sent_bytes : got_bytes);
	wf_siphash_add(&s, dialled ? got : sent, dialled ? got_bytes : sent_bytes);
	wf_siphash_end(&s, proof);
	return true;
}

/* Has the peer, in @greet, proved that it is at home in @about? */
static bool is_proved(const struct wf_link *on, const struct wf_link *about,
		      const struct wf_greet *greet)
{
	uint8_t right[WF_GREET_PROOF_BYTES], differs = 0;

	if (!greet->same.proves || !about || !may_be_same(on, about) ||
	    !prove(on, about, false, right))
		return false;
	/* The comparison takes the same time wherever the proofs differ. */
	for (size_t i = 0; i < sizeof(right); i++)
		differs |= right[i] ^ greet->same.proof[i];
	return !differs;
}

/* Returns the link that has the same peer, by proof; NULL: none has. */
static struct wf_link *other_of(const struct wf_link *link)
{
	uint64_t id = link->proofs.same_id;
	struct wf_link *other = id ? wf_table_get(&link->engine->links, id) : NULL;

	return other && wf_link_greeted(other) && !other->same ? other : NULL;
}

/* Look for a rail; same-host rails wait for the peer's answer at its side door. */
static void find_rail(struct wf_link *link)
{
	if (!wf_sidedoor_meet(link))
		wf_probe_start(link);
}

/* Look for a rail: the peer is that of no other link, or of one which was given up. */
static void go_on(struct wf_timer *timer)
{
	struct wf_link *link = WF_CONTAINER(timer, struct wf_link, dial.timer);

	if (!link->proofs.proving)
		return;
	link->proofs.proving = false;
	if (link->conn)
		find_rail(link);
}

/*
 * Go on if nothing is left for which the rails of @link wait; they wait for the other side's
 * decision, too.
 */
static void look(struct wf_link *link)
{
	struct wf_engine *engine = link->engine;

	if (link->proofs.proving && !link->proofs.awaited && !other_of(link))
		wf_loop_timer(&engine->loop, &link->dial.timer, engine->loop.now_ns, go_on);
}

/* Count the question @q as answered: it has its answer, or will have none. */
static void answered(struct wf_engine *engine, const struct wf_same_question *q)
{
	struct wf_link *waiter = q->waiter ? wf_table_get(&engine->links, q->waiter) : NULL;

	if (!waiter || !waiter->proofs.awaited)
		return;
	waiter->proofs.awaited--;
	look(waiter);
}

/*
 * Offer the peer of @on a proof that it is that of @about; @waiter, if not NULL, waits for the
 * answer.
 */
static void ask(struct wf_link *on, const struct wf_link *about, struct wf_link *waiter)
{
	struct wf_greet greet = { .kind = WF_GREET_SAME };

	if (on->proofs.asked_count == WF_COUNT(on->proofs.asked) ||
	    !prove(on, about, true, greet.same.proof))
		return;
	greet.same.link = about->peer->link;
	greet.same.proves = true;
	if (wf_conn_send(on->conn, &greet)) {
		wf_conn_break(on->conn); /* without the offer one peer would stay two */
		return;
	}
	on->proofs.asked[on->proofs.asked_count++] = (struct wf_same_question){
		.about = about->id, .waiter = waiter ? waiter->id : 0,
	};
	if (waiter)
		waiter->proofs.awaited++;
}

/* Has a dial of this node no answer yet?  Dials of other workers are not known here. */
static bool any_dial(const struct wf_engine *engine)
{
	if (engine->directory->worker_count > 1)
		return true;
	WF_LIST_EACH(node, &engine->link_list) {
		const struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		if (link->state == WF_LINK_DIALLING && !wf_link_greeted(link))
			return true;
	}
	return false;
}

/* May @link, which this side did not dial, have the peer of @about by what this side knows? */
static bool is_offered(const struct wf_link *link, const struct wf_link *about)
{
	return about->dialler && may_be_same(link, about);
}

void wf_same_accepted(struct wf_link *link, struct wf_greet *hello)
{
	struct wf_engine *engine = link->engine;
	uint32_t count = 0;

	WF_LIST_EACH(node, &engine->link_list)
		count += is_offered(link, WF_CONTAINER(node, struct wf_link, node));
	hello->hello.proofs = WF_MIN(count, (uint32_t)WF_GREET_PROOFS_MAX);
	hello->hello.dials = any_dial(engine);
	wf_conn_send(link->conn, hello);
	count = hello->hello.proofs;
	WF_LIST_EACH(node, &engine->link_list) {
		struct wf_link *about = WF_CONTAINER(node, struct wf_link, node);

		if (count && is_offered(link, about)) {
			ask(link, about, NULL);
			count--;
		}
	}
}

void wf_same_dialled(struct wf_link *link)
{
	struct wf_engine *engine = link->engine;

	if (!wf_link_find(engine, link->peer->incarnation, link)) {
		find_rail(link); /* no proof of the peer matters: there is no other link */
		return;
	}
	link->proofs.due = link->peer->proofs;
	link->proofs.awaited += link->proofs.due;
	WF_LIST_EACH(node, &engine->link_list) {
		struct wf_link *other = WF_CONTAINER(node, struct wf_link, node);

		if (!may_be_same(link, other))
			continue;
		if (other->dialler)
			ask(link, other, link);
		else if (link->peer->dials && other->conn)
			/*
			 * The other link is a dial of a peer that had not heard our hello there
			 * when it answered here.
			 */
			ask(other, link, link);
	}
	link->proofs.proving = true;
	wf_loop_timer(&engine->loop, &link->dial.timer,
		      engine->loop.now_ns + engine->options.lost_ns, go_on);
	look(link);
}

/*
 * Choose which of the two goes on: a link that may be up does; otherwise, as both ends would
 * choose another one, the link that the node of the lower incarnation has had for longer.
 */
static void settle(struct wf_link *a, struct wf_link *b)
{
	bool keep_a = may_be_up(a) || (!may_be_up(b) && a->number < b->number);
	struct wf_link *keep = keep_a ? a : b, *drop = keep_a ? b : a;

	if (may_be_up(drop))
		return;
	wf_link_merge(drop, keep);
	look(keep);
}

static void become_same(struct wf_link *link, struct wf_link *about)
{
	link->proofs.same_id = about->id;
	about->proofs.same_id = link->id;
	if (wf_same_decides(link->engine, link->peer->incarnation))
		settle(link, about);
}

static void take_answer(struct wf_link *link, const struct wf_greet *greet)
{
	struct wf_engine *engine = link->engine;
	struct wf_same_proofs *proofs = &link->proofs;
	struct wf_same_question q;
	struct wf_link *about;

	if (!proofs->asked_count) {
		wf_link_violate(link, "an answer to what it was not asked");
		return;
	}
	q = proofs->asked[0];
	proofs->asked_count--;
	memmove(proofs->asked, proofs->asked + 1, proofs->asked_count * sizeof(proofs->asked[0]));
	about = wf_table_get(&engine->links, q.about);
	if (is_proved(link, about, greet))
		become_same(link, about);
	answered(engine, &q);
}

static void take_offer(struct wf_link *link, const struct wf_greet *greet)
{
	struct wf_link *about = wf_table_get(&link->engine->links, greet->same.link);
	struct wf_greet answer = { .kind = WF_GREET_SAME, .same.answer = true };
	bool proved;

	if (link->proofs.heard++ == HEARD_MAX) {
		wf_link_violate(link, "more offers of a proof than it can have links");
		return;
	}
	proved = is_proved(link, about, greet);
	/* A peer hears our proof only after its own, except where we have dialled. */
	answer.same.proves = proved && prove(link, about, true, answer.same.proof);
	if (wf_conn_send(link->conn, &answer))
		wf_conn_break(link->conn);
	if (link->proofs.due) {
		link->proofs.due--;
		link->proofs.awaited--;
	}
	if (answer.same.proves)
		become_same(link, about);
	look(link);
}

void wf_same_unknown(struct wf_link *link, const struct wf_greet *greet)
{
	const struct wf_greet answer = { .kind = WF_GREET_SAME, .same.answer = true };

	if (greet->same.answer)
		wf_link_violate(link, "an answer to what it was not asked");
	else if (link->proofs.heard++ == HEARD_MAX)
		wf_link_violate(link, "more offers of a proof than it can have links");
	else
		wf_conn_send(link->conn, &answer);
}

void wf_same_heard(struct wf_link *link, const struct wf_greet *greet)
{
	if (greet->same.answer)
		take_answer(link, greet);
	else
		take_offer(link, greet);
}

static void forget_hellos(struct wf_timer *timer)
{
	struct wf_link *link = WF_CONTAINER(timer, struct wf_link, proofs.timer);

	if (link->conn)
		wf_conn_forget_first(link->conn);
}

void wf_same_up(struct wf_link *link)
{
	struct wf_engine *engine = link->engine;

	wf_loop_timer(&engine->loop, &link->proofs.timer,
		      engine->loop.now_ns + engine->options.lost_ns, forget_hellos);
}

bool wf_same_closed(struct wf_link *link)
{
	struct wf_link *other = other_of(link);

	if (!other || may_be_up(link))
		return false;
	wf_link_merge(link, other);
	look(other);
	return true;
}

void wf_same_forget(struct wf_link *link)
{
	struct wf_engine *engine = link->engine;
	struct wf_same_proofs over;

	wf_timer_stop(&engine->loop.timers, &link->proofs.timer);
	over = link->proofs;
	link->proofs = (struct wf_same_proofs){ 0 };
	while (over.asked_count)
		answered(engine, &over.asked[--over.asked_count]);
}
