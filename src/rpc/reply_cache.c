/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/reply_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct wf_caller {
	struct wf_map_node node;
	struct wf_list idle_node;
	struct wf_directory_home home;
	uint8_t incarnation[WF_INCARNATION_BYTES];
	unsigned request_count; /* requests that have an entry */
	bool lost_any;
	uint64_t lost;          /* last id of the requests that were dropped */
};

void wf_reply_cache_init(struct wf_reply_cache *r, struct wf_engine *engine, atomic_bool *forgot)
{
	*r = (struct wf_reply_cache){ .engine = engine, .forgot = forgot };
	wf_map_init(&r->requests);
	wf_map_init(&r->callers);
	wf_list_init(&r->kept);
	wf_list_init(&r->idle);
}

/* Callers. */

static uint64_t caller_hash(const struct wf_reply_cache *r, const uint8_t *incarnation)
{
	return wf_map_hash(&r->callers, 0, incarnation, WF_INCARNATION_BYTES);
}

static struct wf_caller *find_caller(const struct wf_reply_cache *r, const uint8_t *incarnation)
{
	uint64_t hash = caller_hash(r, incarnation);
	struct wf_map_node *node = NULL;

	while ((node = wf_map_find(&r->callers, hash, node))) {
		struct wf_caller *c = WF_CONTAINER(node, struct wf_caller, node);

		if (!memcmp(c->incarnation, incarnation, WF_INCARNATION_BYTES))
			return c;
	}
	return NULL;
}

/*
 * Make an entry for a caller whose request @id has come.  It may have been forgotten, with replies
 * to earlier requests.  NULL: no memory.
 */
static struct wf_caller *open_caller(struct wf_reply_cache *r, const uint8_t *incarnation,
				     uint64_t id)
{
	struct wf_directory *d = r->engine->directory;
	struct wf_caller *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	memcpy(c->incarnation, incarnation, sizeof(c->incarnation));
	c->lost_any = atomic_load(r->forgot);
	c->lost = id - 1;
	wf_list_init(&c->idle_node);
	wf_map_add(&r->callers, &c->node, caller_hash(r, incarnation));
	wf_directory_enter(d, &c->home, r->engine, "");
	/* The caller's link is here, so no other worker can have claimed it. */
	(void)wf_directory_claim(d, &c->home, c->incarnation);
	return c;
}

static void close_caller(struct wf_reply_cache *r, struct wf_caller *c)
{
	wf_directory_leave(r->engine->directory, &c->home);
	wf_map_remove(&r->callers, &c->node);
	wf_list_remove(&c->idle_node);
	free(c);
}

/* Free @c, which has no entries any more; but dropped replies are remembered for a while. */
static void rest(struct wf_reply_cache *r, struct wf_caller *c)
{
	struct wf_caller *oldest;

	if (!c->lost_any) {
		close_caller(r, c);
		return;
	}
	wf_list_append(&r->idle, &c->idle_node);
	if (++r->idle_count <= WF_REPLY_CACHE_CALLERS_MAX)
		return;
	oldest = WF_CONTAINER(wf_list_first(&r->idle), struct wf_caller, idle_node);
	r->idle_count--;
	close_caller(r, oldest);
	atomic_store(r->forgot, true);
}

static void wake(struct wf_reply_cache *r, struct wf_caller *c)
{
	if (wf_list_empty(&c->idle_node))
		return;
	wf_list_remove(&c->idle_node);
	r->idle_count--;
}

/* Requests. */

static uint64_t request_hash(const struct wf_reply_cache *r, const uint8_t *incarnation,
			     uint64_t id)
{
	return wf_map_hash(&r->requests, id, incarnation, WF_INCARNATION_BYTES);
}

struct wf_reply_cache_entry *wf_reply_cache_find(struct wf_reply_cache *r,
						 const uint8_t *incarnation, uint64_t id)
{
	uint64_t hash = request_hash(r, incarnation, id);
	struct wf_map_node *node = NULL;

	while ((node = wf_map_find(&r->requests, hash, node))) {
		struct wf_reply_cache_entry *q =
			WF_CONTAINER(node, struct wf_reply_cache_entry, node);

		if (q->id == id &&
		    !memcmp(q->caller->incarnation, incarnation, WF_INCARNATION_BYTES))
			return q;
	}
	return NULL;
}

/* Ids are counted up, and may wrap. */
static bool is_later(uint64_t id, uint64_t than)
{
	return (int64_t)(id - than) > 0;
}

bool wf_reply_cache_had(struct wf_reply_cache *r, const uint8_t *incarnation, uint64_t id)
{
	const struct wf_caller *c = find_caller(r, incarnation);

	if (!c)
		return atomic_load(r->forgot);
	return c->lost_any && !is_later(id, c->lost);
}

int wf_reply_cache_open(struct wf_reply_cache *r, const uint8_t *incarnation, uint64_t id,
			struct wf_server_call *served, struct wf_reply_cache_entry **request)
{
	struct wf_caller *c = find_caller(r, incarnation);
	struct wf_reply_cache_entry *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	if (!c)
		c = open_caller(r, incarnation, id);
	if (!c) {
		free(q);
		return -ENOMEM;
	}
	wake(r, c);
	c->request_count++;
	q->caller = c;
	q->id = id;
	q->served = served;
	wf_list_init(&q->age);
	wf_map_add(&r->requests, &q->node, request_hash(r, incarnation, id));
	*request = q;
	return 0;
}

void wf_reply_cache_close(struct wf_reply_cache *r, struct wf_reply_cache_entry *q)
{
	struct wf_caller *c = q->caller;

	if (!wf_list_empty(&q->age)) {
		r->kept_count--;
		r->kept_bytes -= q->bytes;
	}
	wf_list_remove(&q->age);
	wf_map_remove(&r->requests, &q->node);
	free(q->block);
	free(q);
	if (!--c->request_count)
		rest(r, c);
}

void wf_reply_cache_lose(struct wf_reply_cache *r, struct wf_reply_cache_entry *q)
{
	struct wf_caller *c = q->caller;

	if (!c->lost_any || is_later(q->id, c->lost))
		c->lost = q->id;
	c->lost_any = true;
	wf_reply_cache_close(r, q);
}

static const uint8_t *copy(uint8_t **at, const uint8_t *bytes, uint64_t count)
{
	uint8_t *to = *at;

	if (count)
		memcpy(to, bytes, count);
	*at += count;
	return to;
}

void wf_reply_cache_keep(struct wf_reply_cache *r, struct wf_reply_cache_entry *q,
			 const struct wf_record_reply *reply)
{
	uint64_t bytes = (uint64_t)reply->text_bytes + 1 + reply->initial_bytes +
			 reply->trailing_bytes + reply->details_bytes + reply->body.bytes;
	uint8_t *at = NULL;

	q->bytes = sizeof(*q) + bytes;
	if (q->bytes <= WF_REPLY_CACHE_BYTES_MAX)
		at = malloc(bytes);
	if (!at) {
		wf_reply_cache_lose(r, q);
		return;
	}
	q->block = at;
	q->served = NULL;
	q->reply = *reply;
	q->reply.text = copy(&at, reply->text, reply->text_bytes);
	*at++ = '\0';
	q->reply.initial = copy(&at, reply->initial, reply->initial_bytes);
	q->reply.trailing = copy(&at, reply->trailing, reply->trailing_bytes);
	q->reply.details = copy(&at, reply->details, reply->details_bytes);
	q->reply.eager = copy(&at, reply->eager, reply->body.bytes);
	wf_list_append(&r->kept, &q->age);
	r->kept_count++;
	r->kept_bytes += q->bytes;
	/* The new entry is the last, and fits. */
	while (r->kept_count > WF_REPLY_CACHE_MAX || r->kept_bytes > WF_REPLY_CACHE_BYTES_MAX)
		wf_reply_cache_lose(
			r, WF_CONTAINER(wf_list_first(&r->kept), struct wf_reply_cache_entry, age));
}

void wf_reply_cache_fini(struct wf_reply_cache *r)
{
	struct wf_map_node *node;
	struct wf_list *at;

	while ((node = wf_map_first(&r->requests)))
		wf_reply_cache_close(r, WF_CONTAINER(node, struct wf_reply_cache_entry, node));
	while ((at = wf_list_first(&r->idle)))
		close_caller(r, WF_CONTAINER(at, struct wf_caller, idle_node));
	wf_map_fini(&r->requests);
	wf_map_fini(&r->callers);
}
