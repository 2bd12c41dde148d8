/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/message.h"
#include "util/clock.h"

void wf_stream_put(struct weft_stream *stream)
{
	struct weft_node *node = stream->owner;

	if (atomic_fetch_sub(&stream->refs, 1) != 1)
		return;
	if (node) {
		pthread_mutex_lock(&node->lock);
		wf_list_remove(&stream->node);
		pthread_mutex_unlock(&node->lock);
	}
	/* The node may have forgotten the call before, but not freed it. */
	if (stream->call)
		wf_op_put(stream->call);
	free(stream);
}

void wf_stream_let_go(struct weft_stream *stream)
{
	stream->owner = NULL;
	wf_stream_release(&stream->stream);
}

static void quiet(struct wf_stream *s)
{
	wf_stream_put(WF_CONTAINER(s, struct weft_stream, stream));
}

/* Its one reference is the floor below's. */
static struct weft_stream *make(struct weft_node *node, struct wf_desk *desk)
{
	struct weft_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->owner = node;
	stream->first = desk;
	atomic_init(&stream->desk, desk);
	atomic_init(&stream->refs, 1);
	stream->stream.quiet = quiet;
	wf_list_init(&stream->node);
	pthread_mutex_lock(&node->lock);
	wf_list_append(&node->streams, &stream->node);
	pthread_mutex_unlock(&node->lock);
	return stream;
}

/* The caller. */

int weft_stream_open(struct weft_stub *stub, const char *method,
		     const struct weft_call_options *options, struct weft_stream **stream,
		     struct weft_op **op)
{
	const ProtobufCServiceDescriptor *service = weft_stub_service(stub)->descriptor;
	const ProtobufCMethodDescriptor *m =
		wf_service_method(service, method, strlen(method));
	struct weft_stream *fresh;
	struct weft_op *call;
	int err;

	if (!m)
		return wf_last_set(-ENOENT, "service %s has no method %s", service->name, method);
	err = wf_rpc_new(stub, options, &call);
	if (err)
		return err;
	fresh = make(call->owner, call->desk);
	if (!fresh) {
		weft_op_free(call);
		return wf_last_set(-ENOMEM, "no memory for a stream");
	}
	wf_stream_init(&fresh->stream);
	fresh->reads = m->output;
	fresh->writes = m->input;
	fresh->call = call;
	atomic_fetch_add(&fresh->refs, 1); /* the caller's */
	atomic_fetch_add(&call->refs, 1);  /* the stream's */
	call->call.stream = fresh;
	call->call.begun = call->call.packed = true;
	call->call.service_name = call->call.call.service = service->name;
	call->call.method_name = call->call.call.method = m->name;
	*stream = fresh;
	*op = call;
	call->call.call.began_ns = wf_clock_now();
	wf_op_submit(call, call->call.call.began_ns);
	return 0;
}

static void close_stream(struct wf_task *task)
{
	struct weft_stream *stream = WF_CONTAINER(task, struct weft_stream, close_task);
	struct weft_op *call = stream->call;
	struct wf_desk *desk = stream->desk;
	struct wf_error e;

	/* It has gone elsewhere, or is just on the way there. */
	if (stream->close_desk != desk || (!call->started && !call->finished)) {
		stream->close_desk = desk;
		wf_worker_submit(&desk->worker, task);
		return;
	}
	wf_error_set(&e, -ECANCELED, "the stream was closed");
	if (call->call.running)
		wf_call_stop(&call->call.call, &e);
	wf_stream_stop(&stream->stream, &e);
	wf_stream_release(&stream->stream);
	wf_stream_put(stream);
}

void weft_stream_close(struct weft_stream *stream)
{
	if (!stream || stream->served || (stream->owner && wf_node_check(stream->owner)))
		return;
	if (!stream->owner) {
		wf_stream_put(stream);
		return;
	}
	stream->close_task.run = close_stream;
	stream->close_desk = stream->first;
	wf_desk_run(stream->first, &stream->close_task, wf_clock_now());
}

/* Reads and writes. */

/* A read or write.  Unless it is said the call's deadline is theirs.  Recorded. */
static int new_op(struct weft_stream *stream, enum wf_op_kind kind,
		  const struct weft_op_options *options, struct weft_op **op)
{
	struct weft_op *call = stream->call, *fresh;
	int err;

	if (options && (options->flags || options->rails_min || options->provider))
		return wf_last_set(-EINVAL, "a read or write goes as its call does");
	if (!stream->owner)
		return wf_last_set(-EINVAL, "the stream's node has closed");
	err = wf_op_new(stream->owner, call ? call->peer : NULL, kind, options, &fresh);
	if (err)
		return err;
	/* Also when the call is over by then, and they only move what was said before. */
	if (!fresh->options.timeout_ns)
		fresh->deadline_ns = call ? call->deadline_ns : stream->served->deadline_ns;
	fresh->desk = stream->first;
	atomic_fetch_add(&stream->refs, 1);
	if (kind == WF_OP_WRITE)
		fresh->write.stream = stream;
	else
		fresh->read.stream = stream;
	*op = fresh;
	return 0;
}

static void written(struct wf_write *w, const struct wf_error *e)
{
	struct weft_op *op = WF_CONTAINER(w, struct weft_op, write.write);

	if (w->posted)
		wf_op_path_set(op, &w->parcel.path, 1 + (w->parcel.plan.way == WF_BODY_EAGER));
	wf_op_finish(op, e, w->posted ? WEFT_EXECUTED_MAYBE : WEFT_EXECUTED_NO);
}

void wf_stream_start_write(struct weft_op *op)
{
	op->write.write.done = written;
	wf_stream_write(&op->write.stream->stream, &op->write.write);
}

int weft_stream_write(struct weft_stream *stream, const ProtobufCMessage *message,
		      const struct weft_op_options *options, struct weft_op **op)
{
	size_t bytes = protobuf_c_message_get_packed_size(message);
	struct wf_write *w;
	struct weft_op *fresh;
	int err;

	if (message->descriptor != stream->writes)
		return wf_last_set(-EINVAL, "a stream of %s can't take a %s", stream->writes->name,
				   message->descriptor->name);
	if (atomic_load(&stream->half_closed))
		return wf_last_set(-EPIPE, "the stream is half-closed");
	if (bytes > WF_CALL_BYTES_MAX)
		return wf_last_set(-EMSGSIZE, "a message of %zu bytes: the limit is %zu", bytes,
				   (size_t)WF_CALL_BYTES_MAX);
	err = new_op(stream, WF_OP_WRITE, options, &fresh);
	if (err)
		return err;
	w = &fresh->write.write;
	if (bytes && wf_buffer_take(&w->buffer, &stream->first->worker.pool, bytes)) {
		wf_op_drop(fresh);
		return wf_last_set(-ENOMEM, "no memory for a message of %zu bytes", bytes);
	}
	if (bytes)
		protobuf_c_message_pack(message, w->buffer.at);
	w->parcel.body = w->buffer.at;
	w->parcel.body_bytes = bytes;
	atomic_store(&stream->wrote, true);
	if (op)
		*op = fresh;
	wf_op_submit(fresh, wf_clock_now());
	if (!op)
		weft_op_free(fresh);
	return 0;
}

int weft_stream_half_close(struct weft_stream *stream)
{
	struct weft_op *op;
	int err;

	if (stream->stream.serves)
		return wf_last_set(-EINVAL, "a server ends its stream by weft_stream_finish");
	if (atomic_load(&stream->half_closed))
		return wf_last_set(-EPIPE, "the stream is half-closed already");
	err = new_op(stream, WF_OP_WRITE, NULL, &op);
	if (err)
		return err;
	atomic_store(&stream->half_closed, true);
	op->write.write.flags = WF_MESSAGE_NONE | WF_MESSAGE_LAST;
	wf_op_submit(op, op->made_ns);
	weft_op_free(op);
	return 0;
}

static void got(struct wf_reading *r, const struct wf_error *e, const uint8_t *bytes, size_t count)
{
	struct weft_op *op = WF_CONTAINER(r, struct weft_op, read.reading);
	struct wf_error bad;

	if (bytes) {
		op->path.bytes = count;
		op->read.message = wf_message_unpack(op->read.stream->reads, bytes, count);
		if (!op->read.message) {
			wf_counters_add(&op->desk->worker.counters.unpack_failures, 1);
			wf_error_set(&bad, -EPROTO, "a message of the stream does not unpack");
			e = &bad;
		}
	}
	wf_op_finish(op, e, WEFT_EXECUTED_MAYBE);
}

void wf_stream_start_read(struct weft_op *op)
{
	op->read.reading.done = got;
	wf_stream_read(&op->read.stream->stream, &op->read.reading);
}

int weft_stream_read(struct weft_stream *stream, const struct weft_op_options *options,
		     struct weft_op **op)
{
	struct weft_op *fresh;
	int err = new_op(stream, WF_OP_READ, options, &fresh);

	if (err)
		return err;
	*op = fresh;
	wf_op_submit(fresh, fresh->made_ns);
	return 0;
}

const ProtobufCMessage *weft_stream_message(const struct weft_op *op)
{
	return op->kind == WF_OP_READ && weft_op_ended(op) ? op->read.message : NULL;
}

/* The server. */

bool wf_stream_wrote(const struct wf_stream *stream)
{
	return atomic_load(&WF_CONTAINER(stream, struct weft_stream, stream)->wrote);
}

static struct weft_stream *stream_of(const struct wf_served *served)
{
	return WF_CONTAINER(served->stream, struct weft_stream, stream);
}

struct wf_stream *wf_stream_serve(struct wf_service *base, int method, struct wf_served *served)
{
	struct wf_pb_service *s = WF_CONTAINER(base, struct wf_pb_service, base);
	const ProtobufCMethodDescriptor *m = &s->service->descriptor->methods[method];
	struct wf_desk *desk = served->serving->transfer->ctx;
	struct weft_stream *stream = make(desk->node, desk);

	if (!stream)
		return NULL;
	stream->reads = m->input;
	stream->writes = m->output;
	stream->served = served;
	return &stream->stream;
}

void wf_stream_handle(struct wf_service *base, int method, struct wf_served *served)
{
	struct wf_pb_service *s = WF_CONTAINER(base, struct wf_pb_service, base);
	const struct wf_stream_handler *h = &s->handlers[method];

	h->handle(stream_of(served), h->arg);
}

void weft_stream_finish(struct weft_stream *stream, enum weft_status status, const char *message)
{
	if (stream->served)
		wf_served_reply(stream->served, status, message, NULL, 0);
}

void *weft_stream_call(struct weft_stream *stream)
{
	return stream->served;
}

int weft_serve_streams(struct weft_node *node, ProtobufCService *service,
		       const struct weft_stream_method *methods, size_t count)
{
	int err = wf_node_check(node);

	return err ? err : wf_rpc_serve(node, service, methods, count);
}
