/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/dedup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/server_call.h"

static void cant_know(struct wf_server_call *s, const char *text)
{
	s->again.unsure = true;
	(void)wf_reply_submit(s, WEFT_UNAVAILABLE, text, NULL);
}

/* Set *@block, which an interceptor may have set, to a copy of @from.  -ENOMEM. */
static int copy_block(const uint8_t *from, uint32_t bytes, struct wf_reply_block *block)
{
	uint8_t *copy;

	free(block->at);
	*block = (struct wf_reply_block){ 0 };
	if (!bytes)
		return 0;
	copy = malloc(bytes);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, from, bytes);
	*block = (struct wf_reply_block){ .at = copy, .bytes = bytes };
	return 0;
}

/* Answer @s with the reply to an earlier attempt, which the caller may not have got. */
static void answer_again(struct wf_server_call *s, const struct wf_record_reply *r)
{
	struct wf_codec_packed reply = {
		.bytes = r->body.bytes, .compressed = r->flags & WF_REPLY_COMPRESSED,
	};

	if (copy_block(r->initial, r->initial_bytes, &s->reply.initial) ||
	    copy_block(r->trailing, r->trailing_bytes, &s->reply.trailing) ||
	    copy_block(r->details, r->details_bytes, &s->reply.details) ||
	    (r->body.bytes &&
	     wf_buffer_take(&reply.buffer, wf_server_call_pool(s), r->body.bytes))) {
		cant_know(s, "no memory for the reply to an earlier attempt");
		return;
	}
	s->handler.begun = true;
	if (r->body.bytes)
		memcpy(reply.buffer.at, r->eager, r->body.bytes);
	(void)wf_reply_submit(s, (enum weft_status)r->status, (const char *)r->text,
			      r->status == WEFT_OK ? &reply : NULL);
}

static const uint8_t *caller_of(const struct wf_server_call *s)
{
	return wf_link_real(s->link)->peer->incarnation;
}

static struct wf_reply_cache_entry *find(const struct wf_server_call *s)
{
	return wf_reply_cache_find(&s->serving->replies, caller_of(s), s->again.request_id);
}

bool wf_dedup_is_known(const struct wf_server_call *s)
{
	return find(s) != NULL;
}

bool wf_dedup_is_first(struct wf_server_call *s)
{
	struct wf_reply_cache *replies = &s->serving->replies;
	struct wf_reply_cache_entry *known = find(s);

	if (known) {
		wf_counters_add(&s->serving->transfer->engine->counters.served_repeated, 1);
		if (!known->served)
			answer_again(s, &known->reply);
		else if (atomic_load(&known->served->cancelled))
			cant_know(s, "an earlier attempt was given up while its handler ran");
		else
			wf_server_call_join(known->served, s);
		return false;
	}
	if (s->again.earlier == WF_DEDUP_ELSEWHERE) {
		cant_know(s, "this node has started anew since an earlier attempt");
		return false;
	}
	if (s->again.earlier == WF_DEDUP_KNOWN ||
	    (s->again.earlier == WF_DEDUP_HERE &&
	     wf_reply_cache_had(replies, caller_of(s), s->again.request_id))) {
		cant_know(s, "the reply to an earlier attempt, if there was one, is not kept any more");
		return false;
	}
	if (!wf_reply_cache_open(replies, caller_of(s), s->again.request_id, s, &s->again.running))
		return true;
	(void)wf_reply_submit(s, WEFT_RESOURCE_EXHAUSTED, "no memory to serve the call", NULL);
	return false;
}

void wf_dedup_keep(struct wf_server_call *s, const struct wf_record_reply *reply)
{
	struct wf_reply_cache_entry *request = s->again.running;

	s->again.running = NULL;
	if (reply->executed == WEFT_EXECUTED_NO)
		wf_reply_cache_close(&s->serving->replies, request);
	/* Attachments are the handler's, and there for one reply. */
	else if (atomic_load(&s->cancelled) || reply->attachments)
		wf_reply_cache_lose(&s->serving->replies, request);
	else
		wf_reply_cache_keep(&s->serving->replies, request, reply);
}
