/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/announced.h"

#include <errno.h>
#include <stdlib.h>

#include "core/last.h"
#include "core/op.h"
#include "core/shares.h"
#include "core/streaming.h"
#include "core/stub.h"
#include "rpc/landings.pb-c.h"
#include "util/clock.h"
#include "wire/access.h"

#define MESSAGE_BYTES_MAX 4096 /* more than WF_SHARES_TOLD_MAX of each take, in ten bytes at most */

static struct wf_announced_slot *slot_of(struct wf_list *node)
{
	return WF_CONTAINER(node, struct wf_announced_slot, node);
}

void wf_announced_init(struct wf_announced *a, struct weft_peer *peer,
		       const struct wf_access_name *name, void (*closed)(struct wf_announced *a))
{
	*a = (struct wf_announced){ .peer = peer, .name = name, .closed = closed };
	wf_list_init(&a->slots);
	wf_list_init(&a->waiting);
}

/* Slots */

static struct wf_announced_slot *pop_slot(struct wf_announced *a)
{
	struct wf_list *node = wf_list_pop(&a->slots);

	if (!node)
		return NULL;
	a->count--;
	return slot_of(node);
}

static void drop_slots(struct wf_announced *a)
{
	struct wf_announced_slot *slot;

	while ((slot = pop_slot(a)))
		free(slot);
}

/* Give slots to those who wait, each the first.  One who gives a slot back does not nest. */
static void match(struct wf_announced *a)
{
	if (a->matching)
		return;
	a->matching = true;
	while (!wf_list_empty(&a->waiting) && !wf_list_empty(&a->slots)) {
		struct wf_list *node = wf_list_pop(&a->waiting);
		struct wf_announced_wait *wait = WF_CONTAINER(node, struct wf_announced_wait, node);

		wait->come(wait, pop_slot(a));
	}
	a->matching = false;
}

static void fail_all(struct wf_announced *a, const struct wf_error *e)
{
	WF_LIST_EACH_OF_NOW(node, &a->waiting) {
		struct wf_announced_wait *wait = WF_CONTAINER(node, struct wf_announced_wait, node);

		wf_list_remove(node);
		wait->fail(wait, e);
	}
}

static void drop(struct wf_announced *a, struct wf_announced_slot *slot)
{
	wf_list_remove(&slot->node);
	a->count--;
	free(slot);
}

static void withdraw(struct wf_announced *a, uint64_t serial)
{
	WF_LIST_EACH(node, &a->slots) {
		if (slot_of(node)->serial != serial)
			continue;
		drop(a, slot_of(node));
		return;
	}
}

/* Drop what was announced before under @number: a push that failed may have left it here. */
static void supersede(struct wf_announced *a, uint64_t number)
{
	WF_LIST_EACH(node, &a->slots) {
		if (slot_of(node)->number != number)
			continue;
		drop(a, slot_of(node));
		return;
	}
}

/* Take what the owner has said.  -EPROTO: there is no sense in it, or too much.  -ENOMEM. */
static int take(struct wf_announced *a, const Weft__Landings__Slots *said)
{
	/* Each number and each withdrawal costs a look at all slots. */
	if (said->n_numbers != said->n_serials || said->n_numbers > WF_SHARES_TOLD_MAX ||
	    said->n_withdrawn > WF_SHARES_TOLD_MAX)
		return -EPROTO;
	for (size_t i = 0; i < said->n_withdrawn; i++)
		withdraw(a, said->withdrawn[i]);
	for (size_t i = 0; i < said->n_numbers; i++) {
		struct wf_announced_slot *slot;

		if (said->numbers[i] >= WEFT_LANDING_SLOTS_MAX)
			return -EPROTO;
		supersede(a, said->numbers[i]);
		slot = malloc(sizeof(*slot));
		if (!slot)
			return -ENOMEM;
		*slot = (struct wf_announced_slot){
			.number = (uint32_t)said->numbers[i],
			.serial = said->serials[i],
			.bytes = said->slot_bytes,
		};
		wf_list_init(&slot->node);
		wf_list_append(&a->slots, &slot->node);
		a->count++;
	}
	return 0;
}

/* Streams */

static void came(struct weft_op *op, void *arg);
static void ended(struct weft_op *op, void *arg);

/* Give the stream up, and with it its slots.  Those who wait fail with @e. */
static void give_up(struct wf_announced *a, const struct wf_error *e)
{
	if (a->stream)
		wf_streaming_close(a->stream);
	a->stream = NULL;
	drop_slots(a);
	fail_all(a, e);
}

/* Waiting for the next announcement is the rule, and no fault. */
static void started(struct wf_announced *a, struct weft_op *op)
{
	op->patient = true;
	a->busy++;
	wf_op_free(op);
}

static int read_next(struct wf_announced *a)
{
	struct weft_op_options options = { .size = sizeof(options), .done = came, .arg = a };
	struct weft_op *op;
	int err = wf_streaming_read(a->stream, &options, &op);

	if (!err)
		started(a, op);
	return err;
}

static int ask(struct wf_announced *a)
{
	Weft__Landings__Landing landing = WEFT__LANDINGS__LANDING__INIT;
	int err;

	landing.id = a->name->id;
	landing.token.data = (uint8_t *)(uintptr_t)a->name->token;
	landing.token.len = sizeof(a->name->token);
	err = wf_streaming_write(a->stream, &landing.base, NULL, NULL);
	if (!err)
		err = wf_streaming_half_close(a->stream);
	return err ? err : read_next(a);
}

/* Open the stream.  Failures are recorded. */
static int subscribe(struct wf_announced *a)
{
	struct weft_call_options options = {
		.size = sizeof(options),
		.op = { .size = sizeof(options.op), .timeout_ns = WEFT_FOREVER, .done = ended, .arg = a },
		.message_bytes_max = MESSAGE_BYTES_MAX,
	};
	struct weft_stub *stub;
	struct weft_op *op;
	int err = wf_stub_open(a->peer, &weft__landings__landings__descriptor, &stub);

	if (err)
		return err;
	err = wf_streaming_open(stub, "Subscribe", &options, &a->stream, &op);
	wf_stub_close(stub);
	if (err) {
		a->stream = NULL;
		return err;
	}
	started(a, op);
	a->heard_ns = wf_clock_now();
	err = ask(a);
	if (err) {
		wf_streaming_close(a->stream);
		a->stream = NULL;
	}
	return err;
}

/* Subscribe, if somebody waits and no operation of an earlier stream is under way. */
static void subscribe_soon(struct wf_announced *a)
{
	struct wf_error e;
	int err;

	if (a->stream || a->busy || wf_list_empty(&a->waiting))
		return;
	err = subscribe(a);
	if (!err)
		return;
	wf_error_set(&e, err, "%s", wf_last_text());
	fail_all(a, &e);
}

/* An operation of the stream has ended.  @a may be gone then. */
static void settle(struct wf_announced *a)
{
	a->busy--;
	if (!a->closing)
		subscribe_soon(a);
	else if (!a->busy)
		a->closed(a);
}

/* Give the stream up, of which @op has ended and no message came. */
static void lose(struct wf_announced *a, const struct weft_op *op)
{
	enum weft_status status = wf_op_status(op);
	const char *text = wf_op_message(op);
	struct wf_error e;

	if (!a->stream)
		return;
	if (status == WEFT_OK) {
		status = WEFT_UNAVAILABLE;
		text = "the peer announces no slots any more";
	} else if (status == WEFT_UNIMPLEMENTED) {
		/* The peer has started anew: a node serves landings from its first one on. */
		status = WEFT_NOT_FOUND;
		text = "the peer has no landing";
	}
	wf_error_set(&e, wf_status_code(status), "%s", text);
	give_up(a, &e);
}

static void heard(struct wf_announced *a, const Weft__Landings__Slots *said)
{
	struct wf_error e;
	int err = take(a, said);

	a->heard_ns = wf_clock_now();
	if (!err)
		err = read_next(a);
	if (!err) {
		match(a);
		return;
	}
	wf_error_set(&e, err, err == -EPROTO ? "the peer announced slots that there can't be"
					     : "no memory for announced slots");
	give_up(a, &e);
}

static void came(struct weft_op *op, void *arg)
{
	const Weft__Landings__Slots *said = (const void *)op->read.message;
	struct wf_announced *a = arg;

	if (!said || wf_op_status(op) != WEFT_OK)
		lose(a, op);
	else if (a->stream)
		heard(a, said);
	settle(a);
}

static void ended(struct weft_op *op, void *arg)
{
	struct wf_announced *a = arg;

	lose(a, op);
	settle(a);
}

/* For those who push */

void wf_announced_await(struct wf_announced *a, struct wf_announced_wait *wait, bool first)
{
	wf_list_init(&wait->node);
	if (first)
		wf_list_prepend(&a->waiting, &wait->node);
	else
		wf_list_append(&a->waiting, &wait->node);
	match(a);
	subscribe_soon(a);
}

void wf_announced_leave(struct wf_announced_wait *wait)
{
	wf_list_remove(&wait->node);
}

void wf_announced_late(struct wf_announced *a, uint64_t silent_ns)
{
	if (!a->stream || wf_clock_now() - a->heard_ns < silent_ns)
		return;
	wf_streaming_close(a->stream);
	a->stream = NULL;
}

/* Has the life of the peer ended that announced the slots?  The stream tells a little later. */
static bool is_lost(const struct wf_announced *a)
{
	return !a->peer->link || !wf_link_was_up(wf_link_real(a->peer->link));
}

void wf_announced_keep(struct wf_announced *a, struct wf_announced_slot *slot)
{
	if (!a->stream || is_lost(a) || a->count >= WEFT_LANDING_SLOTS_MAX) {
		free(slot);
		return;
	}
	wf_list_prepend(&a->slots, &slot->node);
	a->count++;
	match(a);
}

void wf_announced_close(struct wf_announced *a)
{
	a->closing = true;
	if (a->stream)
		wf_streaming_close(a->stream);
	a->stream = NULL;
	drop_slots(a);
	if (!a->busy)
		a->closed(a);
}

void wf_announced_fini(struct wf_announced *a)
{
	if (a->stream)
		wf_streaming_close(a->stream);
	drop_slots(a);
}
