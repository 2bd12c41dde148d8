/* SPDX-License-Identifier: BSD-2-Clause */
#include "tensor/receiving.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/key.h"
#include "tensor/shape.h"
#include "util/progress.h"
#include "util/status.h"

/* Keep the key of the tensor that @r gets.  -ENOMEM. */
static int note_key(struct wf_receiving *r, const struct wf_record_tensor *t)
{
	void *key = malloc(t->key_bytes + 1u); /* a key may be empty */

	if (!key)
		return -ENOMEM;
	memcpy(key, t->key, t->key_bytes);
	r->key = key;
	r->key_bytes = t->key_bytes;
	return 0;
}

/* Note the record's description of the tensor that @r gets.  -ENOMEM. */
static int note(struct wf_receiving *r, struct wf_link *link, const struct wf_record_tensor *t,
		struct wf_error *e)
{
	int64_t *shape = r->got.shape;

	if (r->flags & WEFT_ANY_KEY && note_key(r, t))
		return wf_error_set(e, -ENOMEM, "no memory for a key");
	if (t->rank > WF_COUNT(r->got.shape)) {
		shape = r->got.long_shape = malloc(t->rank * sizeof(*shape));
		if (!shape)
			return wf_error_set(e, -ENOMEM, "no memory for a shape");
	}
	wf_unexpected_describe(t, shape, &r->got.tensor);
	r->got.flags = t->flags & (WEFT_DEAD | WEFT_OPAQUE);
	r->got.bytes = t->body.bytes;
	r->got.from = link;
	wf_link_get(link);
	return 0;
}

static bool same_shape(const struct weft_tensor *a, const struct weft_tensor *b)
{
	return a->ndim == b->ndim &&
	       (!a->ndim || !memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof(a->shape[0])));
}

/* Check that the tensor fits the buffer that the receive brought.  -EBADFD. */
static int check(const struct wf_receiving *r, struct wf_error *e)
{
	char have[WF_SHAPE_TEXT_BYTES], want[WF_SHAPE_TEXT_BYTES];
	const struct weft_tensor *into = r->into;
	bool fits = !memcmp(&into->dtype, &r->got.tensor.dtype, sizeof(into->dtype));
	uint64_t capacity = 0, needed = 0;

	if (fits && same_shape(into, &r->got.tensor))
		return 0;
	wf_shape_bytes(into->dtype, into->ndim, into->shape, &capacity);
	/* A dead tensor has no bytes, and is matched by the size that it would have. */
	wf_shape_bytes(r->got.tensor.dtype, r->got.tensor.ndim, r->got.tensor.shape, &needed);
	if (fits && r->flags & WEFT_ANY_SHAPE && needed <= capacity)
		return 0;
	wf_shape_text(into->dtype, into->ndim, into->shape, want);
	wf_shape_text(r->got.tensor.dtype, r->got.tensor.ndim, r->got.tensor.shape, have);
	return wf_error_set(e, -EBADFD,
			    "the receive brought a buffer of %llu bytes for %s%s, and %s sent %s of %llu bytes",
			    (unsigned long long)capacity, want,
			    r->flags & WEFT_ANY_SHAPE ? " or less" : "",
			    wf_link_label(r->got.from), have, (unsigned long long)needed);
}

/* Map @body as a view.  -ENOENT: that can't be done, or the receive brought memory. */
static int find_view(struct wf_receiving *r, struct wf_link *link, const struct wf_body *body)
{
	const struct wf_rail_caps *caps = wf_link_caps(link);
	int err;

	/* Without a rail the path could not name the rail of the body. */
	if (body->way != WF_BODY_VIEW || r->into || r->alloc || !caps || !caps->same_host)
		return -ENOENT;
	err = wf_view_open(&r->unexpected_queue->transfer->views, link, body, &r->view);
	/*
	 * The owner must say whether the offer is over, and why: it was cancelled, or has given
	 * us up.
	 */
	r->doubted = err == -ESTALE;
	if (err)
		return -ENOENT;
	r->got.tensor.data = r->got.chunk = (void *)(uintptr_t)r->view->hold.at;
	r->got.readonly = true;
	return 0;
}

static void staged(struct wf_stage *stage, const struct wf_error *e);

/*
 * Take a pull late: few receives pull at once, and a pull takes twice the memory of all else.
 * -ENOMEM.
 */
static int need_pull(struct wf_receiving *r)
{
	if (r->pull)
		return 0;
	r->pull = wf_freelist_take(&r->unexpected_queue->pulls);
	if (!r->pull)
		return -ENOMEM;
	r->pull->job.came = NULL;
	return 0;
}

static int find_stage(struct wf_receiving *r, struct wf_error *e)
{
	/* The pull keeps the reason why draining has failed, also where nothing was pulled. */
	if (need_pull(r))
		return wf_error_set(e, -ENOMEM, "no memory to stage a tensor");
	if (!r->stage && wf_stage_open(r->unexpected_queue->transfer, r->device, r->got.bytes,
				       WF_KIND_OUT_OF_CHUNK, &r->stage))
		return wf_error_set(e, -ENOMEM, "no memory to stage a tensor");
	r->stage->moved = staged;
	r->stage->owner = r;
	/* A receive that forbids staging takes no buffer. */
	return r->terms->no_staging ? 0 : wf_stage_take_bounce(r->stage, e);
}

/* Find the destination.  -EAGAIN: the pool has none for now.  -ENOBUFS. */
static int find_memory(struct wf_receiving *r, struct wf_error *e)
{
	struct wf_pool *pool = &r->unexpected_queue->engine->pool;
	int err;

	if (r->into) {
		r->got.tensor.data = (char *)r->into->data + r->into->byte_offset;
		r->got.tensor.device = r->into->device;
		return r->device ? find_stage(r, e) : 0;
	}
	if (r->alloc) {
		r->got.tensor.data = r->alloc(r->alloc_arg, &r->got.tensor, r->got.bytes);
		return r->got.tensor.data ? 0
				   : wf_error_set(e, -ENOBUFS,
						  "the receive's allocation callback gave no memory for %llu bytes",
						  (unsigned long long)r->got.bytes);
	}
	err = wf_pool_take(pool, r->got.bytes, &r->got.chunk);
	if (err == -EAGAIN)
		return err;
	if (err)
		return wf_error_set(e, -ENOBUFS,
				    "a tensor of %llu bytes does not fit the pool of %llu (WEFT_POOL_BYTES)",
				    (unsigned long long)r->got.bytes,
				    (unsigned long long)pool->budget_bytes);
	r->got.tensor.data = r->got.chunk;
	return 0;
}

/* Give up shape, link, and pool chunk or view. */
static void release(struct wf_receiving *r)
{
	free(r->got.long_shape);
	r->got.tensor.shape = r->got.long_shape = NULL;
	r->got.tensor.data = NULL;
	if (r->view)
		wf_view_close(r->view);
	else
		wf_pool_give(&r->unexpected_queue->engine->pool, r->got.chunk);
	r->view = NULL;
	r->got.chunk = NULL;
	if (r->got.from)
		wf_link_put(r->got.from);
	r->got.from = NULL;
}

/* Start and end of a receive. */

void wf_receiving_init(struct wf_receiving *r, struct wf_unexpected_queue *unexpected_queue)
{
	r->unexpected_queue = unexpected_queue;
	r->channel = NULL;
	r->got.tensor = (struct weft_tensor){ 0 };
	r->got.from = NULL;
	r->got.chunk = NULL;
	r->view = NULL;
	r->stage = NULL;
	r->pull = NULL;
	r->doubted = false;
	r->unexpected = NULL;
	r->returns = r->aborted = false;
	r->path = (struct wf_path){ .queued_ns = unexpected_queue->engine->loop.now_ns };
	wf_list_init(&r->node);
	wf_list_init(&r->all_node);
	r->use = (struct wf_use_member){ 0 };
	r->part = NULL;
}

/*
 * Answer for the unexpected tensor that @r met, and free it, or give it back for another receive.
 */
static void let_go(struct wf_receiving *r, const struct wf_error *e)
{
	struct wf_unexpected *a = r->unexpected;

	r->unexpected = NULL;
	if (!a)
		return;
	if (e && r->returns) {
		r->give_back(r, a);
		return;
	}
	wf_answer_refuse(a->link, &a->record.body, wf_unexpected_take_answer(a),
			 e && r->aborted ? wf_status_of(e->code) : WEFT_OK);
	wf_unexpected_free(a);
}

void wf_receiving_leave(struct wf_receiving *r)
{
	struct wf_link *from = r->from;

	if (!from)
		return;
	r->from = NULL;
	wf_link_unwatch(from);
	wf_link_put(from);
}

void wf_receiving_end(struct wf_receiving *r, const struct wf_error *e)
{
	struct wf_freelist *pulls = &r->unexpected_queue->pulls;
	struct wf_pull *pull = r->pull;

	r->state = WF_RECEIVING_ENDED;
	let_go(r, e);
	wf_list_remove(&r->all_node);
	wf_use_leave(&r->use);
	wf_part_put(r->part);
	r->part = NULL;
	wf_receiving_leave(r);
	wf_stage_close(r->stage);
	r->stage = NULL;
	if (e)
		release(r);
	r->view = NULL; /* a view, as any chunk, is found by its address from now on */
	r->pull = NULL;
	r->done(r, e);
	wf_freelist_give(pulls, pull); /* @e may have been in the pull */
}

/* Add to @e the name of the tensor. */
static struct wf_error say_which(const struct wf_receiving *r, const struct wf_error *e)
{
	struct wf_error why = *e;
	char key[WF_KEY_TEXT_BYTES];

	if (r->attached) {
		wf_error_within(&why, "attachment %llu", (unsigned long long)r->step);
		return why;
	}
	wf_key_text(r->key, r->key_bytes, key);
	wf_error_within(&why, "step %llu, key %s", (unsigned long long)r->step, key);
	return why;
}

/* End @r once no copy writes to its buffer, which is borrowed till then. */
static void end_when_drained(struct wf_receiving *r)
{
	const struct wf_stage *stage = r->stage;
	const struct wf_error *why = &r->pull->stop.why;

	if (why->code ? wf_stage_quiet(stage) : stage->ended == r->got.bytes)
		wf_receiving_end(r, why->code ? why : NULL);
}

static void fail_draining(struct wf_receiving *r, const struct wf_error *e)
{
	if (!r->pull->stop.why.code)
		r->pull->stop.why = *e;
	wf_stage_stop(r->stage);
}

/* Drain and end @r: all bytes have come, or, with @e, no more do. */
static void come(struct wf_receiving *r, const struct wf_error *e)
{
	if (!r->stage) {
		wf_receiving_end(r, e);
		return;
	}
	r->state = WF_RECEIVING_DRAINING;
	r->pull->stop.why.code = 0;
	if (!e)
		wf_stage_go(r->stage, r->got.bytes);
	if (e || r->stage->why.code)
		fail_draining(r, e ? e : &r->stage->why);
	end_when_drained(r);
}

static void staged(struct wf_stage *stage, const struct wf_error *e)
{
	struct wf_receiving *r = stage->owner;

	/* A copy out of the owner's device counts when the owner has confirmed it. */
	if (!e && r->pull->way == WF_PULL_WAY_STAGED)
		wf_pull_report(r->pull, stage->ended);
	if (r->state == WF_RECEIVING_PULLING) {
		if (e)
			wf_pull_stop(r->pull, e);
		wf_pull_drained(r->pull);
	} else if (r->state == WF_RECEIVING_DRAINING) {
		if (e)
			fail_draining(r, e);
		end_when_drained(r);
	}
}

static void came(struct wf_pull *pull, uint64_t bytes)
{
	struct wf_receiving *r = pull->job.owner;
	uint64_t sure = pull->sums.count ? wf_reader_sums_sure(&pull->sums) : bytes;

	if (r->flags & WEFT_RELAY && !r->unexpected_queue->relay->came(r, &bytes, sure))
		return;
	if (r->came)
		r->came(r->came_arg, &r->got.tensor, bytes);
}

static void told(struct wf_pull *pull)
{
	struct wf_receiving *r = pull->job.owner;
	uint64_t none = 0;

	(void)r->unexpected_queue->relay->came(r, &none, wf_reader_sums_sure(&pull->sums));
}

static void pulled(struct wf_pull *pull, const struct wf_error *e)
{
	struct wf_receiving *r = pull->job.owner;
	struct wf_unexpected *a = r->unexpected;
	struct wf_error why;

	if (a && pull->answer) {
		wf_unexpected_give_answer(a, pull->answer);
	} else if (a) {
		r->unexpected = NULL;
		wf_unexpected_free(a);
	}
	pull->answer = NULL;
	r->path = pull->path;
	if (pull->damaged)
		why = say_which(r, e);
	else if (e)
		why = *e; /* @e may be the stage's */
	come(r, e ? &why : NULL);
}

static void lost_held(struct wf_unexpected *a, const struct wf_error *e);

/*
 * Keep the tensor that @r takes some time to receive, in @kept if that is there, so that it can
 * be given back.  Without memory it can't be given back.
 */
static void hold(struct wf_receiving *r, struct wf_link *link, const struct wf_record_tensor *t,
		 struct wf_unexpected *kept)
{
	if (!kept && (!r->give_back || r->flags & WEFT_DROP ||
		      wf_unexpected_keep(r->unexpected_queue, link, t, &r->path, NULL, &kept)))
		return;
	wf_unexpected_unwait(kept);
	kept->keeper = r;
	kept->lost = lost_held;
	r->unexpected = kept;
}

/* Pull the body of @t, or @rest of it.  Takes @answer. */
static void pull(struct wf_receiving *r, struct wf_link *link, const struct wf_record_tensor *t,
		 const struct wf_pull_block *rest, struct wf_answer *answer)
{
	struct wf_error e;

	if (need_pull(r)) {
		wf_error_set(&e, -ENOMEM, "no memory to pull a tensor");
		wf_answer_refuse(link, &t->body, answer, WEFT_OK);
		wf_receiving_end(r, &e);
		return;
	}
	if (r->stage)
		r->path.way = WF_BODY_STAGED;
	r->pull->job = (struct wf_pull_job){
		.into = r->stage ? r->stage->bounce : r->got.tensor.data,
		.stage = r->stage,
		.view = r->view,
		.handle = r->stage &&
			  wf_stage_may_copy(r->stage, link, &t->body, r->terms->no_staging),
		.doubted = r->doubted,
		.terms = r->terms,
		.way_only = true,
		.owner = r,
		.came = r->came || r->flags & WEFT_RELAY ? came : NULL,
		.told = r->flags & WEFT_RELAY ? told : NULL,
		.done = pulled,
	};
	if (rest) {
		r->pull->job.blocks = rest;
		r->pull->job.block_count = 1;
		r->pull->job.blocks_known = r->pull->job.blocks_bytes = rest->bytes;
		r->pull->job.blocks_span = r->got.bytes;
	}
	r->pull->path = r->path;
	r->state = WF_RECEIVING_PULLING;
	if (wf_pull_start(r->unexpected_queue->transfer, link, &t->body, answer, r->pull)) {
		wf_error_set(&e, -ENOMEM, "no memory to pull a tensor");
		wf_receiving_end(r, &e);
	}
}

/* May another receiver bring the body of @t?  On one host all look at the sender's memory. */
static bool may_relay(const struct wf_receiving *r, const struct wf_link *link,
		      const struct wf_record_tensor *t)
{
	const struct wf_rail_caps *caps = wf_link_caps(link);

	return r->flags & WEFT_RELAY && t->flags & WF_TENSOR_RELAYED && r->unexpected &&
	       r->unexpected_queue->relay && t->body.way == WF_BODY_PULL && !r->stage &&
	       !r->view && !r->doubted && caps && !caps->same_host;
}

void wf_receiving_relayed(struct wf_receiving *r, const struct wf_pull_block *rest,
			  const struct wf_error *e)
{
	struct wf_unexpected *a = r->unexpected;

	if (e || !rest) {
		wf_receiving_end(r, e);
		return;
	}
	pull(r, a->link, &a->record, rest->from ? rest : NULL, wf_unexpected_take_answer(a));
}

/* Bring the body to its destination.  Takes @answer and @kept. */
static void move(struct wf_receiving *r, struct wf_link *link, const struct wf_record_tensor *t,
		 struct wf_answer *answer, struct wf_unexpected *kept)
{
	void *bytes = r->stage ? r->stage->bounce : r->got.tensor.data;
	struct wf_error e;
	int err;

	if (kept || r->stage || wf_body_is_offer(&t->body))
		hold(r, link, t, kept);
	if (t->body.way == WF_BODY_EAGER) {
		memcpy(bytes, t->eager, t->body.bytes);
		/* An unexpected tensor that is held uses credit until it is let go. */
		if (!r->unexpected)
			wf_eager_credit_give(link, t->body.bytes);
		err = wf_reader_sums_check(&t->body, bytes, link, r->path.caps, &e);
		if (err)
			e = say_which(r, &e);
		come(r, err ? &e : NULL);
		return;
	}
	if (!may_relay(r, link, t)) {
		pull(r, link, t, NULL, answer);
		return;
	}
	wf_unexpected_give_answer(r->unexpected, answer);
	r->state = WF_RECEIVING_RELAYING;
	r->unexpected_queue->relay->begin(r);
}

static void retry_memory(struct wf_pool_waiter *waiter)
{
	struct wf_receiving *r = WF_CONTAINER(waiter, struct wf_receiving, waiter);
	struct wf_unexpected *a = r->unexpected;
	struct wf_error e;
	int err = find_memory(r, &e);

	if (err == -EAGAIN) {
		wf_pool_wait(&r->unexpected_queue->engine->pool, &r->waiter);
		return;
	}
	if (err)
		wf_receiving_end(r, &e);
	else
		move(r, a->link, &a->record, wf_unexpected_take_answer(a), a);
}

/*
 * End a receive that waits for memory with its offer; a receive that is ending has nothing to
 * give back.
 */
static void lost_held(struct wf_unexpected *a, const struct wf_error *e)
{
	struct wf_receiving *r = a->keeper;

	r->returns = false;
	if (r->state == WF_RECEIVING_MEMORY) {
		wf_receiving_stop(r, e);
		return;
	}
	r->unexpected = NULL;
	wf_unexpected_free(a);
	if (r->state == WF_RECEIVING_RELAYING)
		r->unexpected_queue->relay->stop(r, e);
}

/* Keep @a until the pool has room. */
static void wait_for_memory(struct wf_receiving *r, struct wf_unexpected *a)
{
	wf_unexpected_unwait(a);
	a->keeper = r;
	a->lost = lost_held;
	r->unexpected = a;
	r->state = WF_RECEIVING_MEMORY;
	wf_list_init(&r->waiter.node);
	r->waiter.retry = retry_memory;
	wf_link_record(a->link, WF_RECORDER_POOL_WAIT, r->got.bytes, 0);
	wf_pool_wait(&r->unexpected_queue->engine->pool, &r->waiter);
}

/* Let the path of the receive begin with that of the tensor. */
static void take_path(struct wf_receiving *r, const struct wf_path *came)
{
	uint64_t queued_ns = r->path.queued_ns;

	r->path = *came;
	r->path.queued_ns = queued_ns;
	r->path.matched_ns = r->unexpected_queue->engine->loop.now_ns;
}

void wf_receiving_meet(struct wf_receiving *r, struct wf_link *link,
		       const struct wf_record_tensor *t, const struct wf_path *came,
		       struct wf_unexpected *kept, struct wf_answer *answer)
{
	const struct wf_rail_caps *caps;
	struct wf_error e;
	int err;

	take_path(r, came);
	/* The rail of an offer is checked again when it is pulled, for the rail may change. */
	caps = came->caps ? came->caps : wf_link_caps(link);
	err = note(r, link, t, &e);
	if (!err && r->into)
		err = check(r, &e);
	if (!err)
		err = wf_terms_body(r->terms, link, &t->body, &e);
	if (!err && r->device && r->terms->no_staging && t->body.way == WF_BODY_EAGER)
		err = wf_error_set(&e, -EBADFD,
				   "no staging was asked for, and %llu bytes for CUDA device %d came within a record",
				   (unsigned long long)t->body.bytes, r->device->place.device);
	if (!err && caps)
		err = wf_terms_rail(r->terms, link, caps, &e);
	if (err)
		goto refuse;
	if (t->body.way == WF_BODY_NONE) {
		wf_receiving_end(r, NULL);
		goto free_kept;
	}
	err = find_view(r, link, &t->body);
	if (err == -ENOENT)
		err = find_memory(r, &e);
	if (err == -EAGAIN) {
		if (kept)
			wf_unexpected_give_answer(kept, answer);
		if (kept ||
		    !wf_unexpected_keep(r->unexpected_queue, link, t, came, answer, &kept)) {
			wait_for_memory(r, kept);
			return;
		}
		err = wf_error_set(&e, -ENOMEM, "no memory to keep a tensor until the pool has some");
	}
	if (!err) {
		move(r, link, t, answer, kept);
		return;
	}
refuse:
	/* A tensor that does not fit is matched and dropped: the sender has done its part. */
	wf_answer_refuse(link, &t->body, answer, WEFT_OK);
	wf_receiving_end(r, &e);
free_kept:
	if (kept)
		wf_unexpected_free(kept);
}

void wf_receiving_meet_kept(struct wf_receiving *r, struct wf_unexpected *a)
{
	wf_receiving_meet(r, a->link, &a->record, &a->path, a, wf_unexpected_take_answer(a));
}

static void stop(struct wf_receiving *r, const struct wf_error *e)
{
	if (r->flags & WEFT_RELAY &&
	    (r->state == WF_RECEIVING_PULLING || r->state == WF_RECEIVING_RELAYING))
		r->unexpected_queue->relay->stopping(r);
	if (r->state == WF_RECEIVING_PULLING && r->returns) {
		wf_pull_release(r->pull, e);
	} else if (r->state == WF_RECEIVING_PULLING) {
		wf_pull_stop(r->pull, e);
	} else if (r->state == WF_RECEIVING_DRAINING) {
		fail_draining(r, e);
		end_when_drained(r);
	} else if (r->state == WF_RECEIVING_MEMORY) {
		wf_pool_unwait(&r->unexpected_queue->engine->pool, &r->waiter);
		wf_receiving_end(r, e);
	} else if (r->state == WF_RECEIVING_RELAYING) {
		r->unexpected_queue->relay->stop(r, e);
	}
}

void wf_receiving_stop(struct wf_receiving *r, const struct wf_error *e)
{
	r->aborted = true;
	if (r->state == WF_RECEIVING_PULLING)
		r->pull->job.way_only = false;
	stop(r, e);
}

void wf_receiving_cancel(struct wf_receiving *r, const struct wf_error *e)
{
	/* Without a record to give back, the pull itself has to answer for the tensor. */
	r->returns = r->unexpected && r->give_back && !(r->flags & WEFT_DROP);
	stop(r, e);
}

unsigned wf_receiving_copies(const struct wf_receiving *r)
{
	return (r->path.way == WF_BODY_EAGER) + (r->device && r->path.bytes && !r->path.straight);
}

/* Text for people. */

static void describe_wait(const struct wf_receiving *r, char *text, size_t bytes)
{
	size_t others = r->unexpected_queue->count;
	int used;

	if (r->from)
		used = snprintf(text, bytes, "%s has not sent it",
				wf_link_label(wf_link_real(r->from)));
	else
		used = snprintf(text, bytes, "no peer has sent it");

	/* A wrong step or key shows by the tensors that nobody receives. */
	if (others && used > 0 && (size_t)used < bytes)
		(void)snprintf(text + used, bytes - (size_t)used,
			       ", while %zu tensors that came are not received", others);
}

void wf_receiving_describe(const struct wf_receiving *r, char *text, size_t bytes)
{
	char wait[WF_POOL_TEXT_BYTES];

	switch (r->state) {
	case WF_RECEIVING_ENDED:
		(void)snprintf(text, bytes, "it has come");
		break;
	case WF_RECEIVING_WAITING:
		describe_wait(r, text, bytes);
		break;
	case WF_RECEIVING_MEMORY:
		wf_pool_describe(&r->unexpected_queue->engine->pool,
				 r->stage ? r->stage->bounce_bytes : r->got.bytes, wait);
		(void)snprintf(text, bytes, "%s has sent it, and %s",
			       wf_link_label(wf_link_real(r->got.from)), wait);
		break;
	case WF_RECEIVING_RELAYING:
		(void)snprintf(text, bytes, "another receiver of %s's broadcast passes it on",
			       wf_link_label(wf_link_real(r->got.from)));
		break;
	case WF_RECEIVING_PULLING:
		wf_pull_describe(r->pull, text, bytes);
		break;
	case WF_RECEIVING_DRAINING:
		(void)snprintf(text, bytes, "%llu of %llu bytes are on their device",
			       (unsigned long long)r->stage->ended,
			       (unsigned long long)r->got.bytes);
		break;
	}
}

uint64_t wf_receiving_progress(const struct wf_receiving *r)
{
	uint64_t part = r->state == WF_RECEIVING_PULLING    ? wf_pull_progress(r->pull)
			: r->state == WF_RECEIVING_DRAINING ? r->stage->ended
							    : 0;

	return wf_progress_add(r->state, part);
}
