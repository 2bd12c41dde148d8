/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/streaming.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/attachment.h"
#include "core/describe.h"
#include "core/intercept.h"
#include "core/last.h"
#include "core/node.h"
#include "core/op.h"
#include "core/rpc.h"
#include "core/stub.h"
#include "core/turn.h"
#include "core/worker.h"
#include "rpc/codec.h"
#include "util/clock.h"
#include "util/progress.h"

static struct weft_stream *public_of(const struct wf_stream *s)
{
	return WF_CONTAINER(s, struct weft_stream, stream);
}

void wf_streaming_put(struct weft_stream *stream)
{
	struct weft_node *node = stream->owner;

	if (atomic_fetch_sub(&stream->refs, 1) != 1)
		return;
	if (node) {
		pthread_mutex_lock(&node->lock);
		wf_list_remove(&stream->node);
		pthread_mutex_unlock(&node->lock);
	}
	/* The node may have forgotten the call by now, but has not freed it. */
	if (stream->call)
		wf_op_put(stream->call);
	free(stream);
}

void wf_streaming_let_go(struct weft_stream *stream)
{
	stream->owner = NULL;
	wf_attachments_forget(&stream->attached);
	wf_stream_release(&stream->stream);
}

static void quiet(struct wf_stream *s)
{
	wf_streaming_put(public_of(s));
}

/* Make a stream, whose one reference is the rpc floor's. */
static struct weft_stream *make(struct weft_node *node, struct wf_worker *worker)
{
	struct weft_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->owner = node;
	stream->first = worker;
	atomic_init(&stream->worker, worker);
	atomic_init(&stream->refs, 1);
	stream->stream.quiet = quiet;
	wf_list_init(&stream->node);
	wf_list_init(&stream->attached);
	wf_list_init(&stream->moving);
	pthread_mutex_lock(&node->lock);
	wf_list_append(&node->streams, &stream->node);
	pthread_mutex_unlock(&node->lock);
	return stream;
}

/* The caller. */

int wf_streaming_open(struct weft_stub *stub, const char *method,
		      const struct weft_call_options *options, struct weft_stream **stream,
		      struct weft_op **op)
{
	const ProtobufCServiceDescriptor *service = stub->service.descriptor;
	const ProtobufCMethodDescriptor *m = wf_service_method(service, method, strlen(method));
	struct weft_stream *fresh;
	struct weft_op *call;
	int err;

	if (!m)
		return wf_last_set(-ENOENT, "service %s has no method %s", service->name, method);
	err = wf_rpc_new(stub->peer, options, &call);
	if (err)
		return err;
	if (call->call.retry) {
		wf_op_free(call);
		return wf_last_set(-EINVAL, "a stream is not made again");
	}
	fresh = make(call->owner, call->worker);
	if (!fresh) {
		wf_op_free(call);
		return wf_last_set(-ENOMEM, "no memory for a stream");
	}
	wf_stream_init(&fresh->stream);
	fresh->stream.message_bytes_max = call->call.call.bytes_max;
	fresh->compression = call->call.compression;
	fresh->reads = m->output;
	fresh->writes = m->input;
	fresh->call = call;
	atomic_fetch_add(&fresh->refs, 1); /* the caller's */
	atomic_fetch_add(&call->refs, 1);  /* the stream's */
	call->call.stream = fresh;
	call->call.begun = call->call.packed = true;
	call->call.service_name = call->call.call.service = service->name;
	call->call.method_name = call->call.call.method = m->name;
	wf_intercept_begin(call);
	*stream = fresh;
	call->call.call.began_ns = wf_clock_now();
	wf_op_launch(call, call->call.call.began_ns, op);
	return 0;
}

static void close_stream(struct wf_loop_task *task)
{
	struct weft_stream *stream = WF_CONTAINER(task, struct weft_stream, close_task);
	struct weft_op *call = stream->call;
	struct wf_worker *worker = stream->worker;
	struct wf_error e;

	/* The call has moved to another worker, or is just on the way there. */
	if (stream->close_worker != worker || (!call->started && !call->outcome.known)) {
		stream->close_worker = worker;
		wf_loop_submit(&worker->engine.loop, task);
		return;
	}
	wf_error_set(&e, -ECANCELED, "the stream was closed");
	if (call->call.running)
		wf_call_stop(&call->call.call, &e);
	wf_stream_stop(&stream->stream, &e);
	wf_attachments_stop(&stream->attached, worker, &e);
	wf_stream_release(&stream->stream);
	wf_streaming_put(stream);
}

void wf_streaming_close(struct weft_stream *stream)
{
	if (!stream->owner) {
		wf_streaming_put(stream);
		return;
	}
	stream->close_task.run = close_stream;
	stream->close_worker = stream->first;
	wf_turn_run(stream->first, &stream->close_task, wf_clock_now());
}

/* Reads and writes. */

/* Make a read or write, by default with the call's deadline.  Failures are recorded. */
static int new_op(struct weft_stream *stream, const struct wf_op_class *class,
		  const struct weft_op_options *options, struct weft_op **op)
{
	struct weft_op *call = stream->call, *fresh;
	int err;

	if (options && (options->flags || options->rails_min || options->provider))
		return wf_last_set(-EINVAL, "a read or write goes as its call does");
	if (!stream->owner)
		return wf_last_set(-EINVAL, "the stream's node has closed");
	err = wf_op_new(stream->owner, call ? call->peer : NULL, class, options, &fresh);
	if (err)
		return err;
	/* The deadline holds even after the call: earlier messages may still move then. */
	if (!fresh->timed)
		fresh->time.deadline_ns =
			call ? call->time.deadline_ns : stream->served->deadline_ns;
	fresh->worker = stream->first;
	atomic_fetch_add(&stream->refs, 1);
	if (class == &wf_streaming_write_class) {
		fresh->write.stream = stream;
		wf_list_init(&fresh->write.attached);
	} else {
		fresh->read.stream = stream;
	}
	*op = fresh;
	return 0;
}

static void written(struct wf_write *w, const struct wf_error *e)
{
	struct weft_op *op = WF_CONTAINER(w, struct weft_op, write.write);

	/* Messages of a server may be read after the call has failed. */
	if (e && w->posted && w->stream->serves)
		wf_attachments_lose(&op->write.attached, op->worker, e);
	else if (e || (w->stream->out.mute && !w->stream->serves)) /* a caller's call is over */
		wf_attachments_stop(&op->write.attached, op->worker, e);
	wf_list_splice(&op->write.stream->moving, &op->write.attached);
	if (w->posted)
		wf_op_path_set(op, &w->outgoing.path, 1 + (w->outgoing.plan == WF_BODY_EAGER));
	wf_op_finish(op, e, w->posted ? WEFT_EXECUTED_MAYBE : WEFT_EXECUTED_NO);
}

/* The message of @w is posted: its attachments follow. */
static void begun(struct wf_write *w, struct wf_link *link, uint64_t call, uint64_t number)
{
	struct weft_op *op = WF_CONTAINER(w, struct weft_op, write.write);
	struct wf_record_attachment_key key = { .reply = w->stream->serves, .message = number };

	wf_attachments_begin(&op->write.attached, op->worker, link, call, key);
}

static void refuse_write(struct weft_op *op, const struct wf_error *e)
{
	wf_buffer_give(&op->write.write.buffer);
	wf_attachments_stop(&op->write.attached, op->worker, e);
	wf_op_finish(op, e, WEFT_EXECUTED_NO);
}

/* A write may be overtaken by a half-close of another thread while its message is packed. */
static void start_write(struct weft_op *op)
{
	struct weft_stream *stream = op->write.stream;
	struct wf_error e;

	if (stream->ended) {
		wf_error_set(&e, -EBADFD, "the stream was half-closed before this write");
		refuse_write(op, &e);
		return;
	}
	stream->ended = op->write.write.flags & WF_MESSAGE_LAST;
	op->write.write.done = written;
	if (op->write.write.attachments)
		op->write.write.begun = begun;
	wf_attachments_await(&op->write.attached, op->worker);
	wf_stream_write(&stream->stream, &op->write.write);
}

static void stop_write(struct weft_op *op, const struct wf_error *e)
{
	wf_stream_stop_write(&op->write.write, e);
}

static int take_write_back(struct weft_op *op)
{
	int err = wf_stream_take_write_back(&op->write.write);

	if (err)
		return err;
	if (op->write.write.flags & WF_MESSAGE_LAST)
		op->write.stream->ended = false;
	wf_attachments_take_back(&op->write.attached);
	return 0;
}

static struct wf_worker *place_of_write(const struct weft_op *op)
{
	return op->write.stream->worker;
}

static void free_write(struct weft_op *op)
{
	wf_streaming_put(op->write.stream);
}

/* Progress of a stream is progress of all its reads and writes. */
static uint64_t stream_progress(const struct weft_stream *stream)
{
	return wf_progress_add(wf_stream_progress(&stream->stream),
			       wf_attachments_sent_progress(&stream->moving));
}

static uint64_t write_progress(struct weft_op *op)
{
	return wf_progress_add(stream_progress(op->write.stream),
			       wf_attachments_sent_progress(&op->write.attached));
}

static uint64_t stream_offered_bytes(const struct weft_stream *stream)
{
	return wf_stream_offered_bytes(&stream->stream) +
	       wf_attachments_offered_bytes(&stream->moving);
}

static uint64_t offered_by_write(const struct weft_op *op)
{
	return stream_offered_bytes(op->write.stream) +
	       wf_attachments_offered_bytes(&op->write.attached);
}

/* Append to @text which call @stream belongs to. */
static void describe_stream(const struct weft_stream *stream, char *text)
{
	const struct weft_op *call = stream->call;

	if (call)
		wf_describe_add(text, " in call %llu, %s/%s", (unsigned long long)call->number,
				call->call.service_name, call->call.method_name);
	else
		wf_describe_add(text, " in a call that is served, of %s for %s",
				stream->writes->name, stream->reads->name);
}

static void describe_write(const struct weft_op *op, char *text)
{
	wf_describe_add(text, "write");
	describe_stream(op->write.stream, text);
}

static void describe_write_wait(const struct weft_op *op, char *text, size_t bytes)
{
	wf_stream_describe_write(&op->write.write, text, bytes);
}

/* Returns the label of the peer at the other end. */
static const char *peer_of(const struct weft_stream *stream)
{
	struct wf_link *link = stream->stream.link;

	return link ? wf_link_label(wf_link_real(link)) : "the peer";
}

static void late_write(const struct weft_op *op, const char *who, struct wf_error *e)
{
	(void)who;
	wf_error_set(e, -ETIMEDOUT, "the deadline passed before %s read more of the stream",
		     peer_of(op->write.stream));
}

/* Members that an outgoing body sets up by itself are not zeroed. */
const struct wf_op_class wf_streaming_write_class = {
	.kind = WF_OP_WRITE,
	.recorded = WF_RECORDER_STREAM_WRITE,
	.bytes = offsetof(struct weft_op, write) + sizeof(struct wf_op_write),
	.zero_to = offsetof(struct weft_op, write.write.outgoing.transfer),
	.start = start_write,
	.refuse = refuse_write,
	.stop = stop_write,
	.take_back = take_write_back,
	.place = place_of_write,
	.free = free_write,
	.progress = write_progress,
	.offered_bytes = offered_by_write,
	.describe = describe_write,
	.describe_wait = describe_write_wait,
	.late = late_write,
};

/* Returns the compressions that the reader understands; 0: not met yet.  The node is open. */
static uint32_t understood_by(const struct weft_stream *stream)
{
	if (stream->call)
		return atomic_load(&stream->call->peer->compressions);
	return stream->served->understood;
}

int wf_streaming_write(struct weft_stream *stream, const ProtobufCMessage *message,
		       const struct weft_op_options *options, struct weft_op **op)
{
	size_t bytes = protobuf_c_message_get_packed_size(message);
	struct wf_codec_packed packed;
	struct wf_write *w;
	struct weft_op *fresh;
	int err;

	if (bytes > WF_CALL_BYTES_MOST)
		return wf_last_set(-EMSGSIZE, "a message of %zu bytes: the limit is %zu", bytes,
				   (size_t)WF_CALL_BYTES_MOST);
	err = new_op(stream, &wf_streaming_write_class, options, &fresh);
	if (err)
		return err;
	w = &fresh->write.write;
	if (wf_codec_pack(message, bytes,
			  wf_codec_compresses(&stream->first->engine.options,
					      understood_by(stream), stream->compression),
			  &stream->first->engine.pool, &packed)) {
		wf_op_drop(fresh);
		return wf_last_set(-ENOMEM, "no memory for a message of %zu bytes", bytes);
	}
	w->buffer = packed.buffer;
	w->flags = packed.compressed ? WF_MESSAGE_COMPRESSED : 0;
	w->outgoing.body = packed.buffer.at;
	w->outgoing.body_bytes = packed.bytes;
	wf_list_splice(&fresh->write.attached, &stream->attached);
	w->attachments = (uint16_t)stream->attachments;
	stream->attachments = 0;
	atomic_store(&stream->wrote, true);
	wf_op_launch(fresh, wf_clock_now(), op);
	return 0;
}

int wf_streaming_half_close(struct weft_stream *stream)
{
	struct weft_op *op;
	int err = new_op(stream, &wf_streaming_write_class, NULL, &op);

	if (err)
		return err;
	if (atomic_exchange(&stream->half_closed, true)) {
		wf_op_drop(op);
		return wf_last_set(-EPIPE, "the stream is half-closed already");
	}
	op->write.write.flags = WF_MESSAGE_NONE | WF_MESSAGE_LAST;
	wf_op_launch(op, op->time.made_ns, NULL);
	return 0;
}

static void got(struct wf_reading *r, const struct wf_error *e,
		const struct wf_reading_message *heard)
{
	struct weft_op *op = WF_CONTAINER(r, struct weft_op, read.reading);
	struct wf_error bad;

	if (heard) {
		op->read.path.bytes = heard->count;
		op->outcome.path = &op->read.path;
		op->read.compressed = heard->compressed;
		if (wf_codec_unpack(op->read.stream->reads, heard->bytes, heard->count,
				    heard->compressed, r->stream->message_bytes_max,
				    &op->read.message, &bad)) {
			wf_counters_add(&op->worker->engine.counters.unpack_failures, 1);
			wf_error_within(&bad, "a message of the stream");
			e = &bad;
		}
	}
	if (heard && e)
		wf_attachments_drop(heard->attachment_set);
	else if (heard)
		op->read.attachment_set = heard->attachment_set;
	wf_op_finish(op, e, WEFT_EXECUTED_MAYBE);
}

static void start_read(struct weft_op *op)
{
	op->read.reading.done = got;
	wf_stream_read(&op->read.stream->stream, &op->read.reading);
}

static void stop_read(struct weft_op *op, const struct wf_error *e)
{
	wf_stream_stop_read(&op->read.reading, e);
}

static int take_read_back(struct weft_op *op)
{
	return wf_stream_take_read_back(&op->read.reading);
}

static struct wf_worker *place_of_read(const struct weft_op *op)
{
	return op->read.stream->worker;
}

static void free_read(struct weft_op *op)
{
	if (op->read.message)
		protobuf_c_message_free_unpacked(op->read.message, NULL);
	wf_attachments_free(op, op->read.attachment_set);
	wf_streaming_put(op->read.stream);
}

static uint64_t read_progress(struct weft_op *op)
{
	return stream_progress(op->read.stream);
}

static uint64_t offered_to_read(const struct weft_op *op)
{
	return stream_offered_bytes(op->read.stream);
}

static void describe_read(const struct weft_op *op, char *text)
{
	wf_describe_add(text, "read");
	describe_stream(op->read.stream, text);
}

static void describe_read_wait(const struct weft_op *op, char *text, size_t bytes)
{
	wf_stream_describe_read(&op->read.reading, text, bytes);
}

static void late_read(const struct weft_op *op, const char *who, struct wf_error *e)
{
	(void)who;
	wf_error_set(e, -ETIMEDOUT, "the deadline passed before %s wrote more to the stream",
		     peer_of(op->read.stream));
}

#define READ_BYTES (offsetof(struct weft_op, read) + sizeof(struct wf_op_read))

const struct wf_op_class wf_streaming_read_class = {
	.kind = WF_OP_READ,
	.recorded = WF_RECORDER_STREAM_READ,
	.bytes = READ_BYTES,
	.zero_to = READ_BYTES,
	.start = start_read,
	.stop = stop_read,
	.take_back = take_read_back,
	.place = place_of_read,
	.free = free_read,
	.progress = read_progress,
	.offered_bytes = offered_to_read,
	.describe = describe_read,
	.describe_wait = describe_read_wait,
	.late = late_read,
};

int wf_streaming_read(struct weft_stream *stream, const struct weft_op_options *options,
		      struct weft_op **op)
{
	struct weft_op *fresh;
	int err = new_op(stream, &wf_streaming_read_class, options, &fresh);

	if (err)
		return err;
	wf_op_launch(fresh, fresh->time.made_ns, op);
	return 0;
}

/* The server. */

bool wf_streaming_wrote(const struct wf_stream *stream)
{
	return atomic_load(&public_of(stream)->wrote);
}

void wf_streaming_given_up(struct wf_stream *s, struct wf_worker *worker)
{
	wf_attachments_stop(&public_of(s)->moving, worker, NULL);
}

void wf_streaming_gone(struct wf_stream *s, struct wf_worker *worker)
{
	wf_attachments_stop(&public_of(s)->attached, worker, NULL);
}

struct wf_stream *wf_streaming_serve(struct wf_service *base, int method,
				     struct wf_server_call *served)
{
	struct wf_service_pb *s = WF_CONTAINER(base, struct wf_service_pb, base);
	const ProtobufCMethodDescriptor *m = &s->service->descriptor->methods[method];
	struct wf_worker *worker = wf_worker_of(served);
	struct weft_stream *stream = make(worker->node, worker);

	if (!stream)
		return NULL;
	stream->reads = m->input;
	stream->writes = m->output;
	stream->served = served;
	/* The caller pays for the stream, and for one read and one write. */
	wf_server_call_charge(served, sizeof(*stream) + 2 * sizeof(struct weft_op));
	return &stream->stream;
}

void wf_streaming_handle(struct wf_service *base, int method, struct wf_server_call *served)
{
	struct wf_service_pb *s = WF_CONTAINER(base, struct wf_service_pb, base);
	const struct wf_stream_handler *h = &s->handlers[method];

	h->handle(public_of(served->stream), h->arg);
}
