/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/compression.h"
#include "core/metadata.h"
#include "core/node.h"
#include "core/peer.h"
#include "core/streaming.h"
#include "core/worker.h"
#include "rpc/reply.h"
#include "util/status.h"
#include "wire/pair.h"

struct weft_served *weft_served(void *closure_data)
{
	return closure_data;
}

struct weft_peer *weft_served_peer(struct weft_served *call)
{
	struct wf_server_call *served = wf_worker_served(call);
	struct wf_worker *worker;

	if (WF_NEED(call))
		return NULL;
	worker = wf_worker_of(served);
	return wf_check_node(worker->node) ? NULL : wf_peer_of(worker, served->link);
}

uint64_t weft_served_left_ns(struct weft_served *call)
{
	const struct wf_server_call *served = wf_worker_served(call);

	return WF_NEED(call) ? 0 : wf_server_call_left_ns(served);
}

int weft_served_cancelled(struct weft_served *call)
{
	const struct wf_server_call *served = wf_worker_served(call);

	return WF_NEED(call) ? -EINVAL : atomic_load(&served->cancelled);
}

void weft_served_defer(struct weft_served *call)
{
	if (!WF_NEED(call))
		wf_service_defer(wf_worker_served(call));
}

void weft_served_fail(struct weft_served *call, enum weft_status status, const char *message)
{
	if (!WF_NEED(call))
		wf_reply_submit(wf_worker_served(call), wf_status_failure(status), message, NULL);
}

const struct weft_metadata *weft_served_metadata(struct weft_served *call, size_t *count)
{
	struct wf_server_call *served = wf_worker_served(call);
	struct wf_server_call_request *r;

	if (WF_NEED(call) || WF_NEED(count))
		return NULL;
	r = &served->request;
	if (!r->pairs)
		r->pairs = wf_metadata_unpack(r->metadata, r->metadata_bytes, &r->pair_count);
	*count = r->pair_count;
	return r->pairs;
}

static int check_served(struct weft_served *call)
{
	return WF_NEED(call) ? -EINVAL : wf_check_node(wf_worker_of(wf_worker_served(call))->node);
}

/* Replace *@block by a block of @pairs. */
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

int weft_served_set_initial(struct weft_served *call, const struct weft_metadata *pairs,
			    size_t count)
{
	struct wf_server_call *served = wf_worker_served(call);
	struct wf_stream *stream;
	int err = check_served(call);

	if (err)
		return err;
	stream = served->stream;
	if (!stream)
		return set_block(&served->reply.initial.at, &served->reply.initial.bytes, pairs,
				 count);
	if (wf_streaming_wrote(stream))
		return wf_last_set(-EALREADY, "a message of the stream has been written");
	return set_block(&stream->initial, &stream->initial_bytes, pairs, count);
}

int weft_served_set_trailing(struct weft_served *call, const struct weft_metadata *pairs,
			     size_t count)
{
	struct wf_server_call *served = wf_worker_served(call);
	int err = check_served(call);

	return err ? err
		   : set_block(&served->reply.trailing.at, &served->reply.trailing.bytes, pairs,
			       count);
}

int weft_served_set_details(struct weft_served *call, const void *details, size_t bytes)
{
	struct wf_server_call *served = wf_worker_served(call);
	uint8_t *copy;
	int err = check_served(call);

	if (err || (bytes && WF_NEED(details)))
		return err ? err : -EINVAL;
	if (bytes > WF_PAIRS_BYTES_MAX)
		return wf_last_set(-EMSGSIZE, "details of %zu bytes: the limit is %zu", bytes,
				   (size_t)WF_PAIRS_BYTES_MAX);
	copy = malloc(bytes ? bytes : 1);
	if (!copy)
		return wf_last_set(-ENOMEM, "no memory for details");
	if (bytes)
		memcpy(copy, details, bytes);
	free(served->reply.details.at);
	served->reply.details = (struct wf_reply_block){ .at = copy, .bytes = (uint32_t)bytes };
	return 0;
}

int weft_served_compress(struct weft_served *call, enum weft_compression compression)
{
	struct wf_server_call *served = wf_worker_served(call);
	int err = check_served(call);

	if (!err)
		err = wf_compression_check(compression);
	if (!err)
		served->reply.compression = (uint8_t)compression;
	return err;
}

int weft_served_compressed(struct weft_served *call)
{
	const struct wf_server_call *served = wf_worker_served(call);

	return WF_NEED(call) ? -EINVAL : served->request.was_compressed;
}

void weft_served_on_cancel(struct weft_served *call, void (*tell)(void *arg), void *arg)
{
	if (!WF_NEED(call))
		wf_server_call_on_cancel(wf_worker_served(call), tell, arg);
}
