/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/rma.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/describe.h"
#include "core/last.h"
#include "core/node.h"
#include "core/op.h"
#include "core/peer.h"
#include "core/turn.h"
#include "core/worker.h"
#include "util/clock.h"

/* Remote windows */

static void unlist(struct weft_remote *remote)
{
	struct weft_node *node = remote->peer->owner;

	pthread_mutex_lock(&node->lock);
	wf_list_remove(&remote->node);
	pthread_mutex_unlock(&node->lock);
	free(remote);
}

/* The last of what the remote window had is given back. */
static void no_slots(struct wf_announced *announced)
{
	unlist(WF_CONTAINER(announced, struct weft_remote, announced));
}

int wf_rma_import(struct weft_peer *peer, const void *descriptor, size_t bytes,
		  struct weft_remote **remote)
{
	struct wf_access_descriptor d;
	struct weft_remote *fresh;
	int err = wf_access_descriptor_get(descriptor, bytes, &d);

	if (err == -EPROTONOSUPPORT)
		return wf_last_set(err, "the window's descriptor is of a later version of weft");
	if (err)
		return wf_last_set(-EINVAL, "%zu bytes that are no descriptor of a window", bytes);
	fresh = calloc(1, sizeof(*fresh));
	if (!fresh)
		return wf_last_set(-ENOMEM, "no memory for a remote window");
	fresh->peer = peer;
	fresh->rights = d.rights;
	fresh->remote.name = d.window;
	fresh->remote.bytes = d.bytes;
	wf_remote_init(&fresh->remote);
	wf_announced_init(&fresh->announced, peer, &fresh->remote.name, no_slots);
	atomic_init(&fresh->refs, 1);
	pthread_mutex_lock(&peer->owner->lock);
	wf_list_append(&peer->owner->remotes, &fresh->node);
	pthread_mutex_unlock(&peer->owner->lock);
	*remote = fresh;
	return 0;
}

void wf_rma_free(struct weft_remote *remote)
{
	wf_announced_fini(&remote->announced);
	free(remote);
}

/* Give loan and slots back, at the worker that has them. */
static void give_back(struct wf_loop_task *task)
{
	struct weft_remote *remote = WF_CONTAINER(task, struct weft_remote, close_task);
	struct wf_worker *at = remote->peer->at;

	/* Only slots move to another worker: nothing is lent before the peer was met. */
	if (remote->rights & WEFT_WINDOW_LAND && at != remote->close_worker) {
		remote->close_worker = at;
		wf_loop_submit(&at->engine.loop, task);
		return;
	}
	wf_remote_close(&remote->remote);
	wf_announced_close(&remote->announced);
}

static void put(struct weft_remote *remote)
{
	struct wf_worker *worker;

	if (atomic_fetch_sub(&remote->refs, 1) != 1)
		return;
	worker = remote->worker;
	if (!worker) {
		unlist(remote);
		return;
	}
	remote->close_task.run = give_back;
	remote->close_worker = worker;
	wf_turn_run(worker, &remote->close_task, wf_clock_now());
}

void wf_rma_close(struct weft_remote *remote)
{
	put(remote);
}

/* Operations */

static void free_rma(struct weft_op *op)
{
	struct wf_rma_work *work = &op->rma.work;

	if (work->remote)
		put(work->remote);
	wf_kind_close(work->device);
	free(work->blocks);
	free(work->putting.bodies);
	free((void *)(uintptr_t)work->putting.note);
}

static void let_go(struct weft_op *op)
{
	op->rma.work.remote = NULL;
}

static void get_told(struct wf_putting *p, const struct wf_error *e)
{
	struct weft_op *op = WF_CONTAINER(p, struct weft_op, rma.work.putting);

	wf_op_finish(op, e, p->sent ? WEFT_EXECUTED_MAYBE : WEFT_EXECUTED_NO);
}

static void get_done(struct wf_remote_get *g, const struct wf_error *e)
{
	struct weft_op *op = WF_CONTAINER(g, struct weft_op, rma.get);
	struct wf_putting *p = &op->rma.work.putting;

	/* A get has no copies but those to a device here. */
	wf_op_path_set(op, &g->path, g->device && g->path.bytes && !g->path.straight);
	if (e || !(p->flags & WF_ACCESS_PUSH_NOTED)) {
		wf_op_finish(op, e, g->refused ? WEFT_EXECUTED_NO : WEFT_EXECUTED_MAYBE);
		return;
	}
	p->done = get_told;
	wf_putting_start(&op->worker->remotes, wf_link_real(g->link), p);
}

static void start_get(struct weft_op *op)
{
	struct wf_remote_get *g = &op->rma.get;
	struct wf_link *link;
	struct wf_error e;

	if (wf_peer_link(op->peer, op->worker, &link, &e)) {
		wf_op_finish(op, &e, WEFT_EXECUTED_NO);
		return;
	}
	op->rma.work.remote->worker = op->worker;
	g->done = get_done;
	wf_remote_get(&op->worker->remotes, link, g);
}

static void stop_get(struct weft_op *op, const struct wf_error *e)
{
	wf_remote_stop(&op->rma.get, e);
	wf_putting_stop(&op->rma.work.putting, e);
}

static int take_back_get(struct weft_op *op)
{
	return wf_remote_take_back(&op->rma.get);
}

static uint64_t progress_get(struct weft_op *op)
{
	return wf_remote_progress(&op->rma.get);
}

static void describe_get(const struct weft_op *op, char *text)
{
	wf_describe_add(text, "get %u blocks of a window of ", op->rma.get.count);
	wf_describe_peer(op, text);
}

static void describe_wait_get(const struct weft_op *op, char *text, size_t bytes)
{
	if (op->rma.work.putting.link)
		wf_putting_describe(&op->rma.work.putting, text, bytes);
	else
		wf_remote_describe(&op->rma.get, text, bytes);
}

static void late_get(const struct weft_op *op, const char *who, struct wf_error *e)
{
	(void)op;
	wf_error_set(e, -ETIMEDOUT, "the deadline passed before the window of %s was read", who);
}

#define GET_BYTES (offsetof(struct weft_op, rma) + sizeof(struct wf_op_rma))

const struct wf_op_class wf_rma_get_class = {
	.kind = WF_OP_GET,
	.recorded = WF_RECORDER_GET,
	.bytes = GET_BYTES,
	.zero_to = GET_BYTES,
	.start = start_get,
	.stop = stop_get,
	.take_back = take_back_get,
	.free = free_rma,
	.let_go = let_go,
	.progress = progress_get,
	.describe = describe_get,
	.describe_wait = describe_wait_get,
	.late = late_get,
};

static void put_done(struct wf_putting *p, const struct wf_error *e)
{
	struct weft_op *op = WF_CONTAINER(p, struct weft_op, rma.work.putting);

	/* A device of the owner's that copies by a handle copies there. */
	wf_op_path_set(op, &p->path,
		       p->device && !p->path.straight && p->path.way != WF_BODY_HANDLE);
	wf_op_finish(op, e, p->sent ? WEFT_EXECUTED_MAYBE : WEFT_EXECUTED_NO);
}

static void start_put(struct weft_op *op)
{
	struct wf_link *link;
	struct wf_error e;

	if (wf_peer_link(op->peer, op->worker, &link, &e)) {
		wf_op_finish(op, &e, WEFT_EXECUTED_NO);
		return;
	}
	op->rma.work.putting.done = put_done;
	wf_putting_start(&op->worker->remotes, link, &op->rma.work.putting);
}

static void stop_put(struct weft_op *op, const struct wf_error *e)
{
	wf_putting_stop(&op->rma.work.putting, e);
}

static int take_back_put(struct weft_op *op)
{
	return wf_putting_take_back(&op->rma.work.putting);
}

static uint64_t progress_put(struct weft_op *op)
{
	return wf_putting_progress(&op->rma.work.putting);
}

static uint64_t offered_bytes_put(const struct weft_op *op)
{
	return wf_putting_offered_bytes(&op->rma.work.putting);
}

static void describe_put(const struct weft_op *op, char *text)
{
	wf_describe_add(text, "put %u blocks into a window of ", op->rma.work.putting.count);
	wf_describe_peer(op, text);
}

static void describe_wait_put(const struct weft_op *op, char *text, size_t bytes)
{
	wf_putting_describe(&op->rma.work.putting, text, bytes);
}

static void late_put(const struct weft_op *op, const char *who, struct wf_error *e)
{
	(void)op;
	wf_error_set(e, -ETIMEDOUT, "the deadline passed before %s had read all into its window", who);
}

#define PUT_BYTES offsetof(struct weft_op, rma.get)

const struct wf_op_class wf_rma_put_class = {
	.kind = WF_OP_PUT,
	.recorded = WF_RECORDER_PUT,
	.bytes = PUT_BYTES,
	.zero_to = PUT_BYTES,
	.start = start_put,
	.stop = stop_put,
	.take_back = take_back_put,
	.free = free_rma,
	.let_go = let_go,
	.progress = progress_put,
	.offered_bytes = offered_bytes_put,
	.describe = describe_put,
	.describe_wait = describe_wait_put,
	.late = late_put,
};

/* Making them */

static int check_options(const struct weft_access_options *o)
{
	if (o->flags & ~(unsigned)WEFT_NOTE)
		return wf_last_set(-EINVAL, "flags %#x are not for a get or put", o->flags);
	if (!(o->flags & WEFT_NOTE) && (o->number || o->note || o->note_bytes))
		return wf_last_set(-EINVAL, "options have a note, and not the flag WEFT_NOTE");
	if (o->note_bytes > WEFT_NOTE_BYTES_MAX)
		return wf_last_set(-EINVAL, "a note of %zu bytes: at most %d", o->note_bytes,
				   WEFT_NOTE_BYTES_MAX);
	if (o->note_bytes && !o->note)
		return wf_last_set(-EINVAL, "options->note is NULL, and has %zu bytes", o->note_bytes);
	return 0;
}

static int check_block(const struct weft_remote *remote, const struct weft_block *block)
{
	uint64_t bytes = remote->remote.bytes;

	if (block->remote > bytes || block->bytes > bytes - block->remote)
		return wf_last_set(-EINVAL, "a block of %llu bytes at %llu, in a window of %llu",
				   (unsigned long long)block->bytes,
				   (unsigned long long)block->remote, (unsigned long long)bytes);
	if (block->bytes && !block->local)
		return wf_last_set(-EINVAL, "a block's local is NULL");
	if (block->bytes > UINTPTR_MAX - (uintptr_t)block->local)
		return wf_last_set(-EINVAL, "a block's local memory wraps");
	return 0;
}

/* Set the range from the lowest to the highest of the blocks here. */
static void set_span(struct wf_putting *p)
{
	char *low = p->blocks[0].to, *high = low;

	for (uint32_t i = 0; i < p->count; i++) {
		char *at = p->blocks[i].to;

		low = WF_MIN(low, at);
		high = WF_MAX(high, at + p->blocks[i].bytes);
	}
	p->span = low;
	p->span_bytes = (uint64_t)(high - low);
}

static bool lies_in(const struct wf_kind_place *place, const struct weft_block *b)
{
	uintptr_t at = (uintptr_t)b->local;

	return at >= place->start && at < place->end && b->bytes <= place->end - at;
}

/* Find the allocation of @b, on the device of @o, which all blocks share. */
static int find_place(struct weft_op *op, const struct weft_access_options *o,
		      const struct weft_block *b, struct wf_kind_place *place)
{
	const char *setting = op->worker->engine.options.cuda;
	struct wf_kind_body **device = &op->rma.work.device;
	bool first = !place->kind;
	struct wf_error e;
	int err;

	if (first) {
		err = wf_kind_open(o->device.type, o->device.id, b->local, b->bytes, setting, o->stream,
				   device, &e);
		*place = *device ? (*device)->place : (struct wf_kind_place){ .kind = &wf_kind_host };
		return err ? wf_last_copy(&e) : 0;
	}
	if (wf_kind_find(o->device.type, o->device.id, b->local, b->bytes, setting, place, &e))
		return wf_last_copy(&e);
	if (place->kind->direct == !*device)
		return 0;
	return wf_last_set(-EINVAL, "some blocks are managed memory, and others are not");
}

/*
 * Copy @blocks, without empty ones, and joined where they follow each other at both ends; on a
 * device in one allocation, as no copy there may reach into two.
 */
static int copy_blocks(struct weft_op *op, const struct weft_block *blocks, size_t count,
		       const struct weft_access_options *o)
{
	bool on_device = o->device.type && o->device.type != WEFT_CPU;
	struct wf_rma_work *work = &op->rma.work;
	const struct weft_remote *remote = work->remote;
	struct wf_kind_place place = { 0 };
	struct wf_pull_block *last = NULL;
	uint32_t used = 0;
	int err;

	if (count > WEFT_BLOCKS_MAX)
		return wf_last_set(-EINVAL, "%zu blocks: at most %d", count, WEFT_BLOCKS_MAX);
	work->blocks = malloc(WF_MAX(count, 1u) * sizeof(work->blocks[0]));
	if (!work->blocks)
		return wf_last_set(-ENOMEM, "no memory for %zu blocks", count);
	for (size_t i = 0; i < count; i++) {
		const struct weft_block *b = &blocks[i];
		bool apart = on_device && !lies_in(&place, b);

		err = check_block(remote, b);
		if (err)
			return err;
		if (!b->bytes)
			continue;
		if (apart)
			err = find_place(op, o, b, &place);
		if (err)
			return err;
		if (last && !apart && (char *)last->to + last->bytes == (char *)b->local &&
		    last->from + last->bytes == b->remote) {
			last->bytes += b->bytes;
			continue;
		}
		last = &work->blocks[used++];
		*last = (struct wf_pull_block){ b->local, b->remote, b->bytes };
	}
	work->putting.blocks = work->blocks;
	work->putting.count = used;
	work->putting.device = work->device;
	if (used)
		set_span(&work->putting);
	return 0;
}

/* Set up what the owner of the window is told, with room for @bodies bodies. */
static int set_note(struct weft_op *op, const struct weft_access_options *o, uint32_t bodies)
{
	struct wf_rma_work *work = &op->rma.work;
	struct wf_putting *p = &work->putting;
	void *note;

	p->window = work->remote->remote.name;
	p->terms = &op->terms;
	p->bodies = calloc(bodies, sizeof(p->bodies[0]));
	if (!p->bodies)
		return wf_last_set(-ENOMEM, "no memory for an operation");
	if (!(o->flags & WEFT_NOTE))
		return 0;
	p->flags |= WF_ACCESS_PUSH_NOTED;
	p->number = o->number;
	p->note_bytes = (uint16_t)o->note_bytes;
	if (!o->note_bytes)
		return 0;
	note = malloc(o->note_bytes);
	if (!note)
		return wf_last_set(-ENOMEM, "no memory for a note");
	memcpy(note, o->note, o->note_bytes);
	p->note = note;
	return 0;
}

/* Make an operation of @class, without submitting it. */
static int new_op(struct weft_remote *remote, const struct wf_op_class *class,
		  const struct weft_access_options *options, struct weft_access_options *o,
		  struct weft_op **op)
{
	const struct weft_op_options *nested;
	int err = wf_check_options(options, o, sizeof(*o));

	if (!err)
		err = check_options(o);
	if (!err)
		err = wf_op_nested(&o->op, &nested);
	return err ? err : wf_op_new(remote->peer->owner, remote->peer, class, nested, op);
}

int wf_rma_get(struct weft_remote *remote, const struct weft_block *blocks, size_t count,
	       const struct weft_access_options *options, struct weft_op **op)
{
	struct weft_access_options o;
	struct wf_rma_work *work;
	struct wf_remote_get *g;
	struct weft_op *fresh;
	int err;

	if (!(remote->rights & WEFT_WINDOW_READ))
		return wf_last_set(-EACCES, "the window may not be read");
	err = new_op(remote, &wf_rma_get_class, options, &o, &fresh);
	if (err)
		return err;
	work = &fresh->rma.work;
	atomic_fetch_add(&remote->refs, 1);
	work->remote = remote;
	err = copy_blocks(fresh, blocks, count, &o);
	if (!err && !work->putting.count)
		err = wf_last_set(-EINVAL, "a get of no bytes");
	if (!err)
		err = set_note(fresh, &o, 1);
	if (err) {
		wf_op_drop(fresh);
		return err;
	}
	g = &fresh->rma.get;
	g->remote = &remote->remote;
	g->blocks = work->blocks;
	g->count = work->putting.count;
	g->terms = &fresh->terms;
	g->span = work->putting.span;
	g->span_bytes = work->putting.span_bytes;
	g->device = work->device;
	work->putting.flags |= WF_ACCESS_PUSH_GOT;
	work->putting.count = 0;
	wf_op_launch(fresh, fresh->time.made_ns, op);
	return 0;
}

int wf_rma_put(struct weft_remote *remote, const struct weft_block *blocks, size_t count,
	       const struct weft_access_options *options, struct weft_op **op)
{
	struct weft_access_options o;
	struct wf_rma_work *work;
	struct weft_op *fresh;
	int err;

	if (!(remote->rights & WEFT_WINDOW_WRITE))
		return wf_last_set(-EACCES, "the window may not be written");
	err = new_op(remote, &wf_rma_put_class, options, &o, &fresh);
	if (err)
		return err;
	work = &fresh->rma.work;
	atomic_fetch_add(&remote->refs, 1);
	work->remote = remote;
	err = copy_blocks(fresh, blocks, count, &o);
	if (!err)
		err = set_note(fresh, &o, wf_putting_bodies(work->putting.count));
	if (err) {
		wf_op_drop(fresh);
		return err;
	}
	work->putting.flags |= WF_ACCESS_PUSH_LAST;
	wf_op_launch(fresh, fresh->time.made_ns, op);
	return 0;
}
