/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive slots promised to peers.
 *
 * The slots of a rail are shared by its links.  Each link has two for frames
 * that need no credit; the others are promised in equal shares, up to the
 * window.  When a link joins, those with more than the new share are asked to
 * give some back, so memory does not grow with the number of peers.
 */
#include "link/link.h"
#include "link/internal.h"

#include <errno.h>

#define RESERVED 2   /* slots of a link for a control frame and an answer */
#define PROMISE_MIN 2 /* fewer and a link could not keep a frame under way while one is handled */

static uint32_t share(const struct wf_worker_rail *on, uint32_t link_count)
{
	uint32_t each = wf_rail_slots(on->rail) / link_count;

	return each > RESERVED ? each - RESERVED : 0;
}

static void ask(struct wf_worker *w, struct wf_worker_rail *on);

/* The peer has been asked; on an earlier rail, maybe. */
static void ask_heard(struct wf_control *c, const struct wf_error *e)
{
	struct wf_link *link = WF_CONTAINER(c, struct wf_link, ask_control);

	if (!e && link->on)
		ask(link->worker, link->on);
}

/* Ask the links with more than their share to give the rest back. */
static void ask(struct wf_worker *w, struct wf_worker_rail *on)
{
	uint32_t each = share(on, on->link_count);

	WF_LIST_EACH(node, &w->link_list) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);
		struct wf_control *c = &link->ask_control;

		if (link->on != on || link->return_asked || wf_budget_open(link) <= each ||
		    !wf_list_empty(&c->node))
			continue;
		c->type = WF_RECORD_RETURN;
		c->id = wf_budget_open(link) - each;
		c->sent = ask_heard;
		link->return_asked = true;
		wf_link_control(link, c);
	}
}

/* Count @link on its rail.  -ENOSPC: there are too few slots. */
int wf_budget_admit(struct wf_link *link)
{
	struct wf_worker_rail *on = link->on;

	if (share(on, on->link_count + 1) < PROMISE_MIN)
		return -ENOSPC;
	on->link_count++;
	on->promised += wf_budget_open(link);
	ask(link->worker, on);
	wf_budget_refill(link);
	return 0;
}

/* Promise what the link's share and the free slots allow. */
void wf_budget_refill(struct wf_link *link)
{
	struct wf_worker_rail *on = link->on;
	uint32_t want = WF_MIN(share(on, on->link_count), (uint32_t)link->worker->options.window);
	uint32_t have = wf_budget_open(link);
	uint32_t taken = on->promised + RESERVED * on->link_count;
	uint32_t slots = wf_rail_slots(on->rail);
	uint32_t more;

	if (have >= want || taken >= slots)
		return;
	more = WF_MIN(want - have, slots - taken);
	link->promised_total += more;
	on->promised += more;
}

/*
 * Slots have come free.  A link with none to speak of, be it up yet or not, is
 * given some now, for no frame will ever come to be the occasion; the others
 * wait for theirs.
 */
static void feed(struct wf_worker *w, const struct wf_worker_rail *on)
{
	WF_LIST_EACH(node, &w->link_list) {
		struct wf_link *link = WF_CONTAINER(node, struct wf_link, node);

		if (link->on != on || wf_budget_open(link) >= PROMISE_MIN)
			continue;
		wf_budget_refill(link);
		wf_flow_mark(link);
	}
}

void wf_budget_leave(struct wf_link *link)
{
	struct wf_worker_rail *on = link->on;

	on->promised -= wf_budget_open(link);
	on->link_count--;
	link->return_asked = false;
	link->on = NULL;
	feed(link->worker, on);
}

static void give_back(struct wf_link *link);

static void give_heard(struct wf_control *c, const struct wf_error *e)
{
	struct wf_link *link = WF_CONTAINER(c, struct wf_link, give_control);

	if (!e && c->id != link->returned_total)
		give_back(link); /* more since then */
}

/* Tell the peer how many of its promises it has back. */
static void give_back(struct wf_link *link)
{
	struct wf_control *c = &link->give_control;

	if (!wf_list_empty(&c->node))
		return; /* it goes on when that one has been heard */
	c->type = WF_RECORD_RETURNED;
	c->id = link->returned_total;
	c->sent = give_heard;
	wf_link_control(link, c);
}

/* The peer asks for @count of its promises back. */
void wf_budget_asked(struct wf_link *link, uint32_t count)
{
	link->returned_total += wf_credit_return(&link->credit, count);
	give_back(link);
}

/* The peer has given back @total of our promises by now. */
void wf_budget_returned(struct wf_link *link, uint32_t total)
{
	struct wf_worker_rail *on = link->on;
	uint32_t more = total - link->returned_seen;

	link->return_asked = false;
	if (more > wf_budget_open(link)) {
		wf_link_violate(link, "it gave back more credits than it had");
		return;
	}
	link->returned_seen = total;
	on->promised -= more;
	feed(link->worker, on);
	/* More links may have joined since it was asked. */
	if (more)
		ask(link->worker, on);
}
