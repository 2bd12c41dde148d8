/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/stage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transfer/pull_job.h"
#include "wire/record.h"

/* How often a device is asked: soon for copies, less often the longer a program's stream needs. */
#define ASK_NS (5 * WF_NS_PER_US)
#define ASK_SLOWLY_NS WF_NS_PER_MS
/* Size of a copy, which can't be called back; by 16 MiB, 256 MiB take 13 % longer (one H200). */
#define DIRECT_PIECE_BYTES (32 * MIB)
#define PATIENCE 8 /* an answer is late by at most this part of the time waited */

static void ask(struct wf_timer *timer);

static struct wf_kind_copy *copy_at(struct wf_stage *stage, uint64_t offset)
{
	return &stage->copies[offset / stage->piece_bytes % WF_STAGE_PIECES];
}

/* Returns the end of the piece that begins at @offset. */
static uint64_t piece_end(const struct wf_stage *stage, uint64_t offset)
{
	return WF_MIN(offset + stage->piece_bytes, stage->bytes);
}

int wf_stage_open(struct wf_transfer *t, const struct wf_kind_body *body, uint64_t bytes,
		  enum wf_kind_way way, struct wf_stage **stage)
{
	struct wf_stage *fresh = calloc(1, sizeof(*fresh));

	if (!fresh)
		return -ENOMEM;
	fresh->transfer = t;
	fresh->body = body;
	fresh->at = body->at;
	fresh->bytes = bytes;
	fresh->way = way;
	fresh->piece_bytes = wf_body_piece_bytes(bytes);
	fresh->bounce_bytes = WF_MIN(bytes, WF_STAGE_PIECES * fresh->piece_bytes);
	wf_list_append(&t->stages, &fresh->node);
	*stage = fresh;
	return 0;
}

void wf_stage_place(struct wf_stage *stage, void *at, const struct wf_pull_block *blocks)
{
	stage->at = at;
	stage->blocks = blocks;
}

/*
 * Bodies on their way in leave half of the pool to those on their way out: they wait for pieces
 * that peers fill, and peers may wait for pieces that are filled here.
 */
static bool must_wait(const struct wf_stage *stage)
{
	const struct wf_transfer *t = stage->transfer;

	return stage->way == WF_KIND_OUT_OF_CHUNK && t->draining_bytes &&
	       t->draining_bytes + stage->bounce_bytes > t->engine->pool.budget_bytes / 2;
}

int wf_stage_take_bounce(struct wf_stage *stage, struct wf_error *e)
{
	struct wf_pool *pool = &stage->transfer->engine->pool;
	uint64_t bytes = stage->bounce_bytes;
	void *bounce;
	int err;

	if (stage->bounce)
		return 0;
	if (must_wait(stage))
		return -EAGAIN;
	err = wf_pool_take(pool, bytes, &bounce);
	/* A buffer of one piece is enough, though nothing goes side by side. */
	if ((err == -ENOBUFS || err == -EAGAIN) && bytes > stage->piece_bytes) {
		bytes = stage->piece_bytes;
		err = wf_pool_take(pool, bytes, &bounce);
	}
	if (err == -EAGAIN)
		return err;
	if (err)
		return wf_error_set(e, err,
				    "staging takes %llu bytes, and the pool is of %llu (WEFT_POOL_BYTES)",
				    (unsigned long long)bytes,
				    (unsigned long long)pool->budget_bytes);
	stage->bounce_bytes = bytes;
	stage->bounce = bounce;
	if (stage->way == WF_KIND_OUT_OF_CHUNK)
		stage->transfer->draining_bytes += stage->bounce_bytes;
	return 0;
}

/* Unmap imports that are not used, when it is time for that. */
static void trim(struct wf_timer *timer)
{
	struct wf_transfer *t = WF_CONTAINER(timer, struct wf_transfer, trim);
	uint64_t again_ns = wf_imports_trim(&t->imports, t->engine->loop.now_ns);

	if (again_ns && !timer->armed)
		wf_loop_timer(&t->engine->loop, timer, again_ns, trim);
}

static void give_import(struct wf_transfer *t, struct wf_import *import)
{
	wf_imports_give(&t->imports, import, t->engine->loop.now_ns);
	trim(&t->trim);
}

void wf_stage_give_bounce(struct wf_stage *stage)
{
	struct wf_transfer *t = stage->transfer;

	if (stage->import) {
		give_import(t, stage->import);
	} else {
		if (stage->bounce && stage->way == WF_KIND_OUT_OF_CHUNK)
			t->draining_bytes -= stage->bounce_bytes;
		wf_pool_give(&t->engine->pool, stage->bounce);
	}
	stage->import = NULL;
	stage->bounce = NULL;
}

int wf_stage_import(struct wf_stage *stage, const struct wf_body *body, struct wf_error *e)
{
	struct wf_transfer *t = stage->transfer;
	struct wf_cuda_driver_ipc_handle given;
	struct wf_import *import;
	int err;

	_Static_assert(sizeof(given) == WF_BODY_HANDLE_BYTES, "the wire carries CUDA's");
	memcpy(&given, body->handle, sizeof(given));
	err = wf_imports_take(&t->imports, stage->body->place.device, &given, body->key, &import,
			      e);
	if (err)
		return err;
	/* A copy from beyond the allocation would cost the program its whole context. */
	if (body->address > import->bytes || stage->bytes > import->bytes - body->address) {
		give_import(t, import);
		return wf_error_set(e, -EPROTO, "a body that goes beyond its allocation");
	}
	wf_stage_give_bounce(stage);
	stage->import = import;
	stage->bounce = (uint8_t *)import->start + body->address;
	stage->way = WF_KIND_FROM_DEVICE;
	stage->bounce_bytes = stage->bytes;
	stage->piece_bytes = DIRECT_PIECE_BYTES;
	return 0;
}

bool wf_stage_is_reached(const struct wf_stage *stage, const struct wf_link *link, bool only)
{
	const struct wf_rail_caps *caps = wf_link_caps(link);
	int node;

	if (wf_seals_bodies(link))
		return false;
	if (!caps->memory.device || only)
		return caps->memory.device;
	node = wf_cuda_numa_node(stage->body->place.device);
	return stage->bytes >= WF_STAGE_DIRECT_BYTES &&
	       (node < 0 || caps->numa_node < 0 || node == caps->numa_node);
}

bool wf_stage_may_copy(const struct wf_stage *stage, const struct wf_link *link,
		       const struct wf_body *body, bool only)
{
	const struct wf_rail_caps *caps = wf_link_caps(link);

	return !stage->blocks && body->way == WF_BODY_STAGED && body->sum_kind == WF_BODY_SUM_NONE &&
	       (body->bytes >= WF_STAGE_COPY_BYTES || only) && caps && caps->same_host;
}

void wf_stage_hold(struct wf_stage *stage, bool hold)
{
	stage->held = hold;
}

static void ask_in(struct wf_stage *stage, uint64_t in_ns)
{
	struct wf_engine *engine = stage->transfer->engine;

	wf_loop_timer(&engine->loop, &stage->timer, engine->loop.now_ns + in_ns, ask);
}

/* Ask again later: a copy is under way, or the stream is awaited. */
static void ask_later(struct wf_stage *stage)
{
	uint64_t waited_ns = stage->transfer->engine->loop.now_ns - stage->waits_ns;

	ask_in(stage, WF_MAX(ASK_NS, WF_MIN(waited_ns / PATIENCE, ASK_SLOWLY_NS)));
}

static void fail(struct wf_stage *stage, const struct wf_error *e)
{
	if (!stage->why.code)
		stage->why = *e;
	stage->stopped = true;
}

/* Until the mark, the program may still be writing the body, or reading what was in it. */
static bool may_begin(struct wf_stage *stage)
{
	struct wf_error e;
	int err;

	if (stage->follows)
		return true;
	err = wf_queue_passed(&stage->body->mark, &e);
	if (err && err != -EAGAIN)
		fail(stage, &e);
	stage->follows = !err;
	return !err;
}

bool wf_stage_ready(struct wf_stage *stage)
{
	if (may_begin(stage))
		return true;
	stage->awaited = true;
	stage->waits_ns = stage->transfer->engine->loop.now_ns;
	if (!stage->timer.armed)
		ask_in(stage, stage->why.code ? 0 : ASK_NS);
	return false;
}

static bool has_next(const struct wf_stage *stage)
{
	return !stage->stopped && !stage->held && stage->begun < stage->bytes &&
	       stage->begun < stage->over + WF_STAGE_PIECES * stage->piece_bytes &&
	       piece_end(stage, stage->begun) <= stage->limit;
}

/* Count @bytes more of the blocks as copied. */
static void pass_blocks(struct wf_stage *stage, uint64_t bytes)
{
	stage->block_done += bytes;
	/* The block behind the last one may not be written down yet. */
	while (stage->blocks && stage->block_done &&
	       stage->block_done >= stage->blocks[stage->block].bytes)
		stage->block_done -= stage->blocks[stage->block++].bytes;
}

/* Returns how many bytes from @offset on, before @end, lie in one range, which begins at *@at. */
static uint64_t find_range(const struct wf_stage *stage, uint64_t offset, uint64_t end, void **at)
{
	const struct wf_pull_block *block;

	if (!stage->blocks) {
		*at = stage->at + offset;
		return end - offset;
	}
	block = &stage->blocks[stage->block];
	*at = (uint8_t *)block->to + stage->block_done;
	return WF_MIN(block->bytes - stage->block_done, end - offset);
}

/* Begin the copies of the next piece, one for each of its ranges; the last has their end. */
static void begin_next(struct wf_stage *stage)
{
	struct wf_kind_copy *copy = copy_at(stage, stage->begun);
	uint64_t offset = stage->begun, end = piece_end(stage, offset);
	struct wf_error e;

	while (offset < end) {
		void *at;
		uint64_t bytes = find_range(stage, offset, end, &at);

		*copy = (struct wf_kind_copy){
			.kinds = &stage->transfer->kinds,
			.place = &stage->body->place,
			.way = stage->way,
			.body = at,
			.chunk = stage->bounce + offset % stage->bounce_bytes,
			.bytes = bytes,
			.pool = stage->import ? NULL : &stage->transfer->engine->pool,
			.followed = offset + bytes < end,
		};
		if (copy->place->kind->begin(copy, &e)) {
			/* Copies of this piece that have begun have no end to be asked for. */
			if (offset > stage->begun)
				wf_kinds_wait(&stage->transfer->kinds);
			fail(stage, &e);
			return;
		}
		offset += bytes;
		if (stage->blocks)
			pass_blocks(stage, bytes);
	}
	stage->begun = end;
}

static void fail_settled(struct wf_stage *stage)
{
	struct wf_error e;

	wf_error_set(&e, -ECANCELED, "this node has closed");
	fail(stage, &e);
}

static void begin_all(struct wf_stage *stage)
{
	if (stage->transfer->settled && has_next(stage))
		fail_settled(stage);
	while (has_next(stage) && may_begin(stage)) {
		if (stage->begun == stage->over)
			stage->waits_ns = stage->transfer->engine->loop.now_ns;
		begin_next(stage);
		if (stage->stopped)
			return;
	}
}

void wf_stage_go(struct wf_stage *stage, uint64_t limit)
{
	bool idle = !stage->timer.armed;

	stage->limit = limit;
	if (idle)
		stage->waits_ns = stage->transfer->engine->loop.now_ns;
	begin_all(stage);
	/* A failure, too, is reported in a turn of its own. */
	if (idle && (stage->begun > stage->over || has_next(stage) || stage->why.code))
		ask_in(stage, stage->why.code ? 0 : ASK_NS);
}

void wf_stage_skip(struct wf_stage *stage, uint64_t bytes)
{
	stage->begun = stage->over = stage->ended = bytes;
	stage->block = 0;
	stage->block_done = 0;
	if (stage->blocks)
		pass_blocks(stage, bytes);
}

/* End copies, in the order in which they were begun. */
static void hear_device(struct wf_stage *stage)
{
	const struct wf_kind *kind = stage->body->place.kind;
	struct wf_error e;
	int err;

	while (stage->over < stage->begun) {
		struct wf_kind_copy *copy = copy_at(stage, stage->over);

		err = kind->poll(copy, &e);
		if (err == -EAGAIN)
			return;
		kind->end(copy);
		stage->over = piece_end(stage, stage->over);
		stage->waits_ns = stage->transfer->engine->loop.now_ns;
		if (err)
			fail(stage, &e);
		if (!stage->why.code)
			stage->ended = stage->over;
	}
}

bool wf_stage_quiet(const struct wf_stage *stage)
{
	return stage->over == stage->begun;
}

static void ask(struct wf_timer *timer)
{
	struct wf_stage *stage = WF_CONTAINER(timer, struct wf_stage, timer);
	uint64_t over = stage->over;
	bool ready = stage->awaited && may_begin(stage);

	stage->awaited &= !ready;
	hear_device(stage);
	begin_all(stage);
	if (stage->begun > stage->over || has_next(stage) || (stage->awaited && !stage->stopped))
		ask_later(stage);
	if (stage->over > over || ready || stage->why.code)
		stage->moved(stage, stage->why.code ? &stage->why : NULL);
}

void wf_stage_stop(struct wf_stage *stage)
{
	if (stage)
		stage->stopped = true;
}

void wf_stage_close(struct wf_stage *stage)
{
	struct wf_transfer *t;

	if (!stage)
		return;
	t = stage->transfer;
	wf_timer_stop(&t->engine->loop.timers, &stage->timer);
	wf_list_remove(&stage->node);
	wf_stage_give_bounce(stage);
	free(stage);
}

bool wf_stage_all_quiet(const struct wf_transfer *t)
{
	WF_LIST_EACH(node, &t->stages)
		if (!wf_stage_quiet(WF_CONTAINER(node, struct wf_stage, node)))
			return false;
	return true;
}

/* Find a stage whose owner does not know yet, or which has begun since. */
static struct wf_stage *find_unsettled(const struct wf_transfer *t)
{
	WF_LIST_EACH(node, &t->stages) {
		struct wf_stage *stage = WF_CONTAINER(node, struct wf_stage, node);

		if (!stage->settled)
			return stage;
	}
	return NULL;
}

void wf_stage_settle(struct wf_transfer *t)
{
	struct wf_stage *stage;

	t->settled = true;
	wf_kinds_wait(&t->kinds);
	/* An owner that is told may end other stages, and begin some, which fail. */
	while ((stage = find_unsettled(t))) {
		stage->settled = true;
		if (stage->begun < stage->bytes)
			fail_settled(stage);
		wf_timer_stop(&t->engine->loop.timers, &stage->timer);
		ask(&stage->timer);
	}
}
