/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/rpc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/attachment.h"
#include "core/check.h"
#include "core/compression.h"
#include "core/describe.h"
#include "core/drain.h"
#include "core/intercept.h"
#include "core/last.h"
#include "core/metadata.h"
#include "core/node.h"
#include "core/notes.h"
#include "core/op.h"
#include "core/peer.h"
#include "core/retry.h"
#include "core/worker.h"
#include "rpc/codec.h"
#include "util/progress.h"

/* The call whose closure runs in this thread; all NULL: no closure does. */
struct replying {
	const struct wf_error *outcome;
	const struct weft_op *op; /* NULL: the call could not begin */
};

static _Thread_local struct replying replying;

/* The path is the longer body's, with the times of both request and reply. */
static void set_path(struct weft_op *op, const struct wf_path *request, const struct wf_path *reply)
{
	bool back = reply->bytes > request->bytes;
	struct wf_path *path = &op->call.path;

	*path = back ? *reply : *request;
	path->queued_ns = request->queued_ns;
	path->matched_ns = reply->matched_ns;
	path->first_ns = reply->first_ns;
	path->last_ns = reply->last_ns;
	/* A message is packed once, and unpacked once. */
	wf_op_path_set(op, path, 1 + (!back && request->way == WF_BODY_EAGER));
}

static void call_done(struct wf_call *call, const struct wf_error *e, enum weft_executed executed,
		      const uint8_t *reply, size_t bytes)
{
	struct weft_op *op = WF_CONTAINER(call, struct weft_op, call.call);
	bool compressed = call->record.flags & WF_REPLY_COMPRESSED;
	struct wf_error bad;

	op->call.running = false;
	if (!e && !op->call.stream) {
		op->call.reply_compressed = compressed;
		if (wf_codec_unpack(op->call.output, reply, bytes, compressed, call->bytes_max,
				    &op->call.reply, &bad)) {
			wf_counters_add(&op->worker->engine.counters.unpack_failures, 1);
			wf_error_within(&bad, "the reply");
			e = &bad;
		}
	}
	set_path(op, &call->outgoing.path, &call->reply_path);
	if (e && wf_retry_again(op, e, executed))
		return;
	if (e) {
		wf_reason_keep(&op->outcome.error, e);
	} else {
		op->call.attachment_set = call->run.attachment_set;
		call->run.attachment_set = NULL;
	}
	op->outcome.executed = WF_MAX(op->outcome.executed, executed);
	wf_attachments_stop(&op->call.attached, op->worker, e);
	if (op->call.stream)
		wf_attachments_stop(&op->call.stream->moving, op->worker, e);
	op->call.waits = !wf_list_empty(&op->call.attached);
	if (!op->call.waits)
		wf_op_finish_kept(op);
}

static void free_call(struct weft_op *op)
{
	if (op->call.child.is_child && op->owner) {
		pthread_mutex_lock(&op->owner->lock);
		wf_list_remove(&op->call.child.node);
		pthread_mutex_unlock(&op->owner->lock);
	}
	if (op->call.reply)
		protobuf_c_message_free_unpacked(op->call.reply, NULL);
	free(op->call.metadata);
	free(op->call.retry);
	wf_attachments_forget(&op->call.attached);
	wf_attachments_free(op, op->call.attachment_set);
	wf_notes_forget(op);
}

static void call_quiet(struct wf_call *call)
{
	struct weft_op *op = WF_CONTAINER(call, struct weft_op, call.call);

	wf_retry_quiet(op);
	wf_op_put(op);
}

/* End @op, which has not begun and will not. */
static void fail(struct weft_op *op, const struct wf_error *e)
{
	wf_call_drop(&op->call.call);
	wf_attachments_stop(&op->call.attached, op->worker, e);
	if (op->call.stream)
		wf_stream_stop(&op->call.stream->stream, e);
	wf_op_finish(op, e, WEFT_EXECUTED_NO);
}

/* Set @e if @op can't begin: the invocation has found that, or a cancel came before it. */
static int check_invoked(const struct weft_op *op, struct wf_error *e)
{
	if (wf_reason_get(&op->outcome.error, e))
		return e->code;
	if (atomic_load(&op->cancel_asked))
		wf_error_set(e, -ECANCELED, "it was cancelled");
	else if (op->call.request_bytes > WF_CALL_BYTES_MOST)
		wf_error_set(e, -EMSGSIZE, "a request of %zu bytes: the limit is %zu",
			     op->call.request_bytes, (size_t)WF_CALL_BYTES_MOST);
	else if (!op->call.packed)
		wf_error_set(e, -ENOMEM, "no memory for a request of %zu bytes",
			     op->call.request_bytes);
	else
		e->code = 0;
	return e->code;
}

/* Check that the peer of @link takes @op: one that drains knows calls that it is handling. */
static int check_drain(const struct weft_op *op, const struct wf_link *link, struct wf_error *e)
{
	return op->call.retry && op->call.retry->known ? 0 : wf_drain_check(link, e);
}

static void start(struct weft_op *op)
{
	struct wf_call *call = &op->call.call;
	struct wf_link *link;
	struct wf_error e;

	/* The call may have been invoked after this turn began. */
	call->began_ns = WF_MAX(call->began_ns, op->worker->engine.loop.now_ns);
	if (check_invoked(op, &e)) {
		fail(op, &e);
		return;
	}
	call->done = call_done;
	call->quiet = call_quiet;
	call->noted = wf_notes_add;
	call->stream = op->call.stream ? &op->call.stream->stream : NULL;
	call->deadline_ns = op->time.deadline_ns;
	call->terms = op->terms;
	if (op->time.deadline_ns <= call->began_ns) {
		wf_error_set(&e, -ETIMEDOUT, "the deadline passed before the call began");
	} else if (!wf_peer_link(op->peer, op->worker, &link, &e) && !check_drain(op, link, &e)) {
		op->call.running = true;
		atomic_fetch_add(&op->refs, 1);
		if (!wf_call_start(&op->worker->calls, link, call)) {
			wf_attachments_begin(&op->call.attached, op->worker, link, call->id,
					     (struct wf_record_attachment_key){ 0 });
			return;
		}
		wf_error_set(&e, -ENOMEM, "no memory for a call");
		atomic_fetch_sub(&op->refs, 1);
		op->call.running = false;
	}
	if (wf_retry_again(op, &e, WEFT_EXECUTED_NO)) {
		wf_retry_quiet(op); /* nothing of the attempt has begun */
		return;
	}
	fail(op, &e);
}

static void reply(ProtobufCClosure closure, const ProtobufCMessage *message, void *data,
		  struct replying call)
{
	const struct replying outer = replying;

	replying = call;
	if (closure)
		closure(message, data);
	replying = outer;
}

void wf_rpc_refuse(ProtobufCClosure closure, void *data, int err)
{
	struct wf_error e;

	wf_error_set(&e, err, "%s", wf_last_text());
	reply(closure, NULL, data, (struct replying){ &e, NULL });
}

/* Run the user's closure, as a notice, before any other thread sees the operation's end. */
static void run_closure(struct weft_op *op)
{
	struct wf_error e;

	if (!wf_reason_get(&op->outcome.error, &e)) {
		e.code = 0;
		e.text[0] = '\0';
	}
	wf_intercept_ended(op);
	reply(op->call.closure, op->call.reply, op->call.closure_data,
	      (struct replying){ &e, op });
}

static void stop(struct weft_op *op, const struct wf_error *e)
{
	if (op->call.running)
		wf_call_stop(&op->call.call, e);
	else
		wf_retry_stop(op, e);
}

static int take_back(struct weft_op *op)
{
	int err = op->call.running ? wf_call_take_back(&op->call.call) : -EALREADY;

	if (err)
		return err;
	op->call.running = false;
	wf_attachments_take_back(&op->call.attached);
	wf_op_put(op);
	return 0;
}

static void starve(struct weft_op *op, struct wf_worker *worker, const struct wf_error *e)
{
	if (op->worker == worker && wf_retry_waits(op))
		wf_op_stop(op, e);
}

/* Reads and writes of the call's stream follow it. */
static void moved(struct weft_op *op, struct wf_worker *to)
{
	if (op->call.stream)
		op->call.stream->worker = to;
}

static bool begun(const struct weft_op *op)
{
	return op->call.begun;
}

/* Free a call that nobody waits for, and that was never invoked. */
static void let_go(struct weft_op *op)
{
	/* Without wf_op_free(), which would wait until the queue has parted from the node. */
	if (op->call.detached && !op->call.begun)
		wf_op_drop(op);
}

/* Attempts, attachments of the request, and the stream all count as progress of a call. */
static uint64_t progress(struct weft_op *op)
{
	const struct wf_op_call *call = &op->call;
	uint64_t sum = wf_progress_add(call->running, call->retry ? call->retry->failed : 0);

	sum = wf_progress_add(sum, wf_attachments_sent_progress(&call->attached));
	if (call->stream)
		sum = wf_progress_add(sum, wf_attachments_sent_progress(&call->stream->moving));
	return call->running ? wf_progress_add(sum, wf_call_progress(&call->call)) : sum;
}

static uint64_t offered_bytes(const struct weft_op *op)
{
	const struct wf_op_call *call = &op->call;
	uint64_t bytes = call->running ? wf_call_offered_bytes(&call->call) : 0;

	bytes += wf_attachments_offered_bytes(&call->attached);
	if (call->stream)
		bytes += wf_stream_offered_bytes(&call->stream->stream) +
			 wf_attachments_offered_bytes(&call->stream->moving);
	return bytes;
}

static void describe(const struct weft_op *op, char *text)
{
	wf_describe_add(text, "call %s/%s %zu bytes to ", op->call.service_name,
			op->call.method_name, op->call.request_bytes);
	wf_describe_peer(op, text);
}

static void describe_wait(const struct weft_op *op, char *text, size_t bytes)
{
	if (op->call.running)
		wf_call_describe(&op->call.call, text, bytes);
	else if (op->call.waits)
		(void)snprintf(text, bytes, "it is over, and its attachments are being taken back");
	else
		wf_retry_describe(op, text, bytes);
}

/* Members that an outgoing body sets up by itself are not zeroed. */
const struct wf_op_class wf_rpc_class = {
	.kind = WF_OP_CALL,
	.recorded = WF_RECORDER_CALL,
	.bytes = offsetof(struct weft_op, call) + sizeof(struct wf_op_call),
	.zero_to = offsetof(struct weft_op, call.call.outgoing.transfer),
	.start = start,
	.refuse = fail,
	.stop = stop,
	.take_back = take_back,
	.starve = starve,
	.moved = moved,
	.tell = run_closure,
	.free = free_call,
	.begun = begun,
	.let_go = let_go,
	.progress = progress,
	.offered_bytes = offered_bytes,
	.describe = describe,
	.describe_wait = describe_wait,
};

enum weft_status wf_rpc_status(const char **message)
{
	if (message)
		*message = replying.outcome ? replying.outcome->text : "";
	return replying.outcome ? wf_status_of(replying.outcome->code) : WEFT_UNKNOWN;
}

bool wf_rpc_replies(const struct weft_op *op)
{
	return replying.op == op;
}

int wf_rpc_open(struct weft_peer *peer, const struct weft_op_options *options, struct weft_op **op)
{
	int err = wf_op_new(peer->owner, peer, &wf_rpc_class, options, op);

	if (err)
		return err;
	wf_list_init(&(*op)->call.attached);
	(*op)->call.call.bytes_max = WF_CALL_BYTES_MAX;
	return 0;
}

/* The child of a parent that was given up before has no time left, as nothing else would end it. */
static void adopt(struct wf_server_call *parent, struct weft_op *child)
{
	struct weft_node *node = child->owner;

	child->time.deadline_ns = WF_MIN(child->time.deadline_ns, parent->deadline_ns);
	wf_list_init(&child->call.child.node);
	child->call.child.is_child = true;
	pthread_mutex_lock(&node->lock);
	if (atomic_load(&parent->cancelled)) {
		child->time.deadline_ns = 0;
	} else {
		parent->adopted = true;
		wf_list_append(&parent->children, &child->call.child.node);
		child->call.child.parent = parent;
	}
	pthread_mutex_unlock(&node->lock);
}

int wf_rpc_new(struct weft_peer *peer, const struct weft_call_options *options,
	       struct weft_op **op)
{
	const struct weft_op_options *nested;
	struct wf_server_call *parent;
	struct weft_call_options given;
	struct weft_op *fresh;
	uint8_t *metadata;
	uint32_t bytes;
	int err = wf_check_options(options, &given, sizeof(given));

	parent = err ? NULL : wf_worker_served(given.parent);
	if (parent && wf_worker_of(parent)->node != peer->owner)
		err = wf_last_set(-EINVAL, "the call that is served belongs to another node");
	if (!err && given.message_bytes_max > WF_CALL_BYTES_MOST)
		err = wf_last_set(-EINVAL, "message_bytes_max is %llu: at most %zu",
				  (unsigned long long)given.message_bytes_max,
				  (size_t)WF_CALL_BYTES_MOST);
	if (!err)
		err = wf_compression_check(given.compression);
	if (!err)
		err = wf_metadata_pack(given.metadata, given.metadata_count, &metadata, &bytes);
	if (err)
		return err;
	err = wf_op_nested(&given.op, &nested);
	if (!err)
		err = wf_rpc_open(peer, nested, &fresh);
	if (err) {
		free(metadata);
		return err;
	}
	if (given.retry) {
		err = wf_retry_open(fresh, given.retry);
		if (err) {
			wf_op_drop(fresh);
			free(metadata);
			return err;
		}
	}
	if (parent)
		adopt(parent, fresh);
	if (given.message_bytes_max)
		fresh->call.call.bytes_max = given.message_bytes_max;
	fresh->call.compression = given.compression;
	fresh->call.metadata = metadata;
	fresh->call.call.metadata = metadata;
	fresh->call.call.metadata_bytes = bytes;
	*op = fresh;
	return 0;
}
