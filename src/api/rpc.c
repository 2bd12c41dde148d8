/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/compression.h"
#include "core/metadata.h"
#include "core/node.h"
#include "core/notes.h"
#include "core/op.h"
#include "core/peer.h"
#include "core/reflection.h"
#include "core/rpc.h"
#include "core/streaming.h"
#include "core/stub.h"
#include "core/worker.h"
#include "rpc/reply.h"
#include "wire/pair.h"

int weft_stub_open(struct weft_peer *peer, const ProtobufCServiceDescriptor *descriptor,
		   struct weft_stub **stub)
{
	int err;

	if (WF_NEED(peer) || WF_NEED(descriptor) || WF_NEED(stub))
		return -EINVAL;
	err = wf_check_node(peer->owner);
	return err ? err : wf_stub_open(peer, descriptor, stub);
}

void weft_stub_close(struct weft_stub *stub)
{
	wf_stub_close(stub);
}

ProtobufCService *weft_stub_service(struct weft_stub *stub)
{
	return WF_NEED(stub) ? NULL : &stub->service;
}

int weft_call_open(struct weft_stub *stub, const struct weft_call_options *options,
		   ProtobufCService **service, struct weft_op **op)
{
	if (WF_NEED(stub) || WF_NEED(service))
		return -EINVAL;
	return wf_stub_call(stub, options, service, op);
}

static const void *note_of(const struct weft_op *op, enum wf_call_note what, size_t *count)
{
	const struct wf_notes *notes;

	if (WF_NEED(op) || WF_NEED(count))
		return NULL;
	notes = op->class->kind == WF_OP_CALL ? op->call.notes : NULL;
	*count = notes && notes->what[what] ? notes->counts[what] : 0;
	return notes ? notes->what[what] : NULL;
}

const struct weft_metadata *weft_call_initial(struct weft_op *op, size_t *count)
{
	return note_of(op, WF_CALL_INITIAL, count);
}

const struct weft_metadata *weft_call_trailing(struct weft_op *op, size_t *count)
{
	return note_of(op, WF_CALL_TRAILING, count);
}

const void *weft_call_details(struct weft_op *op, size_t *bytes)
{
	return WF_NEED(bytes) ? NULL : note_of(op, WF_CALL_DETAILS, bytes);
}

int weft_op_compressed(const struct weft_op *op)
{
	if (WF_NEED(op))
		return -EINVAL;
	if (op->class->kind == WF_OP_CALL)
		return op->call.reply_compressed;
	return op->class->kind == WF_OP_READ && weft_op_ended(op) && op->read.compressed;
}

enum weft_status weft_reply_status(const char **message)
{
	return wf_rpc_status(message);
}

/* The server. */

int weft_serve(struct weft_node *node, ProtobufCService *service)
{
	return weft_serve_with(node, service, NULL);
}

int weft_serve_reflection(struct weft_node *node)
{
	int err = wf_check_node(node);

	return err ? err : wf_reflection_serve(node);
}

struct weft_peer *weft_call_peer(void *closure_data)
{
	struct wf_server_call *served = closure_data;
	struct wf_worker *worker;

	if (WF_NEED(closure_data))
		return NULL;
	worker = wf_worker_of(served);
	return wf_check_node(worker->node) ? NULL : wf_peer_of(worker, served->link);
}

uint64_t weft_call_left_ns(void *closure_data)
{
	const struct wf_server_call *served = closure_data;

	return WF_NEED(closure_data) ? 0 : wf_server_call_left_ns(served);
}

int weft_call_cancelled(void *closure_data)
{
	const struct wf_server_call *served = closure_data;

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
	struct wf_server_call *served = closure_data;
	struct wf_server_call_request *r;

	if (WF_NEED(closure_data) || WF_NEED(count))
		return NULL;
	r = &served->request;
	if (!r->pairs)
		r->pairs = wf_metadata_unpack(r->metadata, r->metadata_bytes, &r->pair_count);
	*count = r->pair_count;
	return r->pairs;
}

static int check_served(void *closure_data)
{
	return WF_NEED(closure_data) ? -EINVAL : wf_check_node(wf_worker_of(closure_data)->node);
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

int weft_call_set_initial(void *closure_data, const struct weft_metadata *pairs, size_t count)
{
	struct wf_server_call *served = closure_data;
	struct wf_stream *stream;
	int err = check_served(closure_data);

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

int weft_call_set_trailing(void *closure_data, const struct weft_metadata *pairs, size_t count)
{
	struct wf_server_call *served = closure_data;
	int err = check_served(served);

	return err ? err
		   : set_block(&served->reply.trailing.at, &served->reply.trailing.bytes, pairs,
			       count);
}

int weft_call_set_details(void *closure_data, const void *details, size_t bytes)
{
	struct wf_server_call *served = closure_data;
	uint8_t *copy;
	int err = check_served(served);

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

int weft_call_compress(void *closure_data, enum weft_compression compression)
{
	struct wf_server_call *served = closure_data;
	int err = WF_NEED(closure_data);

	if (!err)
		err = wf_check_node(wf_worker_of(served)->node);
	if (!err)
		err = wf_compression_check(compression);
	if (!err)
		served->reply.compression = (uint8_t)compression;
	return err;
}

int weft_call_compressed(void *closure_data)
{
	const struct wf_server_call *served = closure_data;

	return WF_NEED(closure_data) ? -EINVAL : served->request.was_compressed;
}

void weft_call_on_cancel(void *closure_data, void (*tell)(void *arg), void *arg)
{
	if (!WF_NEED(closure_data))
		wf_server_call_on_cancel(closure_data, tell, arg);
}
