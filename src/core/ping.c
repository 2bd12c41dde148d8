/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "core/describe.h"
#include "core/op.h"
#include "core/peer.h"
#include "core/worker.h"

static void ping_done(struct wf_echo *echo, const struct wf_error *e)
{
	struct weft_op *op = WF_CONTAINER(echo, struct weft_op, echo);
	const struct wf_link *link = wf_link_real(echo->link);
	const struct wf_rail_caps *caps = wf_link_caps(link);
	struct wf_error bad;

	op->outcome.over = caps ? caps->names : NULL;
	op->outcome.way = caps ? WF_BODY_EAGER : WF_BODY_NONE;
	if (!e && caps && wf_terms_rail(&op->terms, link, caps, &bad))
		e = &bad;
	wf_op_finish(op, e, WEFT_EXECUTED_MAYBE);
}

static void start(struct weft_op *op)
{
	struct wf_link *link;
	struct wf_error e;

	op->echo.done = ping_done;
	if (wf_peer_link(op->peer, op->worker, &link, &e) ||
	    (wf_echo_start(&op->worker->echoes, link, &op->echo) &&
	     wf_error_set(&e, -ENOMEM, "no memory for a ping")))
		wf_op_finish(op, &e, WEFT_EXECUTED_NO);
}

static void stop(struct weft_op *op, const struct wf_error *e)
{
	wf_echo_stop(&op->echo, e);
}

static int take_back(struct weft_op *op)
{
	return wf_echo_take_back(&op->echo);
}

static void describe(const struct weft_op *op, char *text)
{
	wf_describe_add(text, "ping to ");
	wf_describe_peer(op, text);
}

static void describe_wait(const struct weft_op *op, char *text, size_t bytes)
{
	wf_echo_describe(&op->echo, text, bytes);
}

#define BYTES (offsetof(struct weft_op, echo) + sizeof(struct wf_echo))

const struct wf_op_class wf_ping_class = {
	.kind = WF_OP_PING,
	.recorded = WF_RECORDER_PING,
	.bytes = BYTES,
	.zero_to = BYTES,
	.start = start,
	.stop = stop,
	.take_back = take_back,
	.describe = describe,
	.describe_wait = describe_wait,
};
