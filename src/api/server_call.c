/* SPDX-License-Identifier: BSD-2-Clause */
/* A call that is served: what its handler asks of it, and the calls that it has begun. */
#include "api/server_call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/attachment.h"
#include "api/check.h"
#include "api/desk.h"
#include "api/last.h"
#include "api/metadata.h"
#include "api/node.h"
#include "api/op.h"
#include "api/peer.h"
#include "api/stream.h"
#include "rpc/reply.h"
#include "wire/metadata.h"

/* A reference to one that nobody is freeing; NULL: there is none. */
static struct weft_op *take_child(struct wf_served *served)
{
	struct weft_node *node = wf_desk_of(served)->node;
	struct weft_op *child = NULL;
	struct wf_list *at;

	pthread_mutex_lock(&node->lock);
	while (!child && (at = wf_list_pop(&served->children))) {
		unsigned refs;

		child = WF_CONTAINER(at, struct weft_op, call.child_node);
		child->call.parent = NULL;
		refs = atomic_load(&child->refs);
		while (refs && !atomic_compare_exchange_weak(&child->refs, &refs, refs + 1))
			;
		if (!refs)
			child = NULL;
	}
	pthread_mutex_unlock(&node->lock);
	return child;
}

void wf_server_call_given_up(struct wf_served *served)
{
	struct weft_op *child;

	if (served->stream)
		wf_stream_given_up(served->stream, wf_desk_of(served));
	while ((child = take_child(served))) {
		weft_cancel(child);
		wf_op_put(child);
	}
}

void wf_server_call_answered(struct wf_served *served)
{
	struct wf_desk *desk = wf_desk_of(served);
	struct wf_attachment_key key = { .reply = 1 };

	wf_attachments_begin(&served->attached, desk, served->link, served->call, key);
	/* They outlive the call from now on. */
	while (wf_list_pop(&served->attached))
		;
}

void wf_server_call_gone(struct wf_served *served)
{
	struct weft_node *node;
	struct wf_list *at;

	wf_attachments_stop(&served->attached, wf_desk_of(served), NULL);
	if (served->stream)
		wf_stream_gone(served->stream, wf_desk_of(served));
	if (wf_list_empty(&served->children))
		return;
	node = wf_desk_of(served)->node;
	pthread_mutex_lock(&node->lock);
	while ((at = wf_list_pop(&served->children)))
		WF_CONTAINER(at, struct weft_op, call.child_node)->call.parent = NULL;
	pthread_mutex_unlock(&node->lock);
}

struct weft_peer *weft_call_peer(void *closure_data)
{
	struct wf_served *served = closure_data;
	struct wf_desk *desk;

	if (WF_NEED(closure_data))
		return NULL;
	desk = wf_desk_of(served);
	return wf_check_node(desk->node) ? NULL : wf_peer_of(desk, served->link);
}

uint64_t weft_call_left_ns(void *closure_data)
{
	const struct wf_served *served = closure_data;

	return WF_NEED(closure_data) ? 0 : wf_served_left_ns(served);
}

int weft_call_cancelled(void *closure_data)
{
	const struct wf_served *served = closure_data;

	return WF_NEED(closure_data) ? -EINVAL : atomic_load(&served->cancelled);
}

void weft_call_defer(void *closure_data)
{
	if (!WF_NEED(closure_data))
		wf_service_defer(closure_data);
}

void weft_call_fail(void *closure_data, enum weft_status status, const char *message)
{
	if (!WF_NEED(closure_data))
		wf_reply_submit(closure_data, status == WEFT_OK ? WEFT_UNKNOWN : status, message, NULL);
}

const struct weft_metadata *weft_call_metadata(void *closure_data, size_t *count)
{
	struct wf_served *served = closure_data;

	if (WF_NEED(closure_data) || WF_NEED(count))
		return NULL;
	if (!served->pairs)
		served->pairs = wf_metadata_unpack(served->metadata, served->metadata_bytes,
						   &served->pair_count);
	*count = served->pair_count;
	return served->pairs;
}

static int check_served(void *closure_data)
{
	return WF_NEED(closure_data) ? -EINVAL : wf_check_node(wf_desk_of(closure_data)->node);
}

/* A block of @pairs in the place of the one that was there. */
static int set_block(uint8_t **block, uint32_t *bytes, const struct weft_metadata *pairs,
		     size_t count)
{
	uint32_t fresh_bytes;
	uint8_t *fresh;
	int err = wf_metadata_pack(pairs, count, &fresh, &fresh_bytes);

	if (err)
		return err;
	free(*block);
	*block = fresh;
	*bytes = fresh_bytes;
	return 0;
}

int weft_call_set_initial(void *closure_data, const struct weft_metadata *pairs, size_t count)
{
	struct wf_served *served = closure_data;
	struct wf_stream *stream;
	int err = check_served(closure_data);

	if (err)
		return err;
	stream = served->stream;
	if (!stream)
		return set_block(&served->initial, &served->initial_bytes, pairs, count);
	if (wf_stream_wrote(stream))
		return wf_last_set(-EALREADY, "a message of the stream has been written");
	return set_block(&stream->initial, &stream->initial_bytes, pairs, count);
}

int weft_call_set_trailing(void *closure_data, const struct weft_metadata *pairs, size_t count)
{
	struct wf_served *served = closure_data;
	int err = check_served(served);

	return err ? err
		   : set_block(&served->trailing, &served->trailing_bytes, pairs, count);
}

int weft_call_set_details(void *closure_data, const void *details, size_t bytes)
{
	struct wf_served *served = closure_data;
	uint8_t *copy;
	int err = check_served(served);

	if (err || (bytes && WF_NEED(details)))
		return err ? err : -EINVAL;
	if (bytes > WF_METADATA_BYTES_MAX)
		return wf_last_set(-EMSGSIZE, "details of %zu bytes: the limit is %zu", bytes,
				   (size_t)WF_METADATA_BYTES_MAX);
	copy = malloc(bytes ? bytes : 1);
	if (!copy)
		return wf_last_set(-ENOMEM, "no memory for details");
	if (bytes)
		memcpy(copy, details, bytes);
	free(served->details);
	served->details = copy;
	served->details_bytes = (uint32_t)bytes;
	return 0;
}

void weft_call_on_cancel(void *closure_data, void (*tell)(void *arg), void *arg)
{
	if (!WF_NEED(closure_data))
		wf_served_on_cancel(closure_data, tell, arg);
}
