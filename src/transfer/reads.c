/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/reads.h"

#include "fabric/ep.h"
#include "transfer/yield.h"

uint64_t wf_reads_limit(const struct wf_pull *pull)
{
	if (pull->way != WF_PULL_WAY_STAGED)
		return pull->at.filled;
	return WF_MIN(pull->at.filled, pull->job.stage->ended + pull->into_bytes);
}

/* Bytes from @offset on, before this end begins anew at its beginning. */
static uint64_t unbroken_here(const struct wf_pull *pull, uint64_t offset)
{
	return pull->into_bytes - offset % pull->into_bytes;
}

/* Bytes from @offset on, before either end begins anew at its beginning. */
static uint64_t unbroken(const struct wf_pull *pull, uint64_t offset)
{
	return WF_MIN(unbroken_here(pull, offset),
		      pull->from_bytes - offset % pull->from_bytes);
}

/* Bytes that the rail reads at once of the next blocks. */
static uint64_t next_blocks(const struct wf_pull *pull)
{
	uint64_t most = wf_yield_chunk_bytes(pull), skip = pull->at.block_done, count = 0;
	uint32_t end = WF_MIN(pull->at.block + pull->rail.spans_max, pull->job.block_count);

	for (uint32_t at = pull->at.block; at < end && count < most; at++, skip = 0)
		count += WF_MIN(pull->job.blocks[at].bytes - skip, most - count);
	return count;
}

struct wf_pull_read *wf_reads_next(struct wf_pull *pull)
{
	struct wf_pull_read *unused = NULL;
	uint64_t end = wf_reads_limit(pull);

	for (uint32_t i = 0; i < pull->read_count; i++) {
		struct wf_pull_read *r = &pull->reads[i];

		if (r->state == WF_PULL_READ_AGAIN)
			return r;
		if (r->state == WF_PULL_READ_FREE && !unused)
			unused = r;
	}
	if (pull->at.next >= end || (!unused && pull->read_count == WF_PULL_DEPTH_MAX))
		return NULL;
	if (!unused) {
		unused = &pull->reads[pull->read_count++];
		*unused = (struct wf_pull_read){ .pull = pull };
	}
	unused->offset = pull->at.next;
	if (pull->job.blocks) {
		unused->block = pull->at.block;
		unused->skip = pull->at.block_done;
		unused->count = WF_MIN(next_blocks(pull), end - pull->at.next);
		if (pull->way == WF_PULL_WAY_STAGED)
			unused->count = WF_MIN(unused->count, unbroken_here(pull, pull->at.next));
		return unused;
	}
	unused->count = WF_MIN(WF_MIN(wf_yield_chunk_bytes(pull), end - pull->at.next),
			       unbroken(pull, pull->at.next));
	return unused;
}

void wf_reads_asked(struct wf_pull *pull, const struct wf_pull_read *r)
{
	const struct wf_pull_block *blocks = pull->job.blocks;

	pull->at.next += r->count;
	pull->at.block_done += r->count;
	while (blocks && pull->at.block < pull->job.block_count &&
	       pull->at.block_done >= blocks[pull->at.block].bytes)
		pull->at.block_done -= blocks[pull->at.block++].bytes;
}

void wf_reads_rewind(struct wf_pull *pull, uint64_t end)
{
	for (uint32_t i = 0; i < pull->read_count; i++)
		pull->reads[i].state = WF_PULL_READ_FREE;
	pull->at.next = pull->at.block = 0;
	pull->at.block_done = 0;
	wf_reads_asked(pull, &(struct wf_pull_read){ .count = end });
	pull->at.got_bytes = end;
}

/*
 * The last chunk is left to this thread, where a read lasts until it is done.  Beside urgent
 * records the helper reads nothing: it would want the processor that answers them.
 */
bool wf_reads_for_helper(const struct wf_pull *pull)
{
	uint64_t left = pull->body.bytes - pull->at.next;

	return pull->rail.helper && left > pull->rail.chunk_bytes * WF_MAX(pull->aside, 1u) &&
	       !wf_yield_pauses(pull);
}

static void *target(const struct wf_pull *pull, const struct wf_pull_read *r)
{
	return (char *)pull->into + r->offset % pull->into_bytes;
}

/* Address of the bytes of @r, in memory that begins at @address. */
static uint64_t source(const struct wf_pull *pull, const struct wf_pull_read *r, uint64_t address)
{
	return address + r->offset % pull->from_bytes;
}

uint32_t wf_reads_list(const struct wf_pull *pull, const struct wf_pull_read *r, uint64_t address,
		       struct wf_span spans[WF_READ_SPANS_MAX])
{
	const struct wf_pull_block *block;
	bool staged = pull->way == WF_PULL_WAY_STAGED;
	uint64_t skip = r->skip, left = r->count;
	char *into = target(pull, r);
	uint32_t count = 0;

	if (!pull->job.blocks) {
		spans[0] = (struct wf_span){ into, r->count, source(pull, r, address) };
		return 1;
	}
	for (block = &pull->job.blocks[r->block]; left; block++, skip = 0) {
		uint64_t bytes = WF_MIN(block->bytes - skip, left);

		spans[count++] = (struct wf_span){ staged ? into : (char *)block->to + skip, bytes,
						      address + block->from + skip };
		into += bytes;
		left -= bytes;
	}
	return count;
}

bool wf_reads_post_aside(struct wf_pull *pull, struct wf_pull_read *r)
{
	struct wf_span spans[WF_READ_SPANS_MAX];
	uint32_t count;

	if (!wf_reads_for_helper(pull))
		return false;
	count = wf_reads_list(pull, r, pull->body.address, spans);
	return !wf_ep_read_aside(pull->link->rail.ep, spans, count, &r->read);
}

int wf_reads_post(struct wf_pull *pull, struct wf_pull_read *r, const struct wf_stripe_way *over)
{
	struct wf_span spans[WF_READ_SPANS_MAX];
	uint32_t count;

	if (pull->fetches)
		return wf_fetch_post(pull, r);
	count = wf_reads_list(pull, r, over ? over->address : pull->body.address, spans);
	if (over)
		return wf_ep_read_spans(over->lane->ep, spans, count, over->grant.desc, over->key,
					&r->read);
	return wf_ep_read_spans(pull->link->rail.ep, spans, count, pull->grant.desc,
				pull->body.key, &r->read);
}

/* How many reads may be under way over the rail of @learnt; reads by the helper come besides. */
static uint32_t depth(const struct wf_pull *pull, const struct wf_depth *learnt)
{
	return pull->link->engine->options.depth ? pull->rail.depth :
						   WF_MAX(pull->rail.depth, learnt->count);
}

static uint32_t depth_here(const struct wf_pull *pull)
{
	return depth(pull, &pull->link->reads.depth);
}

/* Reads under way over the rail, by this thread. */
static uint32_t busy_here(const struct wf_pull *pull)
{
	return pull->busy - pull->aside - (pull->spread ? pull->spread->busy : 0);
}

void wf_reads_learn(struct wf_pull *pull, const struct wf_pull_read *r)
{
	uint64_t took_ns = pull->transfer->engine->loop.now_ns - r->posted_ns;

	if (r->count != pull->rail.chunk_bytes || r->aside || pull->path.caps->sync_read)
		return;
	wf_depth_learn(r->over ? &r->over->lane->reads.depth : &pull->link->reads.depth, r->among,
		       took_ns);
	if (r->over)
		r->over->took_ns = took_ns;
	else
		pull->took_ns = took_ns;
}

/*
 * Would a read that takes @took_ns be the last to end?  Not if the fastest way, which may be the
 * same, needs as long for the rest of the body.
 */
static bool is_too_slow(const struct wf_pull *pull, uint64_t took_ns)
{
	const struct wf_stripe *spread = pull->spread;
	uint64_t left = (pull->body.bytes - pull->at.next) / pull->rail.chunk_bytes;
	uint64_t fastest_ns = pull->took_ns;
	uint32_t count = depth_here(pull);

	for (uint32_t i = 0; i < spread->count; i++) {
		const struct wf_stripe_way *way = &spread->ways[i];

		if (!way->lane || !way->took_ns || (fastest_ns && way->took_ns >= fastest_ns))
			continue;
		fastest_ns = way->took_ns;
		count = depth(pull, &way->lane->reads.depth);
	}
	return fastest_ns && took_ns > fastest_ns + fastest_ns * left / count;
}

/* May another read of blocks begin, beyond the depth in chunks?  Blocks may be short. */
static bool has_room(const struct wf_pull *pull)
{
	return pull->job.blocks &&
	       pull->share.bytes < (uint64_t)depth_here(pull) * pull->rail.chunk_bytes;
}

bool wf_reads_find_way(const struct wf_pull *pull, struct wf_stripe_way **over)
{
	struct wf_stripe *spread = pull->spread;

	*over = NULL;
	if ((busy_here(pull) < depth_here(pull) || has_room(pull)) &&
	    !(spread && is_too_slow(pull, pull->took_ns)))
		return true;
	for (uint32_t i = 0; spread && i < spread->count; i++) {
		struct wf_stripe_way *way = &spread->ways[i];

		/* A pull that goes on because a lane is closing may still have that lane's way. */
		if (!way->lane || !way->lane->ready ||
		    way->busy >= depth(pull, &way->lane->reads.depth) ||
		    is_too_slow(pull, way->took_ns))
			continue;
		*over = way;
		return true;
	}
	return false;
}

uint64_t wf_reads_alone_bytes(const struct wf_pull *pull)
{
	uint32_t ways = 1 + (pull->spread ? pull->spread->count : 0);

	return (uint64_t)ways * depth_here(pull) * pull->rail.chunk_bytes;
}

void wf_reads_begin(struct wf_pull *pull, struct wf_pull_read *r, struct wf_stripe_way *over)
{
	struct wf_link *link = pull->link;

	r->posted_ns = link->engine->loop.now_ns;
	r->over = over;
	pull->busy++;
	if (over) {
		over->busy++;
		pull->spread->busy++;
		wf_depth_read_begins(&over->lane->reads, r->posted_ns);
		r->among = over->lane->reads.count == over->busy ? over->busy : 0;
	} else if (pull->fetches) {
		r->among = 0; /* the rail has it later, and says little of itself by its end */
	} else {
		wf_depth_read_begins(&link->reads, link->engine->loop.now_ns);
		pull->aside += r->aside;
		r->among = link->reads.count == busy_here(pull) + pull->aside ? link->reads.count
									      : 0;
	}
	wf_link_record(link, WF_RECORDER_READ, r->count, r->offset);
	wf_pace_begin(&pull->share, r->count);
}

void wf_reads_end(struct wf_pull *pull, uint32_t count, uint64_t bytes)
{
	pull->busy -= count;
	if (!pull->fetches)
		wf_depth_reads_end(&pull->link->reads, count, pull->link->engine->loop.now_ns);
	if (count)
		wf_pace_end(&pull->share, bytes);
}

void wf_reads_end_over(struct wf_pull *pull, struct wf_stripe_way *over, uint32_t count,
		       uint64_t bytes)
{
	if (!count)
		return;
	pull->busy -= count;
	pull->spread->busy -= count;
	over->busy -= count;
	wf_depth_reads_end(&over->lane->reads, count, pull->transfer->engine->loop.now_ns);
	wf_pace_end(&pull->share, bytes);
}

uint64_t wf_reads_got(const struct wf_pull *pull)
{
	uint64_t end = pull->at.next;

	for (uint32_t i = 0; i < pull->read_count; i++)
		if (pull->reads[i].state != WF_PULL_READ_FREE)
			end = WF_MIN(end, pull->reads[i].offset);
	return end;
}
