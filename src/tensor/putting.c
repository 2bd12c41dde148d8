/* SPDX-License-Identifier: BSD-2-Clause */
#include "tensor/putting.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tensor/remote.h"
#include "util/progress.h"
#include "util/status.h"

#define LIST_BYTES 3000 /* a list in one record has at most so many: it fits a frame of shm, 4 KiB */

/* A part of a list, in a record of its own. */
struct wf_putting_list {
	struct wf_list node; /* in putting->lists, until it is posted */
	struct wf_message message;
	size_t bytes_used;
	uint8_t bytes[8 + LIST_BYTES];
};

static bool tells_owner(const struct wf_putting_body *body)
{
	const struct wf_putting *p = body->putting;

	return p->whole || body->block == p->count || p->count == 1;
}

static struct wf_access_block nth(const struct wf_putting *p, uint32_t i)
{
	return (struct wf_access_block){
		.to = p->blocks[i].from,
		.from = (uint64_t)((char *)p->blocks[i].to - (char *)p->span),
		.bytes = p->blocks[i].bytes,
	};
}

/* Write as many blocks from *@next on as fit for sure. */
static void put_blocks(const struct wf_putting *p, struct wf_bytes_writer *w,
		       struct wf_access_block *last, uint32_t *next)
{
	while (*next < p->count && wf_bytes_writer_left(w) >= WF_ACCESS_BLOCK_BYTES_MAX) {
		struct wf_access_block block = nth(p, (*next)++);

		wf_access_block_put(w, last, &block);
	}
}

static void free_lists(struct wf_putting *p)
{
	struct wf_list *node;

	while ((node = wf_list_pop(&p->lists)))
		free(WF_CONTAINER(node, struct wf_putting_list, node));
}

/* Make the records of the list from block @next on.  -ENOMEM. */
static int make_lists(struct wf_putting *p, uint64_t offer, struct wf_access_block *last,
		      uint32_t next)
{
	while (next < p->count) {
		struct wf_putting_list *list = malloc(sizeof(*list));
		struct wf_bytes_writer w;

		if (!list) {
			free_lists(p);
			return -ENOMEM;
		}
		w = wf_bytes_writer(list->bytes, sizeof(list->bytes));
		wf_bytes_put_u64(&w, offer);
		put_blocks(p, &w, last, &next);
		list->bytes_used = (size_t)(w.at - list->bytes);
		wf_list_init(&list->node);
		wf_list_append(&p->lists, &list->node);
	}
	return 0;
}

static void list_sent(struct wf_message *m, const struct wf_error *e)
{
	(void)e;
	free(WF_CONTAINER(m, struct wf_putting_list, message));
}

static void post_lists(struct wf_outgoing *outgoing)
{
	struct wf_putting *p = WF_CONTAINER(outgoing, struct wf_putting_body, outgoing)->putting;
	struct wf_list *node;

	while ((node = wf_list_pop(&p->lists))) {
		struct wf_putting_list *list = WF_CONTAINER(node, struct wf_putting_list, node);

		list->message = (struct wf_message){
			.type = WF_RECORD_BLOCKS,
			.head = list->bytes,
			.head_bytes = list->bytes_used,
			.sent = list_sent,
		};
		wf_link_post(p->link, &list->message);
	}
}

/* The record about a block; about the only one, or after the last, it tells the owner. */
static int put_head(struct wf_outgoing *outgoing, const struct wf_body *offered)
{
	const struct wf_putting_body *body =
		WF_CONTAINER(outgoing, struct wf_putting_body, outgoing);
	struct wf_putting *p = body->putting;
	struct wf_access_push push = { .window = p->window };
	struct wf_access_block last = { 0 };
	uint8_t list[LIST_BYTES];
	struct wf_bytes_writer w = wf_bytes_writer(list, sizeof(list)), head;
	uint32_t next = 0;
	int err = 0;

	if (p->whole) {
		put_blocks(p, &w, &last, &next);
		push.list_bytes = (size_t)(w.at - list);
		push.flags = WF_ACCESS_PUSH_LIST;
		push.block_count = p->count;
		push.block_bytes = p->path.bytes;
		push.body = *offered;
		err = make_lists(p, offered->offer, &last, next);
	} else if (body->block < p->count) {
		push.at = p->blocks[body->block].from;
		push.body = *offered;
	}
	if (body->block == p->count)
		push.at = p->ask.id;
	if (tells_owner(body)) {
		push.flags |= p->flags;
		push.number = p->number;
		push.note_bytes = p->note_bytes;
		push.note = p->note;
	}
	if (!err)
		err = wf_outgoing_head(outgoing, wf_access_push_bytes(&push) + push.list_bytes, &head);
	if (err)
		return err;
	wf_access_push_put(&head, &push);
	wf_bytes_put(&head, list, push.list_bytes);
	return 0;
}

static void body_done(struct wf_outgoing *outgoing, const struct wf_error *e);
static void release(struct wf_putting *p);

static const struct wf_outgoing_class class = {
	.offers = true,
	.in_order = true, /* the blocks of one put must not be among those of another */
	.put_head = put_head,
	.posted = post_lists,
	.done = body_done,
};

static void post_next(struct wf_putting *p, struct wf_putting_body *body);

static void fail_without_memory(struct wf_putting *p)
{
	struct wf_error e;

	wf_error_set(&e, -ENOMEM, "no memory to put a block");
	wf_putting_stop(p, &e);
}

/* Let @body go on to another block, or the put end, once no copy reads its block any more. */
static void leave(struct wf_putting *p, struct wf_putting_body *body)
{
	wf_stage_stop(body->stage);
	if (body->stage && !wf_stage_quiet(body->stage))
		return;
	wf_stage_close(body->stage);
	body->stage = NULL;
	p->busy--;
	post_next(p, body);
}

static void staged(struct wf_stage *stage, const struct wf_error *e)
{
	struct wf_putting_body *body = stage->owner;
	struct wf_putting *p = body->putting;

	if (body->outgoing.state != WF_OUTGOING_ENDED) {
		wf_outgoing_filled(&body->outgoing, e);
		return;
	}
	p->held++;
	leave(p, body);
	release(p);
}

/* Stage the block of @body, which is on a device.  -ENOMEM. */
static int open_stage(struct wf_putting *p, struct wf_putting_body *body)
{
	const struct wf_pull_block *block = &p->blocks[body->block];

	if (wf_stage_open(p->remotes->transfer, p->device, block->bytes, WF_KIND_INTO_CHUNK,
			  &body->stage))
		return -ENOMEM;
	wf_stage_place(body->stage, block->to, NULL);
	body->stage->moved = staged;
	body->stage->owner = body;
	return 0;
}

static void post(struct wf_putting *p, struct wf_putting_body *body, uint32_t block)
{
	bool is_block = block < p->count;

	body->putting = p;
	body->block = block;
	if (is_block && p->device && open_stage(p, body)) {
		fail_without_memory(p);
		return;
	}
	body->outgoing.body = p->whole ? p->span : is_block ? p->blocks[block].to : NULL;
	body->outgoing.body_bytes = p->whole ? p->span_bytes : is_block ? p->blocks[block].bytes : 0;
	body->outgoing.stage = body->stage;
	body->outgoing.class = &class;
	body->outgoing.terms = p->terms;
	body->outgoing.type = WF_RECORD_PUSH;
	body->outgoing.lend = false;
	p->busy++;
	wf_outgoing_post(p->remotes->transfer, p->link, &body->outgoing);
}

static void noted(struct wf_remote_ask *ask, const struct wf_body *body, struct wf_answer *answer,
		  const struct wf_error *e);

/* Tell the owner that the put is whole, in a record without a body, which it answers. */
static void tell_owner(struct wf_putting *p, struct wf_putting_body *body)
{
	struct wf_error e;

	p->ask.noted = true;
	p->ask.answered = noted;
	if (wf_remote_expect(p->remotes, p->link, &p->ask)) {
		wf_error_set(&e, -ENOMEM, "no memory to end a put");
		wf_reason_keep(&p->why, &e);
		return;
	}
	post(p, body, p->count);
}

/* Post what is next by @body, which is free.  Nothing is, while the last blocks are on their way. */
static void post_next(struct wf_putting *p, struct wf_putting_body *body)
{
	if (p->why.code)
		return;
	if (p->next < p->count) {
		post(p, body, p->next);
		p->next = p->whole ? p->count : p->next + 1;
	} else if (!p->busy && !p->told) {
		p->told = true;
		tell_owner(p, body);
	}
}

static void end(struct wf_putting *p)
{
	struct wf_link *link = p->link;
	const struct wf_error *why;
	struct wf_error e;

	p->link = NULL;
	free_lists(p);
	why = wf_reason_get(&p->why, &e);
	wf_reason_drop(&p->why);
	p->done(p, why);
	wf_link_put(link);
}

static void add_path(struct wf_path *sum, const struct wf_path *path, bool first)
{
	uint64_t bytes = sum->bytes;

	if (first) {
		*sum = *path;
		sum->bytes = bytes;
		return;
	}
	sum->chunks += path->chunks;
	sum->retries += path->retries;
	sum->last_ns = path->last_ns;
	sum->lanes = WF_MAX(sum->lanes, path->lanes);
}

/* Did the peer refuse the body of @outgoing before it read any of it? */
static bool is_refused_unread(const struct wf_outgoing *outgoing)
{
	return outgoing->refused && !outgoing->path.chunks;
}

static void fail(struct wf_putting *p, const struct wf_outgoing *outgoing, const struct wf_error *e)
{
	struct wf_error why = *e;

	if (p->why.code)
		return;
	if (outgoing && is_refused_unread(outgoing))
		wf_remote_why(&why, wf_status_of(e->code), wf_link_label(wf_link_real(p->link)));
	wf_reason_keep(&p->why, &why);
}

/* Let @p end once nothing of it is under way, and no function up the stack is at work on it. */
static void release(struct wf_putting *p)
{
	if (!--p->held && !p->busy && !p->ask.id)
		end(p);
}

static void body_done(struct wf_outgoing *outgoing, const struct wf_error *e)
{
	struct wf_putting_body *body = WF_CONTAINER(outgoing, struct wf_putting_body, outgoing);
	struct wf_putting *p = body->putting;
	struct wf_error why;

	p->held++;
	if (e)
		wf_remote_unask(&p->ask);
	p->sent |= outgoing->sent && !is_refused_unread(outgoing);
	if (body->block < p->count)
		add_path(&p->path, &outgoing->path, !p->path.caps);
	if (e && !p->why.code) {
		fail(p, outgoing, e);
		wf_putting_stop(p, wf_reason_get(&p->why, &why));
	}
	leave(p, body);
	release(p);
}

/*
 * May one body have all blocks?  The peer can read what lies between them, and no checksum is made
 * of blocks alone.  Whether the peer wants one is not known before its hello.
 */
static bool may_be_whole(const struct wf_putting *p, struct wf_pool *pool)
{
	uint8_t sum_kind;
	struct wf_error e;

	if (p->count < 2 || p->device || !wf_link_caps(p->link) ||
	    wf_terms_sum(p->terms, p->link, &sum_kind, &e) || sum_kind != WF_BODY_SUM_NONE)
		return false;
	return wf_arena_find(&pool->arenas, p->span, p->span_bytes) ||
	       wf_pool_holds(pool, p->span, p->span_bytes);
}

static void noted(struct wf_remote_ask *ask, const struct wf_body *body, struct wf_answer *answer,
		  const struct wf_error *e)
{
	struct wf_putting *p = WF_CONTAINER(ask, struct wf_putting, ask);

	(void)body;
	(void)answer;
	if (e) {
		wf_putting_stop(p, e);
		return;
	}
	p->held++;
	release(p);
}

void wf_putting_start(struct wf_remotes *r, struct wf_link *link, struct wf_putting *p)
{
	p->remotes = r;
	p->ask = (struct wf_remote_ask){ 0 };
	p->link = link;
	p->next = p->busy = 0;
	p->whole = may_be_whole(p, &link->engine->pool);
	p->told = p->count == 1 || p->whole;
	wf_list_init(&p->lists);
	p->sent = false;
	p->why = (struct wf_reason){ 0 };
	p->path = (struct wf_path){ 0 };
	for (uint32_t i = 0; i < p->count; i++)
		p->path.bytes += p->blocks[i].bytes;
	wf_link_get(link);
	p->held = 1;
	for (uint32_t i = 0; i < wf_putting_bodies(p->count); i++)
		post_next(p, &p->bodies[i]);
	release(p);
}

void wf_putting_stop(struct wf_putting *p, const struct wf_error *e)
{
	if (!p->link)
		return;
	p->held++;
	fail(p, NULL, e);
	/* The other bodies of a put that moves as one were never posted. */
	for (uint32_t i = 0; i < wf_putting_bodies(p->count); i++)
		if (p->bodies[i].outgoing.state != WF_OUTGOING_ENDED)
			wf_outgoing_stop(&p->bodies[i].outgoing, e);
	wf_remote_unask(&p->ask);
	release(p);
}

int wf_putting_take_back(struct wf_putting *p)
{
	struct wf_link *link = p->link;

	for (uint32_t i = 0; i < p->busy; i++)
		if (p->bodies[i].outgoing.state != WF_OUTGOING_WAITING)
			return -EALREADY;
	for (uint32_t i = 0; i < p->busy; i++) {
		(void)wf_outgoing_take_back(&p->bodies[i].outgoing);
		wf_stage_close(p->bodies[i].stage);
		p->bodies[i].stage = NULL;
	}
	wf_remote_unask(&p->ask);
	p->link = NULL;
	wf_link_put(link);
	return 0;
}

/* Returns a body that has not ended, the first there is; NULL: none. */
static const struct wf_putting_body *find_busy(const struct wf_putting *p)
{
	for (uint32_t i = 0; p->link && i < wf_putting_bodies(p->count); i++)
		if (p->bodies[i].outgoing.state != WF_OUTGOING_ENDED)
			return &p->bodies[i];
	return NULL;
}

void wf_putting_describe(const struct wf_putting *p, char *text, size_t bytes)
{
	const struct wf_putting_body *body = find_busy(p);
	int used = 0;

	if (!body) {
		(void)snprintf(text, bytes, p->link && p->busy ? "a copy from its device has to end"
							       : "it has ended");
		return;
	}
	if (p->count > 1)
		used = snprintf(text, bytes, "%u of %u blocks have begun: ", p->next, p->count);
	if (used >= 0 && (size_t)used < bytes)
		wf_outgoing_describe(&body->outgoing, text + used, bytes - (size_t)used);
}

uint64_t wf_putting_progress(const struct wf_putting *p)
{
	const struct wf_putting_body *body = find_busy(p);
	uint64_t progress = wf_progress_add(p->next, p->busy);

	return body ? wf_progress_add(progress, wf_outgoing_progress(&body->outgoing)) : progress;
}

uint64_t wf_putting_offered_bytes(const struct wf_putting *p)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; p->link && i < wf_putting_bodies(p->count); i++)
		bytes += wf_outgoing_offered_bytes(&p->bodies[i].outgoing);
	return bytes;
}
