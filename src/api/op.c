/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations: made by any thread, run and ended by the worker, freed when
 * both the user and the library have let go.
 */
#include "api/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/key.h"
#include "transfer/plan.h"
#include "util/clock.h"

static int check_options(const struct weft_op_options *o)
{
	for (size_t i = 0; i < WF_COUNT(o->reserved); i++)
		if (o->reserved[i])
			return wf_last_set(-EINVAL, "a reserved field of the options is not zero");
	if (o->flags & ~WF_OP_FLAGS)
		return wf_last_set(-EINVAL, "flags %#x are not for an operation", o->flags);
	if (o->provider && strlen(o->provider) >= WF_NAMES_BYTES)
		return wf_last_set(-EINVAL, "no provider has so long a name: %.80s", o->provider);
	return 0;
}

/*
 * What the node demands of every operation, and what this one does.  In place: a copy would
 * wait until the zeros of the new operation have reached the memory.
 */
static void set_terms(struct wf_terms *terms, const struct weft_node *node,
		      const struct weft_op_options *o, const struct wf_names *names)
{
	terms->checksum = node->terms.checksum || o->flags & WEFT_CHECKSUM;
	terms->no_staging = node->terms.no_staging || o->flags & WEFT_STRICT_NO_STAGING;
	terms->no_fallback = node->terms.no_fallback || o->flags & WEFT_STRICT_NO_FALLBACK;
	terms->rails_min = o->rails_min;
	terms->provider = names ? names->provider : NULL;
}

/* The union ends with what the kind needs, and that with what a parcel or pull sets up by itself. */
static const struct {
	size_t bytes, zero_to;
} layouts[] = {
	[WF_OP_PING] = { offsetof(struct weft_op, echo) + sizeof(struct wf_echo),
			 offsetof(struct weft_op, echo) + sizeof(struct wf_echo) },
	[WF_OP_SEND] = { offsetof(struct weft_op, send) + sizeof(struct wf_op_send),
			 offsetof(struct weft_op, send.sending.parcel.transfer) },
	[WF_OP_RECV] = { offsetof(struct weft_op, recv) + sizeof(struct wf_op_recv),
			 offsetof(struct weft_op, recv) + sizeof(struct wf_op_recv) },
	[WF_OP_CALL] = { offsetof(struct weft_op, call) + sizeof(struct wf_op_call),
			 offsetof(struct weft_op, call.call.parcel.transfer) },
	[WF_OP_WRITE] = { offsetof(struct weft_op, write) + sizeof(struct wf_op_write),
			  offsetof(struct weft_op, write.write.parcel.transfer) },
	[WF_OP_READ] = { offsetof(struct weft_op, read) + sizeof(struct wf_op_read),
			 offsetof(struct weft_op, read) + sizeof(struct wf_op_read) },
};

/* A program may have a hundred thousand of them open: tests/fabric/test_memory measures the rest. */
_Static_assert(offsetof(struct weft_op, recv) + sizeof(struct wf_op_recv) <= 888,
	       "a receive with its channel takes less than 1 KiB");
_Static_assert(offsetof(struct weft_op, send) + sizeof(struct wf_op_send) <= 888,
	       "a send with its offer takes less than 1.5 KiB");

void wf_op_init(struct weft_node *node, const struct wf_options *options)
{
	node->terms = (struct wf_terms){
		.checksum = options->checksum,
		.no_staging = wf_options_lists(options->strict, "no-staging"),
		.no_fallback = wf_options_lists(options->strict, "no-fallback"),
	};
	wf_list_init(&node->ops);
	for (unsigned kind = 0; kind < WF_OP_KINDS; kind++)
		wf_spare_init(&node->spare_ops[kind], layouts[kind].bytes,
			      offsetof(struct weft_op, node), layouts[kind].zero_to);
}

void wf_op_fini(struct weft_node *node)
{
	for (unsigned kind = 0; kind < WF_OP_KINDS; kind++)
		wf_spare_fini(&node->spare_ops[kind]);
}

static void fill(struct weft_op *op, struct weft_node *node, struct weft_peer *peer,
		 enum wf_op_kind kind, const struct weft_op_options *given,
		 const struct wf_names *names)
{
	struct wf_desk *desk = peer ? peer->desk : &node->desks[0];
	uint64_t timeout = given->timeout_ns ? given->timeout_ns : desk->worker.options.timeout_ns;

	op->owner = node;
	atomic_init(&op->desk, desk);
	op->number = ++node->op_count;
	op->kind = kind;
	op->peer = peer;
	op->timed = given->timeout_ns;
	op->done = given->done;
	op->arg = given->arg;
	set_terms(&op->terms, node, given, names);
	op->made_ns = wf_clock_now();
	op->deadline_ns = wf_clock_after(op->made_ns, timeout);
	op->executed = WEFT_EXECUTED_NO;
	wf_list_init(&op->notice.node);
	atomic_init(&op->refs, 2);
	wf_list_init(&op->node);
	wf_list_append(&node->ops, &op->node);
}

int wf_op_nested(const struct weft_op_options *given, const struct weft_op_options **options)
{
	bool set = given->timeout_ns || given->done || given->arg || given->flags ||
		   given->rails_min || given->provider;

	if (set && !given->size)
		return wf_last_set(-EINVAL, "options->op.size is not set, and other fields of "
				   "options->op are");
	*options = given->size ? given : NULL;
	return 0;
}

int wf_op_new(struct weft_node *node, struct weft_peer *peer, enum wf_op_kind kind,
	      const struct weft_op_options *options, struct weft_op **op)
{
	const struct wf_names *names = NULL;
	struct weft_op_options given;
	struct weft_op *fresh;
	int err = wf_node_check(node);

	if (!err)
		err = wf_node_options(options, &given, sizeof(given));
	if (!err)
		err = check_options(&given);
	if (err)
		return err;
	if (given.provider && *given.provider) {
		names = wf_names_of(given.provider, "");
		if (!names)
			return wf_last_set(-EINVAL,
					   "too many names of providers were asked for; the last: %s",
					   given.provider);
	}
	pthread_mutex_lock(&node->lock);
	fresh = wf_spare_take(&node->spare_ops[kind]);
	if (fresh)
		fill(fresh, node, peer, kind, &given, names);
	pthread_mutex_unlock(&node->lock);
	if (!fresh)
		return wf_last_set(-ENOMEM, "no memory for an operation");
	*op = fresh;
	return 0;
}

static void free_op(struct weft_op *op)
{
	struct weft_node *node = op->owner;

	if (op->kind == WF_OP_RECV) {
		if (op->recv.receiving.attached)
			wf_bundle_put(op->recv.receiving.bundle);
		free(op->recv.receiving.long_shape);
		wf_kind_close(op->recv.receiving.device);
		if (node)
			weft_free(node, op->recv.receiving.chunk);
		free(op->recv.asks);
	} else if (op->kind == WF_OP_CALL) {
		wf_rpc_free(op);
	} else if (op->kind == WF_OP_READ) {
		if (op->read.message)
			protobuf_c_message_free_unpacked(op->read.message, NULL);
		wf_attachments_free(op, op->read.bundle);
	} else if (op->kind == WF_OP_SEND) {
		wf_kind_close(op->send.sending.device);
		free(op->send.sending.strided);
		if (op->send.attached && op->send.attached->stream)
			wf_stream_put(op->send.attached->stream);
		free(op->send.attached);
	}
	if (wf_op_stream(op))
		wf_stream_put(wf_op_stream(op));
	free(op->memory);
	wf_reason_drop(&op->error);
	if (!node) {
		free(op);
		return;
	}
	pthread_mutex_lock(&node->lock);
	wf_list_remove(&op->node);
	wf_spare_give(&node->spare_ops[op->kind], op);
	pthread_mutex_unlock(&node->lock);
}

void wf_op_put(struct weft_op *op)
{
	if (atomic_fetch_sub(&op->refs, 1) == 1)
		free_op(op);
}

void wf_op_drop(struct weft_op *op)
{
	wf_op_put(op);
	wf_op_put(op);
}

static void wake_waiting(struct weft_node *node)
{
	/* Nobody is between his look at the state and his sleep. */
	pthread_mutex_lock(&node->lock);
	pthread_cond_broadcast(&node->ended);
	pthread_mutex_unlock(&node->lock);
}

/* Tell the user; from the loop, outside the library's own work. */
static void publish(struct wf_notice *notice)
{
	struct weft_op *op = WF_CONTAINER(notice, struct weft_op, notice);
	struct weft_node *node = op->owner;
	struct wf_desk *desk = op->desk;

	/* Never before the call that started it is over: look again in the next turn. */
	if (!atomic_load(&op->submitted)) {
		wf_loop_defer(&desk->worker.loop, notice);
		return;
	}
	if (op->kind == WF_OP_CALL)
		wf_rpc_closure(op);
	atomic_store(&op->state, WF_OP_TOLD);
	if (op->done)
		op->done(op, op->arg);
	/* A child that was forked in there: the lock may be held for ever. */
	if (wf_node_check(node))
		return;
	atomic_store(&op->state, WF_OP_ENDED);
	/* Who is not counted yet has yet to look at the state. */
	if (atomic_load(&node->waiting))
		wake_waiting(node);
	desk->ended_count++;
	wf_op_put(op);
}

/* From the beginning of @op to @at_ns: 1 at least, for 0 says that nobody knows. */
static uint64_t since(const struct weft_op *op, uint64_t at_ns)
{
	if (!at_ns)
		return 0;
	return at_ns > op->made_ns ? at_ns - op->made_ns : 1;
}

void wf_op_finish(struct weft_op *op, const struct wf_error *e, enum weft_executed executed)
{
	struct wf_worker *w = &op->desk->worker;

	if (e)
		wf_reason_keep(&op->error, e);
	op->executed = e ? WF_MAX(op->executed, executed) : WEFT_EXECUTED_YES;
	op->finished = true;
	op->done_ns = w->loop.now_ns;
	wf_recorder_add(&w->loop.recorder, WF_RECORDER_OP_END, 0, op->number, (uint64_t)op->error.code);
	wf_timer_stop(&w->loop.timers, &op->timer);
	op->notice.run = publish;
	wf_loop_defer(&w->loop, &op->notice);
}

void wf_op_path_set(struct weft_op *op, const struct wf_path *path, unsigned copies)
{
	op->path = path;
	op->copies = (uint8_t)copies;
	if (!path->caps)
		return;
	/* The rail may be gone when somebody asks. */
	op->over = path->caps->names;
	/* The word for either is "direct". */
	op->way = path->straight && path->way == WF_BODY_PULL ? WF_BODY_HANDLE : path->way;
	op->sum_kind = path->bytes ? path->sum_kind : WF_BODY_SUM_NONE;
}

static void ping_done(struct wf_echo *echo, const struct wf_error *e)
{
	struct weft_op *op = WF_CONTAINER(echo, struct weft_op, echo);
	const struct wf_link *link = wf_link_real(echo->link);
	const struct wf_caps *caps = wf_link_caps(link);
	struct wf_error bad;

	op->over = caps ? caps->names : NULL;
	op->way = caps ? WF_BODY_EAGER : WF_BODY_NONE;
	if (!e && caps && wf_terms_rail(&op->terms, link, caps, &bad))
		e = &bad;
	wf_op_finish(op, e, WEFT_EXECUTED_MAYBE);
}

void wf_op_start_ping(struct weft_op *op)
{
	struct wf_link *link;
	struct wf_error e;

	op->echo.done = ping_done;
	if (wf_peer_link(op->peer, op->desk, &link, &e) ||
	    (wf_echo_start(&op->desk->echoes, link, &op->echo) &&
	     wf_error_set(&e, -ENOMEM, "no memory for a ping")))
		wf_op_finish(op, &e, WEFT_EXECUTED_NO);
}

/* End it early, because of @e. */
static void stop(struct weft_op *op, const struct wf_error *e)
{
	if (op->finished || !op->started)
		return;
	switch (op->kind) {
	case WF_OP_PING:
		wf_echo_stop(&op->echo, e);
		break;
	case WF_OP_SEND:
		if (op->send.attached)
			wf_attachment_stop(op, e);
		else
			wf_sending_stop(&op->send.sending, e);
		break;
	case WF_OP_RECV:
		if (op->recv.asks)
			wf_ask_stop(op, e);
		else
			wf_channels_cancel_receive(&op->recv.receiving, e);
		break;
	case WF_OP_CALL:
		if (op->call.running)
			wf_call_stop(&op->call.call, e);
		else
			wf_retry_stop(op, e);
		break;
	case WF_OP_WRITE:
		wf_stream_stop_write(&op->write.write, e);
		break;
	case WF_OP_READ:
		wf_stream_stop_read(&op->read.reading, e);
		break;
	}
}

/* Of the pool, for which it waits; 0: it does not. */
static uint64_t missing_bytes(const struct weft_op *op)
{
	if (op->kind == WF_OP_SEND && op->send.sending.state == WF_SENDING_MEMORY)
		return op->send.sending.parcel.body_bytes;
	if (op->kind == WF_OP_RECV && op->recv.receiving.state == WF_RECEIVING_MEMORY)
		return op->recv.receiving.got_bytes;
	return 0;
}

void wf_op_starve(struct wf_desk *desk)
{
	struct wf_error e;

	wf_error_set(&e, -ECANCELED, "this node has closed");
	WF_LIST_EACH(at, &desk->node->ops) {
		struct weft_op *op = WF_CONTAINER(at, struct weft_op, node);

		if (op->kind == WF_OP_RECV && op->recv.asks)
			wf_ask_starve(op, desk, &e);
		else if (op->desk == desk &&
			 (missing_bytes(op) || (op->kind == WF_OP_CALL && wf_retry_waits(op))))
			stop(op, &e);
	}
}

static int take_back(struct weft_op *op)
{
	int err = -EALREADY;

	switch (op->kind) {
	case WF_OP_PING:
		return wf_echo_take_back(&op->echo);
	case WF_OP_SEND:
		return wf_sending_take_back(&op->send.sending);
	case WF_OP_RECV:
		return wf_channels_take_back(&op->recv.receiving);
	case WF_OP_CALL:
		if (op->call.running)
			err = wf_call_take_back(&op->call.call);
		if (err)
			return err;
		op->call.running = false;
		wf_attachments_take_back(&op->call.attached);
		wf_op_put(op);
		return 0;
	case WF_OP_WRITE:
		err = wf_stream_take_write_back(&op->write.write);
		if (!err)
			wf_attachments_take_back(&op->write.attached);
		return err;
	case WF_OP_READ:
		return wf_stream_take_read_back(&op->read.reading);
	}
	return err;
}

void wf_op_take_back(struct weft_op *op)
{
	/* An attachment goes with its message. */
	if (!op->started || op->finished || wf_op_attached(op) || take_back(op))
		return;
	wf_timer_stop(&op->desk->worker.loop.timers, &op->timer);
	op->started = false;
	op->moves = true;
}

/* Its reads and writes will follow. */
static void set_desk(struct weft_op *op, struct wf_desk *to)
{
	op->desk = to;
	if (op->kind == WF_OP_CALL && op->call.stream)
		op->call.stream->desk = to;
}

void wf_op_move(struct weft_op *op, struct wf_desk *to)
{
	if (!op->moves)
		return;
	op->moves = false;
	set_desk(op, to);
	wf_loop_submit(&to->worker.loop, &op->start_task);
}

/* Who is at the other end of its stream. */
static const char *stream_peer(const struct weft_op *op)
{
	struct wf_link *link = wf_op_stream(op)->stream.link;

	return link ? wf_link_label(wf_link_real(link)) : "the peer";
}

/* What has not happened in time, so that a wrong key or step is seen at once. */
static void late(const struct weft_op *op, const char *who, struct wf_error *e)
{
	const struct wf_receiving *r = &op->recv.receiving;
	const struct wf_sending *s = &op->send.sending;
	char key[WF_KEY_TEXT_BYTES];

	if (wf_op_attached(op)) {
		wf_error_set(e, -ETIMEDOUT, "the deadline passed before the attachment was %s",
			     op->kind == WF_OP_SEND ? "received" : "here");
		return;
	}
	switch (op->kind) {
	case WF_OP_SEND:
		wf_key_text(s->key, s->key_bytes, key);
		wf_error_set(e, -ETIMEDOUT,
			     "the deadline passed before %s received step %llu, key %s", who,
			     (unsigned long long)s->step, key);
		break;
	case WF_OP_RECV:
		wf_key_text(r->key, r->key_bytes, key);
		wf_error_set(e, -ETIMEDOUT,
			     "the deadline passed before %s sent step %llu, key %s", who,
			     (unsigned long long)r->step, key);
		break;
	case WF_OP_WRITE:
		wf_error_set(e, -ETIMEDOUT, "the deadline passed before %s read more of the stream",
			     stream_peer(op));
		break;
	case WF_OP_READ:
		wf_error_set(e, -ETIMEDOUT, "the deadline passed before %s wrote more to the stream",
			     stream_peer(op));
		break;
	default:
		wf_error_set(e, -ETIMEDOUT, "the deadline passed before %s answered", who);
		break;
	}
}

static void deadline(struct wf_timer *timer)
{
	struct weft_op *op = WF_CONTAINER(timer, struct weft_op, timer);
	const struct wf_link *link = op->peer && op->peer->link ? wf_link_real(op->peer->link) : NULL;
	const char *trouble = link ? wf_link_trouble(link) : "";
	uint64_t missing = missing_bytes(op);
	char wait[WF_POOL_TEXT_BYTES];
	struct wf_error e;

	if (missing) {
		wf_pool_describe(&op->desk->worker.pool, missing, wait);
		wf_error_set(&e, -ENOBUFS, "the deadline passed: %s", wait);
	} else if (trouble[0]) {
		wf_error_set(&e, -ETIMEDOUT, "the deadline passed and %s can't be reached: %s",
			     wf_link_label(link), trouble);
	} else {
		late(op, link ? wf_link_label(link) : "any peer", &e);
	}
	wf_watch_late(op);
	stop(op, &e);
}

static void record_start(const struct weft_op *op)
{
	static const enum wf_recorder_kind kinds[] = {
		[WF_OP_PING] = WF_RECORDER_PING,
		[WF_OP_SEND] = WF_RECORDER_SEND,
		[WF_OP_RECV] = WF_RECORDER_RECV,
		[WF_OP_CALL] = WF_RECORDER_CALL,
		[WF_OP_WRITE] = WF_RECORDER_STREAM_WRITE,
		[WF_OP_READ] = WF_RECORDER_STREAM_READ,
	};
	uint64_t step = op->kind == WF_OP_SEND	 ? op->send.sending.step
			: op->kind == WF_OP_RECV ? op->recv.receiving.step
						 : 0;

	wf_recorder_add(&op->desk->worker.loop.recorder, kinds[op->kind], 0, op->number, step);
}

/* Where it is to run. */
static struct wf_desk *place(const struct weft_op *op)
{
	const struct weft_stream *stream = wf_op_stream(op);

	if (stream)
		return stream->desk;
	return op->peer ? op->peer->at : op->desk;
}

/* Is that another desk?  Then it goes there, after those that came before. */
static bool pass_on(struct weft_op *op)
{
	struct wf_desk *at = place(op);

	if (at == op->desk)
		return false;
	set_desk(op, at);
	wf_loop_submit(&at->worker.loop, &op->start_task);
	return true;
}

void wf_op_begin(struct weft_op *op)
{
	op->started = true;
	record_start(op);
	if (op->deadline_ns != UINT64_MAX)
		wf_loop_timer(&op->desk->worker.loop, &op->timer, op->deadline_ns, deadline);
}

static void start(struct wf_task *task)
{
	struct weft_op *op = WF_CONTAINER(task, struct weft_op, start_task);
	struct wf_error e;

	if (pass_on(op))
		return;
	if (op->owner->closing && !(op->kind == WF_OP_RECV && op->recv.asks)) {
		wf_error_set(&e, -ECANCELED, "this node has closed");
		if (op->kind == WF_OP_CALL)
			wf_rpc_drop(op, &e);
		else if (op->kind == WF_OP_WRITE)
			wf_stream_drop_write(op, &e);
		wf_op_finish(op, &e, WEFT_EXECUTED_NO);
		return;
	}
	wf_op_begin(op);
	switch (op->kind) {
	case WF_OP_PING:
		wf_op_start_ping(op);
		break;
	case WF_OP_SEND:
		wf_tensor_start_send(op);
		break;
	case WF_OP_RECV:
		wf_tensor_start_recv(op);
		break;
	case WF_OP_CALL:
		wf_rpc_start(op);
		break;
	case WF_OP_WRITE:
		wf_stream_start_write(op);
		break;
	case WF_OP_READ:
		wf_stream_start_read(op);
		break;
	}
	wf_watch_begin(op);
}

void wf_op_submit(struct weft_op *op, uint64_t now_ns)
{
	op->start_task.run = start;
	wf_desk_run(op->desk, &op->start_task, now_ns);
	if (op->kind == WF_OP_RECV && op->recv.asks)
		wf_ask_submit(op, now_ns);
	/* It can't be gone: what ends it waits for this. */
	atomic_store(&op->submitted, true);
}

void wf_op_launch(struct weft_op *fresh, uint64_t now_ns, struct weft_op **op)
{
	if (op)
		*op = fresh;
	wf_op_submit(fresh, now_ns);
	if (!op)
		weft_op_free(fresh);
}

void wf_op_again(struct weft_op *op)
{
	struct wf_worker *w = &op->desk->worker;

	wf_timer_stop(&w->loop.timers, &op->timer);
	op->started = false;
	wf_loop_submit(&w->loop, &op->start_task);
}

int weft_ping(struct weft_peer *peer, const struct weft_op_options *options, struct weft_op **op)
{
	struct weft_op *fresh;
	int err = WF_NEED(peer) ? -EINVAL
				: wf_op_new(peer->owner, peer, WF_OP_PING, options, &fresh);

	if (err)
		return err;
	wf_op_launch(fresh, fresh->made_ns, op);
	return 0;
}

static void cancel(struct wf_task *task)
{
	struct weft_op *op = WF_CONTAINER(task, struct weft_op, cancel_task);
	struct wf_desk *desk = op->desk;
	struct wf_error e;

	/* It has gone elsewhere, or is just on the way here. */
	if (op->cancel_desk != desk ||
	    (!op->started && !op->finished && atomic_load(&op->submitted))) {
		op->cancel_desk = desk;
		wf_loop_submit(&desk->worker.loop, task);
		return;
	}
	wf_error_set(&e, -ECANCELED, "it was cancelled");
	stop(op, &e);
	wf_op_put(op);
}

void weft_cancel(struct weft_op *op)
{
	/* Once is enough; the task is part of the operation. */
	if (WF_NEED(op) || !op->owner || wf_node_check(op->owner) || atomic_load(&op->state) != WF_OP_RUNNING ||
	    atomic_exchange(&op->cancel_asked, true))
		return;
	atomic_fetch_add(&op->refs, 1);
	op->cancel_task.run = cancel;
	op->cancel_desk = op->desk;
	wf_desk_run(op->cancel_desk, &op->cancel_task, wf_clock_now());
}

void weft_op_free(struct weft_op *op)
{
	if (!op || (op->owner && wf_node_check(op->owner)))
		return;
	/* A call that was opened and never invoked is known to nobody else. */
	if (op->kind == WF_OP_CALL && !op->call.begun)
		wf_op_put(op);
	wf_op_put(op);
}

static int wait_threaded(struct weft_node *node, struct weft_op *op, uint64_t until_ns)
{
	uint64_t stall_ns = op->desk->worker.options.stall_ns;
	uint64_t now = wf_clock_now();
	bool ended;

	pthread_mutex_lock(&node->lock);
	atomic_fetch_add(&node->waiting, 1);
	while (!(ended = atomic_load(&op->state) == WF_OP_ENDED) && now < until_ns) {
		uint64_t slice_ns = stall_ns ? WF_MIN(until_ns, now + stall_ns) : until_ns;
		struct timespec at = wf_clock_timespec(slice_ns);

		if (pthread_cond_timedwait(&node->ended, &node->lock, &at) == ETIMEDOUT) {
			pthread_mutex_unlock(&node->lock);
			wf_watch_worker(op->desk);
			pthread_mutex_lock(&node->lock);
		}
		now = wf_clock_now();
	}
	atomic_fetch_sub(&node->waiting, 1);
	pthread_mutex_unlock(&node->lock);
	return ended ? 0 : -ETIMEDOUT;
}

int weft_wait(struct weft_op *op, uint64_t timeout_ns)
{
	struct weft_node *node;
	struct wf_desk *desk;
	uint64_t until;
	int err;

	if (WF_NEED(op))
		return -EINVAL;
	node = op->owner;
	desk = op->desk;
	err = node ? wf_node_check(node) : 0;
	if (err)
		return err;
	if (atomic_load(&op->state) == WF_OP_ENDED)
		return 0;
	if (!node)
		return wf_last_set(-EINVAL, "the operation's node has closed");
	if (wf_node_inside(node))
		return wf_last_set(-EDEADLK, "weft_wait inside a callback would wait for itself");
	until = wf_clock_after(wf_clock_now(), timeout_ns);
	if (!node->manual || !pthread_equal(desk->thread, pthread_self())) {
		err = wait_threaded(node, op, until);
	} else {
		do {
			wf_desk_turn(desk, until);
			if (wf_node_check(node))
				return -EOWNERDEAD;
		} while (atomic_load(&op->state) != WF_OP_ENDED && desk->worker.loop.now_ns < until);
		err = atomic_load(&op->state) == WF_OP_ENDED ? 0 : -ETIMEDOUT;
	}
	return err ? wf_last_set(err, "the operation has not ended yet") : 0;
}

int weft_op_ended(const struct weft_op *op)
{
	return WF_NEED(op) ? -EINVAL : atomic_load(&op->state) != WF_OP_RUNNING;
}

enum weft_status weft_op_status(const struct weft_op *op)
{
	if (WF_NEED(op))
		return WEFT_INVALID_ARGUMENT;
	return weft_op_ended(op) ? wf_status_of(op->error.code) : WEFT_UNKNOWN;
}

const char *weft_op_message(const struct weft_op *op)
{
	if (WF_NEED(op))
		return weft_error();
	return weft_op_ended(op) ? wf_reason_text(&op->error) : "";
}

enum weft_executed weft_op_executed(const struct weft_op *op)
{
	if (WF_NEED(op))
		return WEFT_EXECUTED_NO;
	return weft_op_ended(op) ? op->executed : WEFT_EXECUTED_MAYBE;
}

static struct weft_path path_of(const struct weft_op *op)
{
	static const struct wf_path none;
	const struct wf_path *from = op->path ? op->path : &none;
	struct weft_path to = {
		.bytes = from->bytes,
		.copies = op->copies,
		.registered = from->registered,
		.chunks = from->chunks,
		.retries = from->retries,
		.helped = from->helped,
		.rails = op->over ? 1 + from->lanes : 0,
		.queued_ns = since(op, from->queued_ns),
		.matched_ns = since(op, from->matched_ns),
		.first_byte_ns = since(op, from->first_ns),
		.last_byte_ns = since(op, from->last_ns),
		.done_ns = since(op, op->done_ns),
	};

	if (op->over) {
		strcpy(to.provider, op->over->provider);
		strcpy(to.device, op->over->device);
	}
	strcpy(to.way, wf_plan_way((enum wf_body_way)op->way));
	strcpy(to.checksum, op->sum_kind == WF_BODY_SUM_XXH3 ? "xxh3" : "none");
	return to;
}

int weft_op_path(const struct weft_op *op, struct weft_path *path)
{
	struct weft_path known;
	size_t size;
	int err;

	if (WF_NEED(op) || WF_NEED(path))
		return -EINVAL;
	err = op->owner ? wf_node_check(op->owner) : 0;
	if (err)
		return err;
	size = path->size;
	if (size < sizeof(size))
		return wf_last_set(-EINVAL, "path->size is not set");
	if (!weft_op_ended(op))
		return wf_last_set(-EAGAIN, "the operation has not ended yet");
	known = path_of(op);
	memcpy(path, &known, WF_MIN(size, sizeof(known)));
	path->size = size;
	return 0;
}
