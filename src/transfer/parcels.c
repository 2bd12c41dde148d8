/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/parcels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/grant.h"
#include "transfer/fetch.h"

#define LEAST_BYTES (16 * KIB)
#define TURN_BYTES (8 * MIB) /* bytes that one turn encrypts: 3 ms at 2.6 GB/s */
#define UNOPENED_NS WF_NS_PER_S /* a reader that lives opens its parcel long before */
#define OFFERS_TURN_BYTES MIB /* with offers, which leave when all of the turn are made */
#define OFFERS_BYTES (WF_PARCELS_BYTES / 4) /* all with offers; those nobody takes leave the rest */

struct parcel {
	struct wf_list node; /* in link->work */
	struct wf_pool *pool; /* has @chunk */
	struct wf_list asked; /* in parcels->asked, unless it is offered */
	uint64_t asked_ns;
	uint64_t id;
	bool offered;  /* the parcel went with an offer, and is not known to be opened */
	uint64_t pull; /* reader's; of one that is offered, the number of the offer */
	uint8_t *chunk; /* NULL: not taken yet */
	uint64_t room;  /* bytes of @chunk */
	struct wf_grant grant;
	uint64_t granted_bytes;
	uint32_t epoch; /* epoch of @grant */
};

void wf_parcels_init(struct wf_parcels *parcels)
{
	*parcels = (struct wf_parcels){ 0 };
	wf_list_init(&parcels->asked);
}

void wf_parcels_fini(struct wf_parcels *parcels)
{
	wf_one_time_fini(&parcels->once);
}

uint64_t wf_parcels_room(uint64_t bytes)
{
	if (bytes <= LEAST_BYTES)
		return LEAST_BYTES;
	return bytes <= WF_FETCH_BYTES ? WF_FETCH_BYTES : WF_PARCEL_BYTES_MAX;
}

int wf_parcels_take(struct wf_pool *pool, uint64_t bytes, uint8_t **chunk, uint64_t *room)
{
	uint64_t most = wf_parcels_room(bytes);
	void *taken;
	int err = wf_pool_take(pool, most, &taken);

	if (err) {
		/* Idle slabs of another length may take the memory. */
		wf_pool_shrink(pool);
		err = wf_pool_take(pool, most, &taken);
	}
	if (err)
		return err;
	*chunk = taken;
	*room = most;
	return 0;
}

static struct wf_list *list_of(struct wf_link *link)
{
	return &link->work[WF_ABOVE_PARCELS];
}

static void give_chunk(struct wf_parcels *parcels, struct parcel *p)
{
	wf_grant_close(&p->grant);
	wf_pool_give(p->pool, p->chunk);
	parcels->bytes -= p->room;
	if (p->offered)
		parcels->offered_bytes -= p->room;
	p->chunk = NULL;
	p->room = 0;
}

static void drop(struct wf_parcels *parcels, struct parcel *p)
{
	wf_list_remove(&p->node);
	wf_list_remove(&p->asked);
	give_chunk(parcels, p);
	free(p);
}

/* Returns a parcel of the peer of @link, which has no room yet.  NULL: no memory. */
static struct parcel *new_parcel(struct wf_link *link)
{
	struct parcel *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->pool = &link->engine->parcels;
	wf_list_init(&p->asked);
	wf_list_append(list_of(link), &p->node);
	return p;
}

/*
 * Free the oldest parcel if its reader has not opened it for long.  Should the reader come after all,
 * its read fails or its bytes do not verify, and it asks again.  Returns whether it is freed.
 */
static bool take_back(struct wf_parcels *parcels, uint64_t now_ns)
{
	struct wf_list *oldest = wf_list_first(&parcels->asked);
	struct parcel *p;

	if (!oldest)
		return false;
	p = WF_CONTAINER(oldest, struct parcel, asked);
	if (now_ns - p->asked_ns < UNOPENED_NS)
		return false;
	drop(parcels, p);
	return true;
}

/*
 * Find the parcel that the reader of @ask has opened; *@bytes is what all take that it has asked
 * for.
 */
static struct parcel *find(struct wf_link *link, const struct wf_parcel_ask *ask, uint64_t *bytes)
{
	struct parcel *found = NULL;

	*bytes = 0;
	WF_LIST_EACH(node, list_of(link)) {
		struct parcel *p = WF_CONTAINER(node, struct parcel, node);

		if (p->id == ask->opened && p->pull == (p->offered ? ask->offer : ask->pull))
			found = p;
		if (!p->offered || p == found)
			*bytes += p->room;
	}
	return found;
}

static int take_chunk(struct wf_parcels *parcels, struct parcel *p, uint64_t bytes)
{
	int err = wf_parcels_take(p->pool, bytes, &p->chunk, &p->room);

	if (!err)
		parcels->bytes += p->room;
	return err;
}

/*
 * Take a buffer for @bytes of @p, of a peer that has @has bytes.  Where a buffer has one key the
 * peer may read all of it: what lay there before is encrypted, too.  -EAGAIN, -ENOMEM.
 */
static int take_room(struct wf_parcels *parcels, struct parcel *p, uint64_t bytes, uint64_t has,
		     uint64_t now_ns)
{
	uint64_t left, room = wf_parcels_room(bytes);
	int err;

	/*
	 * Peers that open nothing must not keep one out that has nothing.  Memory may be left and be
	 * in pieces too short.
	 */
	do {
		left = WF_PARCELS_BYTES - parcels->bytes;
		err = room <= left && wf_parcels_may_share(left, has, room) ?
			      take_chunk(parcels, p, bytes) : -EAGAIN;
	} while (err && !has && take_back(parcels, now_ns));
	return err;
}

/*
 * Get a parcel with room for @bytes, for @ask: the one that was opened, or a new one.  -EAGAIN,
 * -ENOMEM: there is none, and the one that was opened is gone.
 */
static int get(struct wf_parcels *parcels, struct wf_link *link, const struct wf_parcel_ask *ask,
	       uint64_t bytes, struct parcel **parcel)
{
	uint64_t has;
	struct parcel *p = find(link, ask, &has);
	int err = 0;

	if (!p && !(p = new_parcel(link)))
		return -ENOMEM;
	wf_list_remove(&p->asked);
	if (p->offered)
		parcels->offered_bytes -= p->room;
	p->offered = false;
	if (p->room < bytes) {
		has -= p->room;
		give_chunk(parcels, p);
		err = take_room(parcels, p, bytes, has, link->engine->loop.now_ns);
	}
	if (err) {
		drop(parcels, p);
		return err;
	}
	p->id = ++parcels->last_id;
	p->pull = ask->pull;
	p->asked_ns = link->engine->loop.now_ns;
	wf_list_append(&parcels->asked, &p->asked);
	*parcel = p;
	return 0;
}

/* Say why a parcel can't be opened to its reader, who asks again: once in a second. */
static void complain(struct wf_parcels *parcels, struct wf_link *link, const struct wf_error *e)
{
	uint64_t now_ns = link->engine->loop.now_ns;

	if (parcels->logged_ns && now_ns - parcels->logged_ns < WF_NS_PER_S)
		return;
	parcels->logged_ns = now_ns;
	wf_log(&link->engine->log, WF_LOG_WARN,
	       "%s: a part of a sealed body can't be opened to it: %s", wf_link_label(link),
	       e->text);
}

/* Let the peer read the first @bytes, over the rail in use. */
static int open_to_peer(struct wf_parcels *parcels, struct wf_link *link, struct parcel *p,
			uint64_t bytes)
{
	struct wf_grant_span span = { .at = p->chunk, .bytes = bytes };
	struct wf_error e;

	if (p->grant.key && p->epoch == link->probe.epoch && p->granted_bytes == bytes)
		return 0;
	wf_grant_close(&p->grant);
	if (wf_grant_remote(&p->grant, link->on->rail, &link->engine->parcels, &span, &e)) {
		complain(parcels, link, &e);
		return -EIO;
	}
	p->epoch = link->probe.epoch;
	p->granted_bytes = bytes;
	return 0;
}

/* Begin to count anew if the turn is another. */
static void count_turn(uint64_t now_ns, uint64_t *turn_ns, uint64_t *bytes)
{
	if (*turn_ns != now_ns)
		*bytes = 0;
	*turn_ns = now_ns;
}

/* Has this turn time to encrypt @bytes?  One peer's frame may ask for more than that. */
static bool has_time(struct wf_parcels *parcels, const struct wf_link *link, uint64_t bytes,
		     uint64_t most)
{
	count_turn(link->engine->loop.now_ns, &parcels->turn_ns, &parcels->turn_bytes);
	if (parcels->turn_bytes > most)
		return false;
	parcels->turn_bytes += bytes;
	return true;
}

/*
 * Has this turn time to encrypt @bytes that the peer of @link asks for?  Once it had some it gets
 * no more than half of what is left, so that asks of others find time in the same turn.
 */
static bool has_time_for(struct wf_parcels *parcels, struct wf_link *link, uint64_t bytes)
{
	struct wf_above_offers *offers = &link->offers;
	uint64_t now_ns = link->engine->loop.now_ns, left;

	count_turn(now_ns, &offers->sealed_ns, &offers->sealed_bytes);
	count_turn(now_ns, &parcels->turn_ns, &parcels->turn_bytes);
	left = TURN_BYTES - WF_MIN(parcels->turn_bytes, TURN_BYTES);
	if (!wf_parcels_may_share(left, offers->sealed_bytes, bytes) ||
	    !has_time(parcels, link, bytes, TURN_BYTES))
		return false;
	offers->sealed_bytes += bytes;
	return true;
}

static int tell(struct wf_link *link, uint8_t priority, const struct wf_parcel_answer *answer)
{
	uint8_t bytes[WF_PARCEL_ANSWER_BYTES];
	struct wf_bytes_writer w = wf_bytes_writer(bytes, sizeof(bytes));

	wf_parcel_answer_put(&w, answer);
	return wf_message_post_copy(link, priority, WF_RECORD_SEALED, bytes, sizeof(bytes));
}

int wf_parcels_refuse(struct wf_parcels *parcels, struct wf_link *link,
		      const struct wf_parcel_ask *ask, enum weft_status status)
{
	struct wf_parcel_answer answer = {
		.pull = ask->pull,
		.read = ask->read,
		.round = ask->round,
		.status = (uint8_t)status,
	};

	if (ask->opened)
		wf_parcels_opened(parcels, link, ask->pull, ask->opened);
	return tell(link, ask->priority, &answer);
}

static int tell_key(struct wf_link *link, const struct wf_parcel_ask *ask, const struct parcel *p,
		    const struct wf_one_time_key *key)
{
	struct wf_parcel_answer answer = {
		.pull = ask->pull,
		.read = ask->read,
		.round = ask->round,
		.parcel = p->id,
		.epoch = p->epoch,
		.address = p->grant.address,
		.key = p->grant.key,
	};

	_Static_assert(WF_PARCEL_SECRET_BYTES == sizeof(key->secret), "a key fits its record");
	_Static_assert(WF_PARCEL_TAG_BYTES == sizeof(key->tag), "a tag fits its record");
	memcpy(answer.secret, key->secret.bytes, sizeof(answer.secret));
	memcpy(answer.tag, key->tag, sizeof(answer.tag));
	return tell(link, ask->priority, &answer);
}

int wf_parcels_seal(struct wf_parcels *parcels, struct wf_link *link,
		    const struct wf_parcel_ask *ask, const struct iovec *from)
{
	uint64_t bytes = wf_parcel_ask_bytes(ask);
	struct wf_one_time_key key = { 0 };
	struct parcel *p;
	int err;

	if (!has_time_for(parcels, link, bytes) || get(parcels, link, ask, bytes, &p))
		return wf_parcels_refuse(parcels, link, ask, WEFT_RESOURCE_EXHAUSTED);
	err = open_to_peer(parcels, link, p, bytes);
	if (!err)
		err = wf_one_time_seal(&parcels->once, wf_seals_cipher(link), from, ask->count,
				       p->chunk, &key);
	if (err) {
		drop(parcels, p);
		return wf_parcels_refuse(parcels, link, ask, WEFT_INTERNAL);
	}
	err = tell_key(link, ask, p, &key);
	wf_secret_wipe(&key.secret);
	if (err)
		drop(parcels, p);
	return err;
}

/* Get a parcel for the first @bytes of a body that is to be offered.  NULL: there is none. */
static struct parcel *get_offered(struct wf_parcels *parcels, struct wf_link *link, uint64_t bytes)
{
	uint64_t room = wf_parcels_room(bytes);
	struct parcel *p;

	if (parcels->offered_bytes + room > OFFERS_BYTES ||
	    room > (WF_PARCELS_BYTES - parcels->bytes) / 2 ||
	    !has_time(parcels, link, bytes, OFFERS_TURN_BYTES))
		return NULL;
	p = new_parcel(link);
	if (!p)
		return NULL;
	if (take_chunk(parcels, p, bytes)) {
		drop(parcels, p);
		return NULL;
	}
	p->offered = true;
	parcels->offered_bytes += p->room;
	return p;
}

void wf_parcels_offer(struct wf_parcels *parcels, struct wf_link *link, const void *from,
		      struct wf_body *body)
{
	const struct iovec first = { (void *)from, WF_MIN(body->bytes, WF_FETCH_BYTES) };
	struct wf_one_time_key key = { 0 };
	struct parcel *p = get_offered(parcels, link, first.iov_len);

	if (!p)
		return;
	if (open_to_peer(parcels, link, p, first.iov_len) ||
	    wf_one_time_seal(&parcels->once, wf_seals_cipher(link), &first, 1, p->chunk, &key)) {
		drop(parcels, p);
		return;
	}
	p->id = ++parcels->last_id;
	p->pull = body->offer;
	body->address = p->grant.address;
	body->key = p->grant.key;
	body->parcel.id = p->id;
	body->parcel.bytes = (uint32_t)first.iov_len;
	memcpy(body->parcel.secret, key.secret.bytes, sizeof(body->parcel.secret));
	memcpy(body->parcel.tag, key.tag, sizeof(body->parcel.tag));
	wf_secret_wipe(&key.secret);
}

void wf_parcels_offer_ended(struct wf_parcels *parcels, struct wf_link *link, uint64_t offer)
{
	WF_LIST_EACH_OF_NOW(node, list_of(link)) {
		struct parcel *p = WF_CONTAINER(node, struct parcel, node);

		if (p->offered && p->pull == offer)
			drop(parcels, p);
	}
}

void wf_parcels_opened(struct wf_parcels *parcels, struct wf_link *link, uint64_t pull,
		       uint64_t parcel)
{
	WF_LIST_EACH_OF_NOW(node, list_of(link)) {
		struct parcel *p = WF_CONTAINER(node, struct parcel, node);

		if (!p->offered && p->pull == pull && (p->id == parcel || !parcel))
			drop(parcels, p);
	}
}

void wf_parcels_drop(struct wf_parcels *parcels, struct wf_link *link)
{
	WF_LIST_EACH_OF_NOW(node, list_of(link))
		drop(parcels, WF_CONTAINER(node, struct parcel, node));
}
