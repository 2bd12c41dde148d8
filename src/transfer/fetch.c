/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/fetch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/ep.h"
#include "transfer/reads.h"

/* Bounds before a body is given up: failures in a row, and time since the first. */
#define FAILURES_MAX 16u
#define FAILING_NS (5 * WF_NS_PER_S)
#define PAUSE_NS WF_NS_PER_MS
#define DOUBLINGS_MAX 4u /* pause 16 ms at most */
#define UNANSWERED_NS WF_NS_PER_S /* an owner that lives answers long before */

static void moved(struct wf_engine_read *read, int status);
static void put_back(struct wf_pull *pull, struct wf_fetch *f, int code);

int wf_fetch_open(struct wf_pull *pull)
{
	struct wf_fetches *fetches;

	if (pull->fetches)
		return 0;
	fetches = calloc(1, sizeof(*fetches));
	if (!fetches)
		return -ENOMEM;
	fetches->opened = wf_message_copy_new();
	if (!fetches->opened) {
		free(fetches);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < WF_PULL_DEPTH_MAX; i++) {
		fetches->all[i].of = &pull->reads[i];
		fetches->all[i].read.done = moved;
		wf_list_init(&fetches->all[i].asked);
	}
	pull->fetches = fetches;
	return 0;
}

/* Count @bytes more, or with a negative number fewer, in buffers for @pull. */
static void count_room(struct wf_pull *pull, int64_t bytes)
{
	pull->transfer->fetched_bytes += (uint64_t)bytes;
	pull->link->offers.fetched_bytes += (uint64_t)bytes;
}

/* Give the buffer of @f back, and its parcel; without memory to say so that is kept for a while. */
static void rest(struct wf_pull *pull, struct wf_fetch *f)
{
	f->state = WF_FETCH_IDLE;
	wf_list_remove(&f->asked);
	wf_secret_wipe(&f->key.secret);
	wf_grant_close(&f->grant);
	wf_pool_give(&pull->transfer->engine->fetched, f->chunk);
	f->chunk = NULL;
	count_room(pull, -(int64_t)f->room);
	f->room = 0;
	/* An owner that is dead needs no word. */
	if (f->parcel && (f->offered || !wf_link_greeted(pull->link) ||
			  !wf_message_post_small(pull->link, pull->yield.priority, WF_RECORD_OPENED,
						 pull->id, f->parcel, 0)))
		f->parcel = 0;
}

/* Tell the owner that all parcels of @pull are opened; the record takes the memory kept for it. */
static void tell_opened(struct wf_pull *pull)
{
	uint8_t bytes[WF_RECORD_SMALL_BYTES];
	struct wf_bytes_writer w = wf_bytes_writer(bytes, sizeof(bytes));

	wf_record_small_put(&w, &(struct wf_record_small){ .id = pull->id });
	wf_message_copy_post(pull->fetches->opened, pull->link, pull->yield.priority,
			     WF_RECORD_OPENED, bytes, sizeof(bytes));
}

void wf_fetch_close(struct wf_pull *pull)
{
	bool kept = false;

	if (!pull->fetches)
		return;
	for (unsigned i = 0; i < WF_PULL_DEPTH_MAX; i++) {
		struct wf_fetch *f = &pull->fetches->all[i];

		kept |= f->parcel && !f->offered;
		f->parcel = 0;
		rest(pull, f);
	}
	if (kept && wf_link_greeted(pull->link))
		tell_opened(pull);
	else
		wf_message_copy_free(pull->fetches->opened);
	free(pull->fetches);
	pull->fetches = NULL;
}

/* Take the buffer back whose owner has not answered for longest, if it is long.  Returns that. */
static bool take_back(struct wf_transfer *t)
{
	struct wf_list *oldest = wf_list_first(&t->asked);
	struct wf_fetch *f;

	if (!oldest || t->taking_back)
		return false;
	f = WF_CONTAINER(oldest, struct wf_fetch, asked);
	if (t->engine->loop.now_ns - f->asked_ns < UNANSWERED_NS)
		return false;
	/* Pulls that go on inside take no other's buffer. */
	t->taking_back = true;
	put_back(f->of->pull, f, -EAGAIN);
	t->taking_back = false;
	return true;
}

/*
 * Take a buffer for @bytes.  -EAGAIN: not now.  An owner may never answer: for the bodies of a peer
 * that has some there is half of what is left, so that others have room.
 */
static int take_chunk(struct wf_pull *pull, struct wf_fetch *f, uint64_t bytes)
{
	struct wf_pool *pool = &pull->transfer->engine->fetched;
	uint64_t left, room = wf_parcels_room(bytes), has;
	int err;

	if (bytes <= f->room)
		return 0;
	rest(pull, f);
	/* Memory may be left and be in pieces too short. */
	do {
		left = WF_FETCHED_BYTES - pull->transfer->fetched_bytes;
		has = pull->link->offers.fetched_bytes;
		err = room <= left && wf_parcels_may_share(left, has, room) ?
			      wf_parcels_take(pool, bytes, &f->chunk, &f->room) : -EAGAIN;
	} while (err && !has && take_back(pull->transfer));
	if (err)
		return -EAGAIN;
	count_room(pull, (int64_t)f->room);
	return 0;
}

/* Where a parcel can be read. */
struct place {
	uint32_t epoch;
	uint64_t address, key;
};

static int move(struct wf_pull *pull, struct wf_fetch *f, const struct place *place);

/* Has the parcel of @r come with the offer? */
static bool is_offered(const struct wf_pull *pull, const struct wf_pull_read *r)
{
	const struct wf_body_parcel *parcel = &pull->body.parcel;

	return parcel->id && !r->offset && r->count == parcel->bytes && !pull->job.blocks;
}

/* Read the parcel that has come with the offer, once.  -EAGAIN: it is given back. */
static int take_offered(struct wf_pull *pull, struct wf_fetch *f)
{
	const struct wf_body *body = &pull->body;
	const struct place place = { body->epoch, body->address, body->key };
	int err;

	f->parcel = body->parcel.id;
	f->offered = true;
	memcpy(f->key.secret.bytes, body->parcel.secret, sizeof(f->key.secret.bytes));
	memcpy(f->key.tag, body->parcel.tag, sizeof(f->key.tag));
	pull->body.parcel = (struct wf_body_parcel){ 0 };
	err = move(pull, f, &place);
	if (err)
		rest(pull, f);
	else
		f->state = WF_FETCH_MOVING;
	return err;
}

int wf_fetch_post(struct wf_pull *pull, struct wf_pull_read *r)
{
	uint32_t index = (uint32_t)(r - pull->reads);
	struct wf_fetch *f = &pull->fetches->all[index];
	struct wf_parcel_ask ask = {
		.offer = pull->body.offer,
		.pull = pull->id,
		.read = index,
		.round = f->round + 1,
		.priority = pull->yield.priority,
	};
	uint8_t bytes[WF_PARCEL_ASK_BYTES_MAX];
	struct wf_bytes_writer w = wf_bytes_writer(bytes, sizeof(bytes));
	struct wf_span spans[WF_READ_SPANS_MAX];

	_Static_assert(WF_PARCEL_RANGES_MAX <= WF_READ_SPANS_MAX, "a read has as many spans");
	if (take_chunk(pull, f, r->count))
		return -EAGAIN;
	if (is_offered(pull, r))
		return take_offered(pull, f);
	ask.opened = f->parcel;
	ask.count = (uint8_t)wf_reads_list(pull, r, 0, spans);
	for (unsigned i = 0; i < ask.count; i++)
		ask.ranges[i] = (struct wf_parcel_range){ spans[i].address, spans[i].count };
	wf_parcel_ask_put(&w, &ask);
	if (wf_message_post_copy(pull->link, ask.priority, WF_RECORD_SEAL, bytes,
				 (size_t)(w.at - bytes))) {
		rest(pull, f);
		return -EAGAIN;
	}
	f->round++;
	f->parcel = 0;
	f->offered = false;
	f->state = WF_FETCH_ASKED;
	f->asked_ns = pull->transfer->engine->loop.now_ns;
	wf_list_append(&pull->transfer->asked, &f->asked);
	return 0;
}

void wf_fetch_end_asked(struct wf_pull *pull)
{
	for (unsigned i = 0; pull->fetches && i < WF_PULL_DEPTH_MAX; i++) {
		struct wf_fetch *f = &pull->fetches->all[i];

		if (f->state != WF_FETCH_ASKED)
			continue;
		rest(pull, f);
		f->of->state = WF_PULL_READ_AGAIN;
		wf_reads_end(pull, 1, f->of->count);
	}
}

/* Count a read of a parcel over the rail, or its end. */
static void count_read(struct wf_link *link, bool begins)
{
	if (begins)
		wf_depth_read_begins(&link->reads, link->engine->loop.now_ns);
	else
		wf_depth_reads_end(&link->reads, 1, link->engine->loop.now_ns);
}

void wf_fetch_quiet(struct wf_pull *pull)
{
	for (unsigned i = 0; pull->fetches && i < WF_PULL_DEPTH_MAX; i++) {
		struct wf_fetch *f = &pull->fetches->all[i];

		if (f->state == WF_FETCH_MOVING)
			count_read(pull->link, false);
		if (f->state != WF_FETCH_IDLE)
			rest(pull, f);
	}
}

bool wf_fetch_was_put_off(struct wf_pull *pull, const struct wf_pull_read *r)
{
	struct wf_fetch *f = pull->fetches ? &pull->fetches->all[r - pull->reads] : NULL;
	bool was = f && f->put_off;

	if (f)
		f->put_off = false;
	return was;
}

uint64_t wf_fetch_pause_ns(struct wf_pull *pull, int code)
{
	struct wf_fetches *fetches = pull->fetches;
	uint64_t now_ns = pull->transfer->engine->loop.now_ns;
	unsigned *count = code == -EAGAIN ? &fetches->put_offs : &fetches->failures;

	if (code != -EAGAIN && !fetches->failures)
		fetches->failing_ns = now_ns;
	++*count;
	if (fetches->failures > FAILURES_MAX && now_ns - fetches->failing_ns >= FAILING_NS)
		return 0;
	return PAUSE_NS << WF_MIN(*count - 1, DOUBLINGS_MAX);
}

/* Read the parcel.  -EAGAIN: the rail is not there for that, or is full. */
static int move(struct wf_pull *pull, struct wf_fetch *f, const struct place *place)
{
	struct wf_link *link = pull->link;
	struct wf_grant_span span = { .at = f->chunk, .bytes = f->room };
	struct wf_error e;

	if (pull->state != WF_PULL_READING || link->state != WF_LINK_UP ||
	    place->epoch != link->probe.epoch)
		return -EAGAIN;
	wf_grant_close(&f->grant);
	if (wf_grant_local(&f->grant, link->on->rail, &link->engine->fetched, &span, &e))
		return e.code;
	/* If the endpoint has failed its end follows. */
	if (wf_ep_read(link->rail.ep, f->chunk, f->of->count, f->grant.desc, place->address,
		       place->key, &f->read))
		return -EAGAIN;
	count_read(link, true);
	return 0;
}

/* Give back what @f has, unless it is under way again, or gone with its pull, whose id was @id. */
static void rest_unless_asked(struct wf_transfer *t, uint64_t id, struct wf_pull *pull,
			      struct wf_fetch *f)
{
	if (wf_table_get(&t->pulls, id) == pull && pull->fetches && f->state == WF_FETCH_IDLE)
		rest(pull, f);
}

/* End @f without bytes. */
static void put_back(struct wf_pull *pull, struct wf_fetch *f, int code)
{
	struct wf_transfer *t = pull->transfer;
	uint64_t id = pull->id;

	f->state = WF_FETCH_IDLE;
	wf_list_remove(&f->asked);
	f->put_off = code == -EAGAIN;
	wf_secret_wipe(&f->key.secret);
	wf_pull_put_back(pull, f->of, code);
	rest_unless_asked(t, id, pull, f);
}

int wf_fetch_answered(struct wf_link *link, struct wf_pull *pull,
		      const struct wf_parcel_answer *answer)
{
	struct wf_fetch *f = pull && pull->fetches && answer->read < WF_PULL_DEPTH_MAX ?
				     &pull->fetches->all[answer->read] : NULL;
	const struct place place = { answer->epoch, answer->address, answer->key };
	int err;

	if (!f || f->state != WF_FETCH_ASKED || f->round != answer->round)
		return answer->parcel ? wf_message_post_small(link, 0, WF_RECORD_OPENED,
							      answer->pull, answer->parcel, 0) : 0;
	wf_list_remove(&f->asked);
	f->parcel = answer->parcel;
	memcpy(f->key.secret.bytes, answer->secret, sizeof(f->key.secret.bytes));
	memcpy(f->key.tag, answer->tag, sizeof(f->key.tag));
	err = answer->status == WEFT_RESOURCE_EXHAUSTED ? -EAGAIN :
	      answer->status == WEFT_NOT_FOUND		? -ENOENT :
	      answer->status				? -EIO : move(pull, f, &place);
	if (err)
		put_back(pull, f, err);
	else
		f->state = WF_FETCH_MOVING;
	return 0;
}

/* Decrypt in place, and copy what has verified: the destination shows nothing else. */
static int open_apart(struct wf_one_time *once, enum wf_seal_cipher cipher,
		      const struct wf_fetch *f, const struct iovec *to, unsigned count)
{
	const struct iovec all = { f->chunk, f->of->count };
	const uint8_t *at = f->chunk;
	int err = wf_one_time_open(once, cipher, &f->key, f->chunk, &all, 1);

	for (unsigned i = 0; !err && i < count; i++) {
		memcpy(to[i].iov_base, at, to[i].iov_len);
		at += to[i].iov_len;
	}
	return err;
}

/* Decrypt the parcel to where the read belongs. */
static int open_parcel(struct wf_pull *pull, struct wf_fetch *f)
{
	struct wf_one_time *once = &pull->transfer->parcels.once;
	enum wf_seal_cipher cipher = wf_seals_cipher(pull->link);
	struct wf_span spans[WF_READ_SPANS_MAX];
	struct iovec to[WF_READ_SPANS_MAX];
	unsigned count = wf_reads_list(pull, f->of, 0, spans);

	for (unsigned i = 0; i < count; i++)
		to[i] = (struct iovec){ spans[i].into, spans[i].count };
	if (pull->job.shown)
		return open_apart(once, cipher, f, to, count);
	return wf_one_time_open(once, cipher, &f->key, f->chunk, to, count);
}

static void moved(struct wf_engine_read *read, int status)
{
	struct wf_fetch *f = WF_CONTAINER(read, struct wf_fetch, read);
	struct wf_pull_read *r = f->of;
	struct wf_pull *pull = r->pull;
	struct wf_transfer *t = pull->transfer;
	uint64_t id = pull->id;
	int err = 0;

	count_read(pull->link, false);
	f->state = WF_FETCH_IDLE;
	if (pull->state == WF_PULL_STOPPING)
		status = -ECANCELED; /* bytes that stay encrypted don't count as come */
	if (!status)
		err = open_parcel(pull, f);
	wf_secret_wipe(&f->key.secret);
	if (err) {
		put_back(pull, f, err);
		return;
	}
	if (!status)
		pull->fetches->failures = pull->fetches->put_offs = 0;
	r->read.done(&r->read, status);
	rest_unless_asked(t, id, pull, f);
}
