/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/answer.h"

#include <errno.h>
#include <stdlib.h>

#include "link/ledger.h"

static uint64_t hash_of(const struct wf_link *link, uint64_t offer)
{
	return wf_map_hash_pair(&link->offers.map, offer, 0);
}

static struct wf_answer *find(const struct wf_link *link, uint64_t offer, uint64_t hash)
{
	struct wf_map_node *node = NULL;

	while ((node = wf_map_find(&link->offers.map, hash, node))) {
		struct wf_answer *a = WF_CONTAINER(node, struct wf_answer, node);

		if (a->offer == offer)
			return a;
	}
	return NULL;
}

/* Take @a from the table of offers: a later offer with the same id must not find it. */
static void forget(struct wf_answer *a)
{
	if (!a->link)
		return;
	wf_map_remove(&a->link->offers.map, &a->node);
	wf_list_remove(&a->all_node);
	a->link = NULL;
}

/* Make an answer, charged to the peer of @link until it is closed.  NULL: no memory. */
static struct wf_answer *new_answer(struct wf_link *link, uint64_t offer, uint8_t priority)
{
	struct wf_answer *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->offer = offer;
	a->priority = priority;
	a->account = link;
	wf_link_get(link);
	wf_ledger_charge(link, WF_LEDGER_OWED, sizeof(*a));
	return a;
}

int wf_answer_open(struct wf_link *link, const struct wf_body *body, struct wf_answer **answer)
{
	uint64_t hash = hash_of(link, body->offer);
	struct wf_answer *a;

	if (find(link, body->offer, hash))
		return -EBADMSG;
	a = new_answer(link, body->offer, body->priority);
	if (!a)
		return -ENOMEM;
	a->link = link;
	wf_map_add(&link->offers.map, &a->node, hash);
	wf_list_append(&link->offers.all, &a->all_node);
	*answer = a;
	return 0;
}

/*
 * Would the answer to an offer be more of what the peer does not take?  Then the offer is to come
 * again.  One end of a link at most takes the other for a stranger, so that both never wait.
 */
static bool must_wait(const struct wf_link *link)
{
	return link->account.stranger && wf_ledger_owes_most(link);
}

int wf_answer_meet(struct wf_link *link, const struct wf_body *body, struct wf_answer **answer)
{
	*answer = NULL;
	if (wf_body_is_offer(body) && must_wait(link))
		return -ENOMEM;
	link->yields.urgent_ns[body->priority] = link->engine->loop.now_ns;
	if (body->way == WF_BODY_EAGER && !wf_eager_credit_use(link, body->bytes))
		return -EBADMSG;
	return wf_body_is_offer(body) ? wf_answer_open(link, body, answer) : 0;
}

void wf_answer_unmeet(struct wf_link *link, const struct wf_body *body, struct wf_answer *answer)
{
	wf_answer_close(answer);
	if (body->way == WF_BODY_EAGER)
		wf_eager_credit_unuse(link, body->bytes);
}

void wf_answer_refuse(struct wf_link *link, const struct wf_body *body, struct wf_answer *answer,
		      enum weft_status status)
{
	if (answer)
		wf_answer_pulled(answer, link, status);
	else if (body->way == WF_BODY_EAGER)
		wf_eager_credit_give(link, body->bytes);
}

static void pulled_sent(struct wf_message *m, const struct wf_error *e)
{
	struct wf_answer *a = WF_CONTAINER(m, struct wf_answer, message);

	(void)e;
	wf_ledger_answer_left(a->account, sizeof(*a));
	wf_answer_close(a);
}

void wf_answer_pulled(struct wf_answer *a, struct wf_link *link, enum weft_status status)
{
	struct wf_bytes_writer w = wf_bytes_writer(a->bytes, sizeof(a->bytes));

	forget(a);
	wf_record_small_put(&w, &(struct wf_record_small){ .id = a->offer, .other = a->chunks,
							    .status = (uint8_t)status });
	a->message = (struct wf_message){
		.type = WF_RECORD_PULLED,
		.priority = a->priority,
		.head = a->bytes,
		.head_bytes = sizeof(a->bytes),
		.sent = pulled_sent,
	};
	wf_ledger_answer_waits(a->account, sizeof(*a));
	wf_link_post(link, &a->message);
}

int wf_answer_late(struct wf_link *link, const struct wf_body *body)
{
	struct wf_answer *a;
	int err = must_wait(link) ? -ENOMEM : wf_answer_open(link, body, &a);

	if (!err)
		wf_answer_pulled(a, link, WEFT_CANCELLED);
	return err;
}

static void withdrawn_sent(struct wf_message_control *c, const struct wf_error *e)
{
	(void)e;
	wf_answer_close(WF_CONTAINER(c, struct wf_answer, control));
}

void wf_answer_withdrawn(struct wf_answer *a, struct wf_link *link)
{
	forget(a);
	a->control = (struct wf_message_control){
		.type = WF_RECORD_WITHDRAWN,
		.id = a->offer,
		.sent = withdrawn_sent,
	};
	wf_link_control(link, &a->control);
}

void wf_answer_close(struct wf_answer *answer)
{
	if (!answer)
		return;
	forget(answer);
	wf_ledger_discharge(answer->account, WF_LEDGER_OWED, sizeof(*answer));
	wf_link_put(answer->account);
	free(answer);
}

int wf_answers_withdraw(struct wf_link *link, uint64_t offer)
{
	struct wf_answer *a = find(link, offer, hash_of(link, offer));

	if (a) {
		a->keeper->withdrawn(a);
		return 0;
	}
	/* The offer is over, or has never come: either way nothing reads it. */
	a = new_answer(link, offer, 0);
	if (!a)
		return -ENOMEM;
	wf_answer_withdrawn(a, link);
	return 0;
}

void wf_answers_lost(struct wf_link *link, const struct wf_error *e)
{
	struct wf_list *node;

	while ((node = wf_list_first(&link->offers.all))) {
		struct wf_answer *a = WF_CONTAINER(node, struct wf_answer, all_node);

		forget(a);
		a->keeper->lost(a, e);
	}
	wf_map_shrink(&link->offers.map);
}
