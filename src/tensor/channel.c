/* SPDX-License-Identifier: BSD-2-Clause */
#include "tensor/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/status.h"

#define KEY_SHOWN 64 /* bytes of a key in a sentence */
#define ARRIVALS_MAX (1u << 20) /* unmatched tensors of a node: a bound on what peers can make us keep */

struct wf_channel {
	struct wf_map_node node;
	uint64_t step;
	struct wf_list receives;
	struct wf_list arrivals;
	uint16_t key_bytes;
	uint8_t key[];
};

struct wf_arrival {
	struct wf_list node;
	struct wf_list kept_node;  /* in channels->kept */
	struct wf_list offer_node; /* in channels->offers */
	uint64_t since_ns;         /* it came */
	struct wf_link *link;
	struct wf_channel *channel;   /* it waits there for a receive; or: */
	struct wf_receiving *receive; /* it is matched and waits for memory */
	struct wf_answer *answer;       /* to its offer; NULL: there is none */
	struct wf_path path;            /* so far */
	struct wf_tensor_record record; /* its pointers lie in bytes[] */
	uint8_t bytes[]; /* shape, then the eager body */
};

/* Channels. */

static struct wf_channel *find_channel(struct wf_channels *c, uint64_t step, const void *key,
				       uint16_t key_bytes, uint64_t hash)
{
	struct wf_map_node *node = NULL;

	while ((node = wf_map_find(&c->map, hash, node))) {
		struct wf_channel *ch = WF_CONTAINER(node, struct wf_channel, node);

		if (ch->step == step && ch->key_bytes == key_bytes &&
		    !memcmp(ch->key, key, key_bytes))
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
	ch->step = step;
	ch->key_bytes = key_bytes;
	memcpy(ch->key, key, key_bytes);
	wf_list_init(&ch->receives);
	wf_list_init(&ch->arrivals);
	wf_map_add(&c->map, &ch->node, hash);
	return ch;
}

/* An empty channel is no channel. */
static void drop_channel(struct wf_channels *c, struct wf_channel *ch)
{
	if (!wf_list_empty(&ch->receives) || !wf_list_empty(&ch->arrivals))
		return;
	wf_map_remove(&c->map, &ch->node);
	free(ch);
}

/* Arrivals. */

/* Takes @answer.  -ENOSPC: there are too many.  -ENOMEM. */
static int keep_arrival(struct wf_channels *c, struct wf_link *link,
			const struct wf_tensor_record *t, struct wf_answer *answer,
			struct wf_arrival **arrival)
{
	size_t shape_bytes = (size_t)t->rank * sizeof(int64_t);
	size_t body_bytes = t->body.way == WF_BODY_EAGER ? t->body.bytes : 0;
	struct wf_arrival *a;

	if (c->arrival_count == ARRIVALS_MAX)
		return -ENOSPC;
	a = malloc(sizeof(*a) + shape_bytes + body_bytes);
	if (!a)
		return -ENOMEM;
	a->answer = answer;
	a->link = link;
	wf_link_get(link);
	a->channel = NULL;
	a->receive = NULL;
	a->record = *t;
	memcpy(a->bytes, t->shape, shape_bytes);
	if (body_bytes)
		memcpy(a->bytes + shape_bytes, t->eager, body_bytes);
	a->record.shape = a->bytes;
	a->record.eager = a->bytes + shape_bytes;
	a->since_ns = c->worker->now_ns;
	wf_list_init(&a->node);
	wf_list_init(&a->kept_node);
	wf_list_init(&a->offer_node);
	if (wf_body_is_offer(&t->body))
		wf_list_append(&c->offers, &a->offer_node);
	c->arrival_count++;
	*arrival = a;
	return 0;
}

static void free_arrival(struct wf_channels *c, struct wf_arrival *a)
{
	wf_list_remove(&a->node);
	wf_list_remove(&a->kept_node);
	wf_list_remove(&a->offer_node);
	wf_answer_close(a->answer);
	wf_link_put(a->link);
	free(a);
	c->arrival_count--;
}

/* Who answers its offer from now on. */
static struct wf_answer *take_answer(struct wf_arrival *a)
{
	struct wf_answer *answer = a->answer;

	a->answer = NULL;
	return answer;
}

/* The tensor will not be taken: the sender gets its buffer, or its room, back.  Takes @answer. */
static void refuse(struct wf_link *link, const struct wf_tensor_record *t,
		   struct wf_answer *answer, enum weft_status status)
{
	if (answer)
		wf_answer_pulled(answer, link, status);
	else if (t->body.way == WF_BODY_EAGER)
		wf_link_give_room(link, t->body.bytes);
}

/* Nobody will receive it: drop it and count it. */
static void drop_arrival(struct wf_channels *c, struct wf_arrival *a, enum weft_status status)
{
	struct wf_channel *ch = a->channel;

	wf_counters_add(&c->worker->counters.late_dropped, 1);
	refuse(a->link, &a->record, take_answer(a), status);
	free_arrival(c, a);
	drop_channel(c, ch);
}

void wf_channels_drop(struct wf_channels *c, uint64_t step, enum weft_status status)
{
	WF_LIST_EACH(node, &c->kept) {
		struct wf_arrival *a = WF_CONTAINER(node, struct wf_arrival, kept_node);

		if (a->record.step == step)
			drop_arrival(c, a, status);
	}
}

/* Whoever was to receive it has died, say, and so has whoever was to end the step. */
static void kept_too_long(struct wf_timer *timer)
{
	struct wf_channels *c = WF_CONTAINER(timer, struct wf_channels, kept_timer);
	uint64_t limit_ns = c->worker->options.step_ns;

	WF_LIST_EACH(node, &c->kept) {
		struct wf_arrival *a = WF_CONTAINER(node, struct wf_arrival, kept_node);

		if (c->worker->now_ns < a->since_ns + limit_ns) {
			wf_worker_timer(c->worker, timer, a->since_ns + limit_ns, kept_too_long);
			return;
		}
		drop_arrival(c, a, WEFT_DEADLINE_EXCEEDED);
	}
}

/* @a waits in @ch for a receive. */
static void keep_in(struct wf_channels *c, struct wf_channel *ch, struct wf_arrival *a)
{
	uint64_t limit_ns = c->worker->options.step_ns;

	a->channel = ch;
	wf_list_append(&ch->arrivals, &a->node);
	wf_list_append(&c->kept, &a->kept_node);
	if (limit_ns && !c->kept_timer.armed)
		wf_worker_timer(c->worker, &c->kept_timer, a->since_ns + limit_ns, kept_too_long);
}

/* Receives. */

static void end(struct wf_receiving *r, const struct wf_error *e)
{
	r->state = WF_RECEIVING_ENDED;
	wf_list_remove(&r->all_node);
	if (r->from)
		wf_link_unwatch(r->from);
	if (e)
		wf_receiving_release(r);
	r->view = NULL; /* as any chunk, it is found by its address from now on */
	r->done(r, e);
}

/* The body is not what was sent: say of which tensor. */
static void end_damaged(struct wf_receiving *r, const struct wf_error *e)
{
	struct wf_error why = *e;

	wf_error_within(&why, "step %llu, key \"%.*s\"", (unsigned long long)r->step,
			WF_MIN((int)r->key_bytes, KEY_SHOWN), (const char *)r->key);
	end(r, &why);
}

static void pulled(struct wf_pull *pull, const struct wf_error *e)
{
	struct wf_receiving *r = WF_CONTAINER(pull, struct wf_receiving, pull);

	r->path = pull->path;
	if (pull->damaged)
		end_damaged(r, e);
	else
		end(r, e);
}

/* Bring the body to its destination.  Takes @answer. */
static void move(struct wf_receiving *r, struct wf_link *link, const struct wf_tensor_record *t,
		 struct wf_answer *answer)
{
	struct wf_error e;
	int err;

	if (t->body.way == WF_BODY_EAGER) {
		memcpy(r->got.data, t->eager, t->body.bytes);
		wf_link_give_room(link, t->body.bytes);
		if (wf_sums_check(&t->body, r->got.data, link, r->path.caps, &e))
			end_damaged(r, &e);
		else
			end(r, NULL);
		return;
	}
	r->pull.into = r->got.data;
	r->pull.view = r->view;
	r->pull.terms = r->terms;
	r->pull.path = r->path;
	r->pull.done = pulled;
	r->state = WF_RECEIVING_PULLING;
	err = wf_pull_start(r->channels->transfer, link, &t->body, answer, &r->pull);
	if (err) {
		wf_error_set(&e, -ENOMEM, "no memory to pull a tensor");
		end(r, &e);
	}
}

static void retry_memory(struct wf_pool_waiter *waiter)
{
	struct wf_receiving *r = WF_CONTAINER(waiter, struct wf_receiving, waiter);
	struct wf_channels *c = r->channels;
	struct wf_arrival *a = r->arrival;
	struct wf_error e;
	int err = wf_receiving_find_memory(r, &e);

	if (err == -EAGAIN) {
		wf_pool_wait(&c->worker->pool, &r->waiter);
		return;
	}
	r->arrival = NULL;
	if (err) {
		refuse(a->link, &a->record, take_answer(a), WEFT_RESOURCE_EXHAUSTED);
		end(r, &e);
	} else {
		move(r, a->link, &a->record, take_answer(a));
	}
	free_arrival(c, a);
}

/* What has happened to the tensor so far has happened to the receive. */
static void meet(struct wf_receiving *r, const struct wf_path *came)
{
	uint64_t queued_ns = r->path.queued_ns;

	r->path = *came;
	r->path.queued_ns = queued_ns;
	r->path.matched_ns = r->channels->worker->now_ns;
}

/*
 * @r gets the tensor of @t.  It is in @kept if it waited, else in a frame and
 * gone on return.  Takes @kept and @answer.  @came: its path up to here.
 */
static void match(struct wf_receiving *r, struct wf_link *link, const struct wf_tensor_record *t,
		  const struct wf_path *came, struct wf_arrival *kept, struct wf_answer *answer)
{
	struct wf_channels *c = r->channels;
	const struct wf_caps *caps;
	struct wf_error e;
	int err;

	wf_list_remove(&r->node);
	meet(r, came);
	/* An offer is looked at again when it is pulled, for the rail may change. */
	caps = came->caps ? came->caps : wf_link_caps(link);
	err = wf_receiving_note(r, link, t, &e);
	if (!err && r->into && !(t->flags & WEFT_DEAD))
		err = wf_receiving_check(r, &e);
	if (!err)
		err = wf_terms_body(r->terms, link, &t->body, &e);
	if (!err && caps)
		err = wf_terms_rail(r->terms, link, caps, &e);
	if (err) {
		/* Matched and dropped: the sender has done its part. */
		refuse(link, t, answer, err == -ENOMEM ? WEFT_RESOURCE_EXHAUSTED : WEFT_OK);
		end(r, &e);
		goto free_kept;
	}
	if (t->body.way == WF_BODY_NONE) {
		end(r, NULL);
		goto free_kept;
	}
	err = wf_receiving_find_view(r, link, &t->body);
	if (err == -ENOENT)
		err = wf_receiving_find_memory(r, &e);
	if (err == -EAGAIN) {
		if (kept)
			kept->answer = answer;
		if (kept || !keep_arrival(c, link, t, answer, &kept)) {
			wf_list_remove(&kept->node);
			wf_list_remove(&kept->kept_node);
			kept->receive = r;
			r->arrival = kept;
			r->state = WF_RECEIVING_MEMORY;
			r->waiter.retry = retry_memory;
			wf_link_record(link, WF_RECORDER_POOL_WAIT, r->got_bytes, 0);
			wf_pool_wait(&c->worker->pool, &r->waiter);
			return;
		}
		err = wf_error_set(&e, -ENOMEM, "no memory to keep a tensor until the pool has some");
	}
	if (err) {
		refuse(link, t, answer, WEFT_RESOURCE_EXHAUSTED);
		end(r, &e);
	} else {
		move(r, link, t, answer);
	}
free_kept:
	if (kept)
		free_arrival(c, kept);
}

/* The step of that number, if it is over here.  That it was aborted says more than that it has ended. */
static const struct wf_step *find_over(const struct wf_channels *c, uint64_t step)
{
	const struct wf_step *s = wf_steps_find(&c->aborted, step);

	return s ? s : wf_steps_find(&c->ended, step);
}

void wf_channels_send(struct wf_channels *c, struct wf_link *link, struct wf_sending *s)
{
	const struct wf_step *over = find_over(c, s->step);
	struct wf_error e;

	if (over) {
		wf_step_error(over, &e);
		s->done(s, &e);
		return;
	}
	wf_sending_start(&c->sendings, link, s);
}

/* May @r have the tensor that it is about to get? */
static bool claims(struct wf_receiving *r)
{
	return !r->claim || r->claim(r);
}

static struct wf_receiving *find_receive(struct wf_channel *ch, struct wf_link *link)
{
	WF_LIST_EACH(node, &ch->receives) {
		struct wf_receiving *r = WF_CONTAINER(node, struct wf_receiving, node);

		if ((!r->from || wf_link_real(r->from) == link) && claims(r))
			return r;
	}
	return NULL;
}

static struct wf_arrival *find_arrival(struct wf_channel *ch, const struct wf_receiving *r)
{
	WF_LIST_EACH(node, &ch->arrivals) {
		struct wf_arrival *a = WF_CONTAINER(node, struct wf_arrival, node);

		if (!r->from || wf_link_real(r->from) == a->link)
			return a;
	}
	return NULL;
}

void wf_channels_receive(struct wf_channels *c, struct wf_receiving *r)
{
	uint64_t hash = wf_map_hash(&c->map, r->step, r->key, r->key_bytes);
	const struct wf_step *over = find_over(c, r->step);
	struct wf_channel *ch;
	struct wf_arrival *a;
	struct wf_error e;

	if (over) {
		wf_step_error(over, &e);
		r->done(r, &e);
		return;
	}
	ch = make_channel(c, r->step, r->key, r->key_bytes, hash);
	r->channels = c;
	r->channel = ch;
	r->got = (struct weft_tensor){ 0 };
	r->got_from = NULL;
	r->chunk = NULL;
	r->view = NULL;
	r->arrival = NULL;
	r->path = (struct wf_path){ .queued_ns = c->worker->now_ns };
	wf_list_init(&r->node);
	wf_list_init(&r->waiter.node);
	wf_list_append(&c->receives, &r->all_node);
	/* A named peer is dialled, so that its death, or its absence, ends the receive. */
	if (r->from)
		wf_link_watch(r->from, true);
	if (!ch) {
		wf_error_set(&e, -ENOMEM, "no memory for a channel");
		end(r, &e);
		return;
	}
	r->state = WF_RECEIVING_WAITING;
	wf_list_append(&ch->receives, &r->node);
	if (r->from && wf_link_real(r->from)->state == WF_LINK_GONE && !find_arrival(ch, r)) {
		wf_error_set(&e, -ENOTCONN, "%s is gone", wf_link_label(r->from));
		wf_channels_stop_receive(r, &e);
		return;
	}
	a = find_arrival(ch, r);
	if (a && claims(r))
		match(r, a->link, &a->record, &a->path, a, take_answer(a));
	drop_channel(c, ch);
}

void wf_channels_stop_receive(struct wf_receiving *r, const struct wf_error *e)
{
	struct wf_channels *c = r->channels;
	struct wf_arrival *a = r->arrival;
	struct wf_channel *ch = r->channel;

	switch (r->state) {
	case WF_RECEIVING_WAITING:
		wf_list_remove(&r->node);
		end(r, e);
		drop_channel(c, ch);
		break;
	case WF_RECEIVING_MEMORY:
		wf_pool_unwait(&c->worker->pool, &r->waiter);
		r->arrival = NULL;
		refuse(a->link, &a->record, take_answer(a), wf_status_of(e->code));
		free_arrival(c, a);
		end(r, e);
		break;
	case WF_RECEIVING_PULLING:
		wf_pull_stop(&r->pull, e);
		break;
	case WF_RECEIVING_ENDED:
		break;
	}
}

int wf_channels_take_back(struct wf_receiving *r)
{
	struct wf_channel *ch = r->channel;

	if (r->state != WF_RECEIVING_WAITING)
		return -EALREADY;
	r->state = WF_RECEIVING_ENDED;
	wf_list_remove(&r->node);
	wf_list_remove(&r->all_node);
	if (r->from)
		wf_link_unwatch(r->from);
	drop_channel(r->channels, ch);
	return 0;
}

/* Nobody waits for it yet.  -ENOMEM, -ENOSPC: @answer is still the caller's. */
static int keep_unmatched(struct wf_channels *c, struct wf_link *link,
			  const struct wf_tensor_record *t, const struct wf_path *came,
			  struct wf_answer *answer, uint64_t hash)
{
	struct wf_channel *ch = make_channel(c, t->step, t->key, t->key_bytes, hash);
	struct wf_arrival *a;
	int err;

	if (!ch)
		return -ENOMEM;
	err = keep_arrival(c, link, t, answer, &a);
	if (err) {
		drop_channel(c, ch);
		return err;
	}
	a->path = *came;
	keep_in(c, ch, a);
	return 0;
}

int wf_channels_record(struct wf_channels *c, struct wf_link *link,
		       const struct wf_record *record)
{
	struct wf_answer *answer = NULL;
	const struct wf_step *over;
	struct wf_tensor_record t;
	struct wf_receiving *r;
	struct wf_channel *ch;
	struct wf_path came;
	uint64_t hash;
	bool eager;
	int err;

	if (wf_tensor_record_get(record->bytes, record->count, &t))
		return -EBADMSG;
	came = wf_path_come(link, &t.body);
	eager = t.body.way == WF_BODY_EAGER;
	if (eager && !wf_link_use_room(link, t.body.bytes))
		return -EBADMSG;
	if (wf_body_is_offer(&t.body) && wf_answer_open(t.body.offer, &answer))
		return -ENOMEM;
	over = find_over(c, t.step);
	if (over) {
		wf_counters_add(&c->worker->counters.late_dropped, 1);
		refuse(link, &t, answer, over->status);
		return 0;
	}
	hash = wf_map_hash(&c->map, t.step, t.key, t.key_bytes);
	ch = find_channel(c, t.step, t.key, t.key_bytes, hash);
	r = ch ? find_receive(ch, link) : NULL;
	if (r) {
		match(r, link, &t, &came, NULL, answer);
		drop_channel(c, ch);
		return 0;
	}
	err = keep_unmatched(c, link, &t, &came, answer, hash);
	if (err) {
		wf_answer_close(answer);
		if (eager)
			wf_link_unuse_room(link, t.body.bytes); /* it comes again */
	}
	return err;
}

void wf_channels_unmatched(const struct wf_channels *c,
			   void (*each)(void *ctx, const struct wf_tensor_record *t,
					const struct wf_link *from, uint64_t since_ns),
			   void *ctx)
{
	WF_LIST_EACH(node, &c->kept) {
		const struct wf_arrival *a = WF_CONTAINER(node, struct wf_arrival, kept_node);
		struct wf_tensor_record t = a->record;

		/* The record's own was in the frame. */
		t.key = a->channel->key;
		each(ctx, &t, a->link, a->since_ns);
	}
}

/* The floors below. */

/* End the receives that wait for @link, NULL: all that wait. */
static void stop_waiting(struct wf_channels *c, const struct wf_link *link, const struct wf_error *e)
{
	WF_LIST_EACH(at, &c->receives) {
		struct wf_receiving *r = WF_CONTAINER(at, struct wf_receiving, all_node);

		if (r->state == WF_RECEIVING_WAITING &&
		    (!link || (r->from && wf_link_real(r->from) == link)))
			wf_channels_stop_receive(r, e);
	}
}

/* The body of @a can't be had any more. */
static void lose_offer(struct wf_channels *c, struct wf_arrival *a, const struct wf_error *e)
{
	struct wf_channel *ch = a->channel;

	wf_counters_add(&c->worker->counters.late_dropped, 1);
	if (a->receive) {
		wf_channels_stop_receive(a->receive, e);
		return;
	}
	free_arrival(c, a);
	drop_channel(c, ch);
}

/* Receives end; offers of the dead can't be pulled.  What it sent whole stays. */
void wf_channels_down(struct wf_channels *c, struct wf_link *link, const struct wf_error *e)
{
	WF_LIST_EACH(node, &c->offers) {
		struct wf_arrival *a = WF_CONTAINER(node, struct wf_arrival, offer_node);

		if (a->link == link)
			lose_offer(c, a, e);
	}
	stop_waiting(c, link, e);
	wf_sending_down(&c->sendings, link, e);
}

void wf_channels_merged(struct wf_channels *c)
{
	struct wf_map_node *node = NULL;

	/* Matching changes the map: start anew after each. */
	while ((node = wf_map_next(&c->map, node))) {
		struct wf_channel *ch = WF_CONTAINER(node, struct wf_channel, node);
		struct wf_receiving *found = NULL;
		struct wf_arrival *a = NULL;

		WF_LIST_EACH(at, &ch->receives) {
			found = WF_CONTAINER(at, struct wf_receiving, node);
			a = find_arrival(ch, found);
			if (a && claims(found))
				break;
			a = NULL;
		}
		if (!a)
			continue;
		match(found, a->link, &a->record, &a->path, a, take_answer(a));
		drop_channel(c, ch);
		node = NULL;
	}
}

void wf_channels_withdrawn(struct wf_channels *c, struct wf_link *link, uint64_t offer)
{
	struct wf_error e;

	wf_error_set(&e, -ECANCELED, "%s took its tensor back", wf_link_label(link));
	WF_LIST_EACH(node, &c->offers) {
		struct wf_arrival *a = WF_CONTAINER(node, struct wf_arrival, offer_node);

		if (a->link == link && a->record.body.offer == offer) {
			lose_offer(c, a, &e);
			return;
		}
	}
}

void wf_channels_init(struct wf_channels *c, struct wf_worker *worker, struct wf_transfer *t,
		      int (*aborted)(void *ctx, const struct wf_step *step), void *ctx)
{
	*c = (struct wf_channels){
		.worker = worker, .transfer = t, .aborted_by_peer = aborted, .ctx = ctx,
	};
	wf_sending_init(&c->sendings, t);
	wf_steps_init(&c->aborted);
	wf_steps_init(&c->ended);
	wf_map_init(&c->map);
	wf_list_init(&c->receives);
	wf_list_init(&c->kept);
	wf_list_init(&c->offers);
}

void wf_channels_cancel(struct wf_channels *c)
{
	struct wf_error e;

	wf_error_set(&e, -ECANCELED, "this node has closed");
	stop_waiting(c, NULL, &e);
}

void wf_channels_fini(struct wf_channels *c)
{
	struct wf_map_node *node;

	while ((node = wf_map_next(&c->map, NULL))) {
		struct wf_channel *ch = WF_CONTAINER(node, struct wf_channel, node);

		WF_LIST_EACH(at, &ch->arrivals)
			free_arrival(c, WF_CONTAINER(at, struct wf_arrival, node));
		drop_channel(c, ch);
	}
	wf_timer_stop(&c->worker->timers, &c->kept_timer);
	wf_timer_stop(&c->worker->timers, &c->brief_timer);
	wf_steps_fini(&c->aborted);
	wf_steps_fini(&c->ended);
	wf_map_fini(&c->map);
}
