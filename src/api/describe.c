/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations in words, for the log and the dump. */
#include "api/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tensor/key.h"
#include "util/progress.h"

#define PART_BYTES 500

WF_PRINTF(2, 3)
static void add(char text[WF_DESCRIBE_BYTES], const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text + used, WF_DESCRIBE_BYTES - used, format, args);
	va_end(args);
}

/* Where a tensor belongs, added to @text.  A key is bytes, and need not be text. */
void wf_describe_channel(uint64_t step, const void *key, size_t key_bytes,
			 char text[WF_DESCRIBE_BYTES])
{
	char shown[WF_KEY_TEXT_BYTES];

	wf_key_text(key, key_bytes, shown);
	add(text, " step %llu key %s", (unsigned long long)step, shown);
}

/* Whose message it is. */
static void describe_stream(const struct weft_stream *stream, char text[WF_DESCRIBE_BYTES])
{
	const struct weft_op *call = stream->call;

	if (call)
		add(text, " in call %llu, %s/%s", (unsigned long long)call->number,
		    call->call.service_name, call->call.method_name);
	else
		add(text, " in a call that is served, of %s for %s", stream->writes->name,
		    stream->reads->name);
}

/*
 * What it is; only fields that stand since it was submitted.  The peer's name is
 * the worker's to read, and under the node's lock anybody's.
 */
void wf_describe_op(const struct weft_op *op, char text[WF_DESCRIBE_BYTES])
{
	static const char *const kinds[] = { "ping", "send", "recv", "call", "write", "read" };
	const struct wf_op_recv *recv = &op->recv;
	const struct wf_op_send *send = &op->send;

	text[0] = '\0';
	add(text, "%s", kinds[op->kind]);
	if (op->kind == WF_OP_SEND && send->attached) {
		add(text, " attachment %llu bytes",
		    (unsigned long long)send->sending.parcel.body_bytes);
		if (!op->peer) {
			add(text, " to a caller");
			return;
		}
	} else if (op->kind == WF_OP_RECV && recv->receiving.attached) {
		add(text, " attachment %llu", (unsigned long long)recv->receiving.step);
		return;
	} else if (op->kind == WF_OP_SEND) {
		wf_describe_channel(send->sending.step, send->sending.key, send->sending.key_bytes,
				    text);
		add(text, " %llu bytes", (unsigned long long)send->sending.parcel.body_bytes);
	} else if (op->kind == WF_OP_RECV) {
		wf_describe_channel(recv->receiving.step, recv->receiving.key,
				    recv->receiving.key_bytes, text);
	} else if (op->kind == WF_OP_CALL) {
		add(text, " %s/%s %zu bytes", op->call.service_name, op->call.method_name,
		    op->call.request_bytes);
	} else if (wf_op_stream(op)) {
		describe_stream(wf_op_stream(op), text);
		return;
	}
	add(text, op->kind == WF_OP_RECV ? " from " : " to ");
	add(text, "%s", !op->peer	     ? "any peer"
			: op->peer->name[0]  ? op->peer->name
					     : op->peer->address);
}

/* What it waits for, and how its peer is.  Threads: owner. */
void wf_describe_wait(const struct weft_op *op, char text[WF_DESCRIBE_BYTES])
{
	char part[PART_BYTES] = "", state[WF_LINK_STATE_BYTES];
	const struct wf_link *link;

	text[0] = '\0';
	if (!op->started || op->finished) {
		add(text, op->started ? "it has ended, and is about to be told"
				      : "the worker has not begun it yet");
		return;
	}
	switch (op->kind) {
	case WF_OP_PING:
		wf_echo_describe(&op->echo, part, sizeof(part));
		break;
	case WF_OP_SEND:
		wf_sending_describe(&op->send.sending, part, sizeof(part));
		break;
	case WF_OP_RECV:
		if (op->recv.asks)
			wf_ask_describe(op, part, sizeof(part));
		else
			wf_receiving_describe(&op->recv.receiving, part, sizeof(part));
		break;
	case WF_OP_CALL:
		if (op->call.running)
			wf_call_describe(&op->call.call, part, sizeof(part));
		else if (op->call.waits)
			(void)snprintf(part, sizeof(part),
				       "it is over, and its attachments are being taken back");
		else
			wf_retry_describe(op, part, sizeof(part));
		break;
	case WF_OP_WRITE:
		wf_stream_describe_write(&op->write.write, part, sizeof(part));
		break;
	case WF_OP_READ:
		wf_stream_describe_read(&op->read.reading, part, sizeof(part));
		break;
	}
	add(text, "%s", part);
	if (!op->peer || !op->peer->link)
		return;
	link = wf_link_real(op->peer->link);
	wf_link_describe(link, state);
	add(text, " (link %u to %s: %s)", link->number, wf_link_label(link), state);
}

/* A call comes further with each attempt, with what goes beside its request, and with its stream. */
static uint64_t call_progress(const struct weft_op *op)
{
	const struct wf_op_call *call = &op->call;
	uint64_t progress = wf_progress_add(call->running, call->retry ? call->retry->failed : 0);

	progress = wf_progress_add(progress, wf_attachments_sent_progress(&call->attached));
	if (call->stream)
		progress = wf_progress_add(progress,
					   wf_attachments_sent_progress(&call->stream->moving));
	return call->running ? wf_progress_add(progress, wf_call_progress(&call->call)) : progress;
}

/* Reads and writes of a stream come further with all that it does. */
static uint64_t stream_progress(const struct weft_op *op)
{
	const struct weft_stream *stream = wf_op_stream(op);
	uint64_t progress = wf_stream_progress(&stream->stream);

	progress = wf_progress_add(progress, wf_attachments_sent_progress(&stream->moving));
	if (op->kind != WF_OP_WRITE)
		return progress;
	return wf_progress_add(progress, wf_attachments_sent_progress(&op->write.attached));
}

/* A number that differs once the operation has come further.  Threads: owner. */
uint64_t wf_describe_progress(struct weft_op *op)
{
	switch (op->kind) {
	case WF_OP_SEND:
		return wf_sending_progress(&op->send.sending);
	case WF_OP_RECV:
		return op->recv.asks ? wf_ask_progress(op) : wf_receiving_progress(&op->recv.receiving);
	case WF_OP_CALL:
		return call_progress(op);
	case WF_OP_WRITE:
	case WF_OP_READ:
		return stream_progress(op);
	case WF_OP_PING:
		break;
	}
	return 0;
}

/* Bytes that the peer of @op may be reading just now, without a word.  Threads: owner. */
uint64_t wf_describe_offered_bytes(const struct weft_op *op)
{
	const struct weft_stream *stream = op->kind == WF_OP_CALL ? op->call.stream
								   : wf_op_stream(op);
	uint64_t bytes = 0;

	if (op->kind == WF_OP_SEND)
		bytes = wf_sending_offered_bytes(&op->send.sending);
	if (op->kind == WF_OP_CALL && op->call.running)
		bytes = wf_call_offered_bytes(&op->call.call);
	if (op->kind == WF_OP_CALL)
		bytes += wf_attachments_offered_bytes(&op->call.attached);
	if (op->kind == WF_OP_WRITE)
		bytes += wf_attachments_offered_bytes(&op->write.attached);
	if (!stream)
		return bytes;
	return bytes + wf_stream_offered_bytes(&stream->stream) +
	       wf_attachments_offered_bytes(&stream->moving);
}
