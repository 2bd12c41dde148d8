/* SPDX-License-Identifier: BSD-2-Clause */
#include "tensor/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "link/ledger.h"
#include "link/rights.h"
#include "tensor/step_end.h"
#include "util/status.h"

struct wf_channel {
	struct wf_map_node node;
	struct wf_channels *channels;
	uint64_t step;
	struct wf_list receives;
	struct wf_list unexpected_queue;
	uint32_t from_anybody; /* receives from any peer */
	uint16_t key_bytes;
	uint8_t key[];
};

/* Channels. */

static bool is_of(const struct wf_channel *ch, uint64_t step, const void *key, uint16_t key_bytes)
{
	return ch->step == step && ch->key_bytes == key_bytes && !memcmp(ch->key, key, key_bytes);
}

static struct wf_channel *find_channel(struct wf_channels *c, uint64_t step, const void *key,
				       uint16_t key_bytes, uint64_t hash)
{
	struct wf_map_node *node = NULL;

	while ((node = wf_map_find(&c->map, hash, node))) {
		struct wf_channel *ch = WF_CONTAINER(node, struct wf_channel, node);

		if (is_of(ch, step, key, key_bytes))
			return ch;
	}
	return NULL;
}

static struct wf_channel *make_channel(struct wf_channels *c, uint64_t step, const void *key,
				       uint16_t key_bytes, uint64_t hash)
{
	struct wf_channel *ch = find_channel(c, step, key, key_bytes, hash);

	if (ch)
		return ch;
	ch = malloc(sizeof(*ch) + key_bytes);
	if (!ch)
		return NULL;
	ch->channels = c;
	ch->step = step;
	ch->key_bytes = key_bytes;
	memcpy(ch->key, key, key_bytes);
	wf_list_init(&ch->receives);
	wf_list_init(&ch->unexpected_queue);
	ch->from_anybody = 0;
	wf_map_add(&c->map, &ch->node, hash);
	return ch;
}

/* Free a channel when it is empty; NULL: there is none. */
static void drop_channel(struct wf_channel *ch)
{
	if (!ch || !wf_list_empty(&ch->receives) || !wf_list_empty(&ch->unexpected_queue))
		return;
	wf_map_remove(&ch->channels->map, &ch->node);
	free(ch);
}

/* Unexpected tensors. */

/* Drop an unexpected tensor that nobody will receive. */
static void drop_unexpected(struct wf_unexpected *a, enum weft_status status)
{
	struct wf_channel *ch = a->keeper;

	wf_unexpected_drop(a, status);
	drop_channel(ch);
}

static void unexpected_lost(struct wf_unexpected *a, const struct wf_error *e)
{
	struct wf_channel *ch = a->keeper;

	(void)e; /* no receive waits for it */
	wf_unexpected_free(a);
	drop_channel(ch);
}

void wf_channels_drop(struct wf_part *part, enum weft_status status)
{
	wf_part_hold(part);
	WF_LIST_EACH(node, &part->kept)
		drop_unexpected(WF_CONTAINER(node, struct wf_unexpected, part_node), status);
	wf_part_put(part);
}

/*
 * Drop unexpected tensors kept for too long: their receiver has died, say, and so has the node that
 * was to end the step.
 */
static void kept_too_long(struct wf_timer *timer)
{
	struct wf_channels *c = WF_CONTAINER(timer, struct wf_channels, kept_timer);
	uint64_t limit_ns = c->engine->options.step_ns;

	WF_LIST_EACH(node, &c->kept) {
		struct wf_unexpected *a = WF_CONTAINER(node, struct wf_unexpected, kept_node);

		if (c->engine->loop.now_ns < a->since_ns + limit_ns) {
			wf_loop_timer(&c->engine->loop, timer, a->since_ns + limit_ns, kept_too_long);
			return;
		}
		drop_unexpected(a, WEFT_OK);
	}
}

/* Let @a, of the peer of @part, wait in @ch for a receive. */
static void keep_in(struct wf_channels *c, struct wf_channel *ch, struct wf_part *part,
		    struct wf_unexpected *a)
{
	uint64_t limit_ns = c->engine->options.step_ns;
	struct wf_link *link = wf_link_real(a->link);
	bool left = link->account.stranger && link->state == WF_LINK_GONE;

	a->keeper = ch;
	a->lost = unexpected_lost;
	/*
	 * Charge each as if it had a channel and a step of its own; one that is given back has
	 * been charged.
	 */
	if (!a->charged_bytes)
		wf_unexpected_charge(a, sizeof(*ch) + ch->key_bytes + sizeof(*part) +
					sizeof(*part->use.use));
	wf_list_append(&c->kept, &a->kept_node);
	wf_list_append(left ? &c->leftovers : &link->account.kept, &a->link_node);
	wf_unexpected_wait(a, &ch->unexpected_queue, ch->node.hash, part);
	if (limit_ns && !c->kept_timer.armed)
		wf_loop_timer(&c->engine->loop, &c->kept_timer, a->since_ns + limit_ns, kept_too_long);
}

/* Receives. */

/* Returns the step if it is over here.  An abort says more than an end. */
static const struct wf_step *find_over(const struct wf_channels *c, uint64_t step)
{
	const struct wf_step *s = wf_steps_find(&c->aborted, step);

	return s ? s : wf_steps_find(&c->ended, step);
}

/* Check that @step is not over.  Otherwise it returns the code of @e. */
static int check_step(const struct wf_channels *c, uint64_t step, struct wf_error *e)
{
	const struct wf_step *over = find_over(c, step);

	return over ? wf_step_error(over, e) : 0;
}

/*
 * Deal with the peer of @link in @step: *@part, with a reference.  Without one it returns the code
 * of @e: the step is over, also by what the peer has said before, or there is no memory.
 */
static int take_part(struct wf_channels *c, struct wf_link *link, uint64_t step,
		     struct wf_part **part, struct wf_error *e)
{
	int err = check_step(c, step, e);

	if (err)
		return err;
	*part = wf_part_get(&c->parts, wf_link_real(link), step);
	if (!*part)
		return wf_error_set(e, -ENOMEM, "no memory for a step");
	wf_part_take(*part);
	if (!(*part)->heard)
		return 0;
	/* A crowded node does not remember a step that a peer has aborted. */
	wf_step_error((*part)->heard, e);
	err = wf_step_end_heard(c, *part);
	wf_part_put(*part);
	*part = NULL;
	return err ? wf_error_set(e, err, "no memory for a step") : e->code;
}

void wf_channels_send(struct wf_channels *c, struct wf_link *link, struct wf_sending *s)
{
	struct wf_use *use;
	struct wf_error e;

	if (take_part(c, link, s->step, &s->part, &e)) {
		s->done(s, &e);
		return;
	}
	use = s->part->use.use;
	wf_use_enter(use, &use->sends, &s->use);
	wf_sending_start(&c->sendings, link, s);
}

static void give_back(struct wf_receiving *r, struct wf_unexpected *a);

/* Let @r wait in @ch, or in its step if that is NULL: for a tensor of any key. */
static void wait_in(struct wf_channel *ch, struct wf_receiving *r)
{
	r->state = WF_RECEIVING_WAITING;
	wf_list_append(ch ? &ch->receives : &r->use.use->any_key, &r->node);
	if (ch)
		ch->from_anybody += !r->from;
}

static void wait_no_more(struct wf_receiving *r)
{
	wf_list_remove(&r->node);
	if (r->channel)
		r->channel->from_anybody -= !r->from;
}

/*
 * Set @r up, of which @ch is the channel, NULL if it takes any key, and @part the part of the peer,
 * if known.
 */
static void enter(struct wf_channels *c, struct wf_channel *ch, struct wf_part *part,
		  struct wf_receiving *r)
{
	wf_receiving_init(r, c->unexpected_queue);
	r->channels = c;
	r->give_back = give_back;
	r->channel = ch;
	r->part = part;
	wf_list_append(r->from ? &wf_link_real(r->from)->work[WF_ABOVE_RECEIVES] : &c->receives,
		       &r->all_node);
}

/* Returns the receive that gets a tensor that @r, which waits, may have; NULL: none. */
static struct wf_receiving *claim(struct wf_receiving *r)
{
	struct wf_receiving *taker = r->claim ? r->claim(r) : r;

	if (!taker || taker == r)
		return taker;
	enter(r->channels, r->channel, NULL, taker);
	wf_use_enter(r->use.use, &r->use.use->receives, &taker->use);
	wait_in(r->channel, taker);
	return taker;
}

/* Returns the receive in @receives that gets a tensor of @link; NULL: none. */
static struct wf_receiving *find_in(struct wf_list *receives, const struct wf_link *link)
{
	WF_LIST_EACH(node, receives) {
		struct wf_receiving *r = WF_CONTAINER(node, struct wf_receiving, node);

		if (r->from && wf_link_real(r->from) != link)
			continue;
		r = claim(r);
		if (r)
			return r;
	}
	return NULL;
}

/*
 * Returns the receive that gets a tensor of the peer of @part, in @ch, maybe NULL, or else one of
 * any key; NULL: none.  Receives of @ch that name other peers are searched only if the channel may
 * have one that fits.
 */
static struct wf_receiving *find_receive(struct wf_channel *ch, struct wf_part *part)
{
	struct wf_link *link = part->link;
	struct wf_receiving *r = NULL;

	if (ch && (ch->from_anybody || !wf_list_empty(&link->work[WF_ABOVE_RECEIVES])))
		r = find_in(&ch->receives, link);
	return r ? r : find_in(&part->use.use->any_key, link);
}

/*
 * Returns the first unexpected tensor of @link's.  Of many, most are others', or wait for other
 * receives: the shorter of both lists is searched.  One that was given back is the last of its
 * peer's list.
 */
static struct wf_unexpected *find_unexpected_of(struct wf_channel *ch, struct wf_link *link)
{
	const struct wf_list *own = link->account.kept.next;
	struct wf_unexpected *found = NULL;

	WF_LIST_EACH(node, &ch->unexpected_queue) {
		struct wf_unexpected *a = WF_CONTAINER(node, struct wf_unexpected, node);

		if (wf_link_real(a->link) == link)
			return a;
		if (link->state == WF_LINK_GONE)
			continue; /* tensors of a peer that is gone are in no list of its own */
		if (own == &link->account.kept)
			return found;
		a = WF_CONTAINER(own, struct wf_unexpected, link_node);
		if (a->keeper == ch && (!found || a->number < found->number))
			found = a;
		own = own->next;
	}
	return NULL;
}

/* Returns the first unexpected tensor of any key that @r may have; NULL: none. */
static struct wf_unexpected *find_of_step(const struct wf_receiving *r)
{
	const struct wf_list *kept = &r->use.use->kept;
	struct wf_unexpected *found = NULL;
	struct wf_part *part = NULL;

	if (!r->from)
		return wf_list_empty(kept) ? NULL
					   : WF_CONTAINER(kept->next, struct wf_unexpected, use_node);
	while ((part = wf_part_find(&r->channels->parts, wf_link_real(r->from), r->step, part))) {
		const struct wf_list *first = wf_list_first(&part->kept);
		struct wf_unexpected *a =
			first ? WF_CONTAINER(first, struct wf_unexpected, part_node) : NULL;

		if (a && (!found || a->number < found->number))
			found = a;
	}
	return found;
}

/* Returns the first unexpected tensor that @r, which waits, may have; NULL: none. */
static struct wf_unexpected *find_unexpected(const struct wf_receiving *r)
{
	struct wf_list *first;

	if (!r->channel)
		return find_of_step(r);
	if (r->from)
		return find_unexpected_of(r->channel, wf_link_real(r->from));
	first = wf_list_first(&r->channel->unexpected_queue);
	return first ? WF_CONTAINER(first, struct wf_unexpected, node) : NULL;
}

/* Match @r with a tensor of the peer of @part. */
static void match(struct wf_receiving *r, struct wf_part *part)
{
	wait_no_more(r);
	wf_part_take(part);
	if (r->part)
		return;
	wf_part_hold(part);
	r->part = part;
}

/* Match @r with @a, whose channel is freed if that empties it. */
static void match_kept(struct wf_receiving *r, struct wf_unexpected *a)
{
	struct wf_channel *ch = a->keeper;

	match(r, a->part);
	a->record.key = ch->key; /* the record's was in the frame, which is gone */
	wf_receiving_meet_kept(r, a);
	drop_channel(ch);
}

/* Bring @a back to its channel, in the place that it had before @r met it. */
static void give_back(struct wf_receiving *r, struct wf_unexpected *a)
{
	struct wf_channels *c = r->channels;
	const struct wf_step *over = find_over(c, r->step);
	uint64_t hash = wf_map_hash(&c->map, r->step, r->key, r->key_bytes);
	struct wf_receiving *next;
	struct wf_channel *ch;

	ch = over || c->closed ? NULL : make_channel(c, r->step, r->key, r->key_bytes, hash);
	if (!ch) {
		wf_unexpected_drop(a, over ? wf_step_told(over) : WEFT_CANCELLED);
		return;
	}
	a->since_ns = c->engine->loop.now_ns;
	keep_in(c, ch, r->part, a);
	next = find_receive(ch, r->part);
	if (next)
		match_kept(next, a);
}

/*
 * Match @r, or receives that it claims for, with the tensors that wait for it.  It ends where none
 * is left of a peer that is gone.
 */
static void match_waiting(struct wf_receiving *r)
{
	struct wf_receiving *taker;
	struct wf_unexpected *a;
	struct wf_error e;

	do {
		a = find_unexpected(r);
		taker = a ? claim(r) : NULL;
		if (taker)
			match_kept(taker, a);
	} while (taker && taker != r);
	if (a || !r->from || wf_link_real(r->from)->state != WF_LINK_GONE)
		return;
	wf_error_set(&e, -ENOTCONN, "%s is gone", wf_link_label(r->from));
	wf_channels_stop_receive(r, &e);
}

void wf_channels_receive(struct wf_channels *c, struct wf_receiving *r)
{
	bool any_key = r->flags & WEFT_ANY_KEY;
	struct wf_channel *ch = NULL;
	struct wf_part *part = NULL;
	struct wf_use *use = NULL;
	struct wf_error e;

	if (r->from ? take_part(c, r->from, r->step, &part, &e) : check_step(c, r->step, &e)) {
		r->done(r, &e);
		return;
	}
	if (!any_key)
		ch = make_channel(c, r->step, r->key, r->key_bytes,
				  wf_map_hash(&c->map, r->step, r->key, r->key_bytes));
	if (ch || any_key)
		use = wf_use_get(&c->uses, r->step);
	enter(c, ch, part, r);
	/* A named peer is dialled, so that its death, or its absence, ends the receive. */
	if (r->from) {
		wf_link_get(r->from); /* the caller may have another link for the peer by the end */
		wf_link_watch(r->from, true);
	}
	if (!use) {
		wf_error_set(&e, -ENOMEM, "no memory for a channel");
		wf_receiving_end(r, &e);
		drop_channel(ch);
		return;
	}
	wf_use_enter(use, &use->receives, &r->use);
	wf_use_put(use);
	wait_in(ch, r);
	match_waiting(r);
}

void wf_channels_claim_again(struct wf_receiving *r)
{
	if (r->state == WF_RECEIVING_WAITING)
		match_waiting(r);
}

void wf_channels_stop_receive(struct wf_receiving *r, const struct wf_error *e)
{
	struct wf_channel *ch = r->channel;

	if (r->state != WF_RECEIVING_WAITING) {
		wf_receiving_stop(r, e);
		return;
	}
	wait_no_more(r);
	wf_receiving_end(r, e);
	drop_channel(ch);
}

void wf_channels_cancel_receive(struct wf_receiving *r, const struct wf_error *e)
{
	if (r->state == WF_RECEIVING_WAITING)
		wf_channels_stop_receive(r, e);
	else
		wf_receiving_cancel(r, e);
}

int wf_channels_take_back(struct wf_receiving *r)
{
	struct wf_channel *ch = r->channel;

	if (r->state != WF_RECEIVING_WAITING)
		return -EALREADY;
	r->state = WF_RECEIVING_ENDED;
	wait_no_more(r);
	wf_list_remove(&r->all_node);
	wf_use_leave(&r->use);
	wf_part_put(r->part);
	r->part = NULL;
	wf_receiving_leave(r);
	drop_channel(ch);
	return 0;
}

/* Make room for live peers: drop the unexpected tensors of strangers that are gone. */
static void drop_leftovers(struct wf_channels *c)
{
	struct wf_list *oldest;

	while (wf_ledger_strangers_full(c->engine) && (oldest = wf_list_first(&c->leftovers)))
		drop_unexpected(WF_CONTAINER(oldest, struct wf_unexpected, link_node),
				WEFT_UNAVAILABLE);
}

/* Keep an unexpected tensor.  -ENOMEM: @answer is still the caller's. */
static int keep_unmatched(struct wf_channels *c, struct wf_part *part,
			  const struct wf_record_tensor *t, const struct wf_path *came,
			  struct wf_answer *answer, uint64_t hash)
{
	struct wf_channel *ch;
	struct wf_unexpected *a;
	int err;

	drop_leftovers(c);
	ch = make_channel(c, t->step, t->key, t->key_bytes, hash);
	if (!ch)
		return -ENOMEM;
	err = wf_unexpected_keep(c->unexpected_queue, part->link, t, came, answer, &a);
	if (!err)
		keep_in(c, ch, part, a);
	drop_channel(ch);
	return err;
}

/*
 * Match or keep a tensor of the peer of @part, whose step goes on.  -ENOMEM, -ENOSPC: @answer is
 * still the caller's.
 */
static int arrive(struct wf_channels *c, struct wf_part *part, const struct wf_record_tensor *t,
		  const struct wf_path *came, struct wf_answer *answer)
{
	uint64_t hash = wf_map_hash(&c->map, t->step, t->key, t->key_bytes);
	struct wf_channel *ch = find_channel(c, t->step, t->key, t->key_bytes, hash);
	struct wf_receiving *r = find_receive(ch, part);

	if (!r)
		return keep_unmatched(c, part, t, came, answer, hash);
	ch = r->channel;
	match(r, part);
	wf_receiving_meet(r, part->link, t, came, NULL, answer);
	drop_channel(ch);
	return 0;
}

int wf_channels_record(struct wf_channels *c, struct wf_link *link,
		       const struct wf_record *record)
{
	struct wf_answer *answer;
	const struct wf_step *over;
	struct wf_record_tensor t;
	struct wf_part *part = NULL;
	struct wf_path came;
	struct wf_error e;
	int err, denied;

	if (wf_record_tensor_get(record->bytes, record->count, &t) || t.flags & WF_TENSOR_LOST)
		return -EBADMSG;
	wf_path_come(link, &t.body, &came);
	err = wf_answer_meet(link, &t.body, &answer);
	if (err)
		return err;
	denied = wf_rights_check(link, WF_ACL_TENSOR, t.key, t.key_bytes, &e);
	if (denied) {
		wf_answer_refuse(link, &t.body, answer, wf_status_of(denied));
		return 0;
	}
	over = find_over(c, t.step);
	if (!over) {
		part = wf_part_get(&c->parts, link, t.step);
		over = part ? part->heard : NULL;
	}
	if (over) {
		wf_counters_add(&c->engine->counters.late_dropped, 1);
		wf_answer_refuse(link, &t.body, answer, wf_step_told(over));
	} else {
		err = part ? arrive(c, part, &t, &came, answer) : -ENOMEM;
	}
	if (err)
		wf_answer_unmeet(link, &t.body, answer);
	wf_part_put(part);
	return err;
}

/* Returns the first tensor of @queue, which is not empty, from @from, or NULL: from anybody. */
static const struct wf_unexpected *first_from(const struct wf_list *queue,
					      const struct wf_link *from)
{
	WF_LIST_EACH(node, queue) {
		const struct wf_unexpected *a = WF_CONTAINER(node, struct wf_unexpected, node);

		if (!from || wf_link_real(a->link) == from)
			return a;
	}
	return NULL;
}

const struct wf_unexpected *wf_channels_first(const struct wf_channels *c,
					      const struct wf_link *from, uint64_t step,
					      const void *key, uint16_t key_bytes)
{
	uint64_t hash = wf_map_hash(&c->map, step, key, key_bytes);
	struct wf_map_node *node = NULL;

	while ((node = wf_map_find(&c->unexpected_queue->firsts, hash, node))) {
		const struct wf_unexpected *a = WF_CONTAINER(node, struct wf_unexpected, first);

		if (is_of(a->keeper, step, key, key_bytes))
			return first_from(a->queue, from);
	}
	return NULL;
}

void wf_channels_unmatched(const struct wf_channels *c,
			   void (*each)(void *ctx, const struct wf_record_tensor *t,
					const struct wf_link *from, uint64_t since_ns),
			   void *ctx)
{
	WF_LIST_EACH(node, &c->kept) {
		const struct wf_unexpected *a = WF_CONTAINER(node, struct wf_unexpected, kept_node);
		struct wf_record_tensor t = a->record;

		/* The key of the record was in the frame, which is gone. */
		t.key = ((const struct wf_channel *)a->keeper)->key;
		each(ctx, &t, a->link, a->since_ns);
	}
}

/* Events of the floors below. */

/* End the receives in @receives that wait for a tensor. */
static void stop_waiting(struct wf_list *receives, const struct wf_error *e)
{
	WF_LIST_EACH_OF_NOW(at, receives) {
		struct wf_receiving *r = WF_CONTAINER(at, struct wf_receiving, all_node);

		if (r->state == WF_RECEIVING_WAITING)
			wf_channels_stop_receive(r, e);
	}
}

void wf_channels_down(struct wf_channels *c, struct wf_link *link, const struct wf_error *e)
{
	stop_waiting(&link->work[WF_ABOVE_RECEIVES], e);
	wf_sending_down(&c->sendings, link, e);
	/* Offers have been lost by now; tensors that came whole can still be received. */
	if (link->account.stranger)
		wf_list_splice(&c->leftovers, &link->account.kept);
	wf_parts_down(link);
}

/*
 * Obey aborts by the peer of @link that did not count, where it takes part under its other name.
 * Without memory an abort does not count yet.
 */
static void count_heard(struct wf_channels *c, struct wf_link *link)
{
	/* An abort that does not count yet is appended again. */
	WF_LIST_EACH_OF_NOW(node, &link->parts.heard) {
		struct wf_part *part = WF_CONTAINER(node, struct wf_part, heard_node);

		if (wf_part_takes(&c->parts, link, part->use.use->step))
			(void)wf_step_end_heard(c, part);
	}
}

void wf_channels_merged(struct wf_channels *c, struct wf_link *link, struct wf_link *into)
{
	struct wf_map_node *node = NULL;

	wf_parts_merge(&c->parts, link, into);
	count_heard(c, into);
	/* Matching changes the map: start anew after each match. */
	while ((node = wf_map_next(&c->map, node))) {
		struct wf_channel *ch = WF_CONTAINER(node, struct wf_channel, node);
		struct wf_receiving *found = NULL;
		struct wf_unexpected *a = NULL;

		WF_LIST_EACH(at, &ch->receives) {
			struct wf_receiving *r = WF_CONTAINER(at, struct wf_receiving, node);

			a = find_unexpected(r);
			found = a ? claim(r) : NULL;
			if (found)
				break;
		}
		if (!found)
			continue;
		match_kept(found, a);
		node = NULL;
	}
	WF_LIST_EACH_OF_NOW(at, &into->work[WF_ABOVE_RECEIVES]) {
		struct wf_receiving *r = WF_CONTAINER(at, struct wf_receiving, all_node);

		if (r->state == WF_RECEIVING_WAITING && !r->channel)
			match_waiting(r);
	}
}

void wf_channels_init(struct wf_channels *c, struct wf_unexpected_queue *unexpected_queue,
		      int (*aborted)(void *ctx, const struct wf_step *step), void *ctx)
{
	*c = (struct wf_channels){
		.engine = unexpected_queue->engine,
		.unexpected_queue = unexpected_queue,
		.aborted_by_peer = aborted,
		.ctx = ctx,
	};
	wf_sending_init(&c->sendings, unexpected_queue->transfer, WF_RECORD_TENSOR);
	wf_steps_init(&c->aborted);
	wf_steps_init(&c->ended);
	wf_map_init(&c->map);
	wf_uses_init(&c->uses);
	wf_parts_init(&c->parts, &c->uses);
	wf_list_init(&c->receives);
	wf_list_init(&c->kept);
	wf_list_init(&c->leftovers);
}

void wf_channels_cancel(struct wf_channels *c)
{
	struct wf_error e;

	c->closed = true;
	wf_error_set(&e, -ECANCELED, "this node has closed");
	stop_waiting(&c->receives, &e);
	WF_LIST_EACH(node, &c->engine->link_list)
		stop_waiting(&WF_CONTAINER(node, struct wf_link, node)->work[WF_ABOVE_RECEIVES],
			     &e);
}

void wf_channels_fini(struct wf_channels *c)
{
	struct wf_map_node *node;

	while ((node = wf_map_first(&c->map))) {
		struct wf_channel *ch = WF_CONTAINER(node, struct wf_channel, node);

		WF_LIST_EACH(at, &ch->unexpected_queue)
			wf_unexpected_free(WF_CONTAINER(at, struct wf_unexpected, node));
		drop_channel(ch);
	}
	wf_timer_stop(&c->engine->loop.timers, &c->kept_timer);
	wf_timer_stop(&c->engine->loop.timers, &c->brief_timer);
	wf_steps_fini(&c->aborted);
	wf_steps_fini(&c->ended);
	wf_parts_fini(&c->parts);
	wf_uses_fini(&c->uses);
	wf_map_fini(&c->map);
}
