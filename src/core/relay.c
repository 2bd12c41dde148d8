/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/node.h"
#include "core/node_window.h"
#include "core/op.h"
#include "core/peer.h"
#include "core/recv.h"
#include "core/rma.h"
#include "core/stub.h"
#include "rpc/broadcast.pb-c.h"
#include "util/clock.h"

#define DEPTH 3           /* pieces that are asked for at once; not tuned */
#define PIECES 64         /* pieces of a body: a chain of 8 takes an eighth longer than one receiver */
#define PIECE_MIN ((uint64_t)256 * 1024)
#define PIECE_MAX ((uint64_t)4 * 1024 * 1024)
#define DEPTH_MAX 16      /* receivers ahead for which one waits longer */
#define JOINS_MAX 3       /* sources that may fail before the sender itself is read */
#define SERVING_MIN_NS (500 * WF_NS_PER_MS) /* least time for the one behind, who may have to dial */

/* A piece that is asked for, or has come before one ahead of it. */
struct piece {
	struct wf_relay *relay;
	struct weft_op *op; /* NULL: not under way */
	uint64_t from, bytes;
	bool is_here;
};

struct wf_relay {
	struct weft_op *op;
	enum { IDLE, JOINING, FETCHING, HIDING, PULLING, LEAVING, SERVING, CLOSING } state;
	struct weft_window *window; /* the destination, for others; NULL: none yet, or shut */
	uint64_t offer;             /* the sender's offer of the body */
	struct weft_op *call;       /* the call under way, to join or leave; NULL: none */
	struct weft_peer *source;   /* NULL: none is open */
	struct weft_remote *remote; /* window of @source */
	struct piece pieces[DEPTH];
	uint64_t piece_bytes;
	uint64_t asked_bytes, filled_bytes; /* from the beginning of the body on */
	uint64_t told_bytes;        /* the program was told of */
	struct wf_pull_block rest;  /* the part to pull from the sender */
	unsigned joins;
	uint32_t depth;             /* receivers between the sender and this one */
	bool failed;                /* the source serves no more */
	bool stopped;               /* because of @why */
	bool shutting;              /* the window is getting quiet; not for HIDING */
	struct wf_error why;        /* also of the whole, once the receiving has ended */
	uint64_t began_ns;
	struct wf_timer timer;      /* limit of a source that does not serve, or of serving */
	uint64_t progress;          /* progress of the pieces when @timer was set */
	struct wf_loop_task task;
	bool tasked;
};

static struct wf_relay *relay_of(struct wf_receiving *r)
{
	return WF_CONTAINER(r, struct weft_op, recv.receiving)->recv.relay;
}

static struct wf_receiving *receiving_of(const struct wf_relay *relay)
{
	return &relay->op->recv.receiving;
}

static struct wf_engine *engine_of(const struct wf_relay *relay)
{
	return &relay->op->worker->engine;
}

static void step(struct wf_loop_task *task);

/* Have the relay look, in a turn of the loop, at what has ended. */
static void step_soon(struct wf_relay *relay)
{
	if (relay->tasked)
		return;
	relay->tasked = true;
	relay->task.run = step;
	atomic_fetch_add(&relay->op->refs, 1);
	wf_loop_submit(&engine_of(relay)->loop, &relay->task);
}

/* The source */

static void close_source(struct wf_relay *relay)
{
	wf_timer_stop(&engine_of(relay)->loop.timers, &relay->timer);
	if (relay->remote)
		wf_rma_close(relay->remote);
	if (relay->source)
		wf_peer_close(relay->source);
	relay->remote = NULL;
	relay->source = NULL;
}

static bool is_idle(const struct wf_relay *relay)
{
	for (unsigned i = 0; i < DEPTH; i++)
		if (relay->pieces[i].op)
			return false;
	return !relay->call;
}

/* End what is under way: its callbacks follow. */
static void cancel_all(struct wf_relay *relay)
{
	for (unsigned i = 0; i < DEPTH; i++)
		if (relay->pieces[i].op)
			wf_op_cancel(relay->pieces[i].op);
	if (relay->call)
		wf_op_cancel(relay->call);
}

static bool is_closing(const struct wf_relay *relay)
{
	return relay->op->owner->closing;
}

/* Returns whether the receive was to stop, and has. */
static bool stops(struct wf_relay *relay)
{
	if (is_closing(relay) && !relay->stopped) {
		relay->stopped = true;
		wf_error_set(&relay->why, -ECANCELED, "this node has closed");
	}
	if (!relay->stopped)
		return false;
	wf_receiving_relayed(receiving_of(relay), NULL, &relay->why);
	return true;
}

static void pull_from(struct wf_relay *relay, uint64_t from)
{
	struct wf_receiving *r = receiving_of(relay);

	relay->state = PULLING;
	relay->rest = (struct wf_pull_block){
		.to = (char *)r->got.tensor.data + from, .from = from, .bytes = r->got.bytes - from,
	};
	wf_receiving_relayed(r, &relay->rest, NULL);
}

static void hidden(void *ctx)
{
	struct wf_relay *relay = ctx;

	wf_node_window_drop(relay->window);
	relay->window = NULL;
	if (!stops(relay))
		pull_from(relay, 0);
}

/* Let the receive pull what is missing from the sender. */
static void pull_rest(struct wf_relay *relay)
{
	bool whole = receiving_of(relay)->unexpected->record.body.sum_kind != WF_BODY_SUM_NONE;

	close_source(relay);
	if (!whole || !relay->filled_bytes) {
		pull_from(relay, relay->filled_bytes);
		return;
	}
	/*
	 * Checksums are of all bytes.  Nobody may read here while they come again, for they may
	 * come damaged.
	 */
	relay->state = HIDING;
	wf_node_window_shut(relay->window, hidden, relay);
}

static void fill(struct wf_relay *relay, uint64_t bytes)
{
	struct wf_worker *worker = relay->op->worker;

	relay->filled_bytes = bytes;
	if (relay->window && !relay->shutting)
		wf_window_fill(&worker->windows, &relay->window->window, bytes);
}

/* Returns whether @bytes of the body are more than the program was told of. */
static bool tell(struct wf_relay *relay, uint64_t bytes)
{
	bool more = bytes > relay->told_bytes;

	if (more)
		relay->told_bytes = bytes;
	return more;
}

static void ended(struct weft_op *op, void *arg)
{
	(void)op;
	step_soon(arg);
}

/* Calls to the sender */

/* Call @method of the sender's, for this receiver. */
static int call(struct wf_relay *relay,
		void (*method)(ProtobufCService *service, const Weft__Broadcast__Receiver *me))
{
	struct weft_call_options options = {
		.size = sizeof(options),
		.op = { .size = sizeof(options.op), .done = ended, .arg = relay },
	};
	Weft__Broadcast__Receiver me = WEFT__BROADCAST__RECEIVER__INIT;
	uint8_t descriptor[WF_ACCESS_DESCRIPTOR_BYTES];
	ProtobufCService *service;
	struct weft_stub *stub;
	int err;

	options.op.timeout_ns = engine_of(relay)->options.lost_ns;
	err = wf_stub_open(relay->op->peer, &weft__broadcast__broadcast__descriptor, &stub);
	if (err)
		return err;
	err = wf_stub_call(stub, &options, &service, &relay->call);
	if (!err) {
		wf_node_window_describe(relay->window, descriptor);
		me.offer = relay->offer;
		me.window.data = descriptor;
		me.window.len = sizeof(descriptor);
		me.address = engine_of(relay)->address;
		me.failed = relay->failed;
		method(service, &me);
	}
	wf_stub_close(stub);
	return err;
}

static void join(ProtobufCService *service, const Weft__Broadcast__Receiver *me)
{
	weft__broadcast__broadcast__join(service, me, NULL, NULL);
}

static void leave(ProtobufCService *service, const Weft__Broadcast__Receiver *me)
{
	weft__broadcast__broadcast__leave(service, me, NULL, NULL);
}

/* Take the answer to the call, which has ended, if it is a message of @type.  NULL: it is none. */
static const ProtobufCMessage *answer(const struct weft_op *call,
				      const ProtobufCMessageDescriptor *type)
{
	return wf_op_status(call) == WEFT_OK && call->call.output == type ? call->call.reply : NULL;
}

static void join_or_pull(struct wf_relay *relay)
{
	relay->state = JOINING;
	if (relay->joins++ == JOINS_MAX || call(relay, join))
		pull_rest(relay);
	else
		relay->failed = false;
}

/* Go on without a source: the receive is stopped, or the sender is asked for another one. */
static void go_on(struct wf_relay *relay)
{
	if (!stops(relay))
		join_or_pull(relay);
}

/* Fetching */

static void late(struct wf_timer *timer);

/* Returns how many bytes have come from the source, or before. */
static uint64_t progress_of(const struct wf_relay *relay)
{
	uint64_t sum = relay->filled_bytes;

	for (unsigned i = 0; i < DEPTH; i++)
		if (relay->pieces[i].op && relay->pieces[i].op->rma.get.pull)
			sum += relay->pieces[i].op->rma.get.pull->at.got_bytes;
	return sum;
}

/*
 * Returns how long the source may serve nothing: the longer the further from the sender, so that of
 * all who wait behind one that fails, the first goes round it and the others need not.
 */
static uint64_t patience_ns(const struct wf_relay *relay)
{
	uint64_t lost_ns = engine_of(relay)->options.lost_ns;

	return lost_ns + WF_MIN(relay->depth, DEPTH_MAX) * (lost_ns / 4);
}

static void watch(struct wf_relay *relay)
{
	struct wf_engine *engine = engine_of(relay);

	relay->progress = progress_of(relay);
	wf_loop_timer(&engine->loop, &relay->timer, engine->loop.now_ns + patience_ns(relay), late);
}

/* Give the source up if it has served nothing in its time. */
static void late(struct wf_timer *timer)
{
	struct wf_relay *relay = WF_CONTAINER(timer, struct wf_relay, timer);

	if (progress_of(relay) != relay->progress) {
		watch(relay);
		return;
	}
	relay->failed = true;
	cancel_all(relay);
}

/* Returns the options of a piece, whose way is to meet what the receive asks of its own. */
static struct weft_op_options options_of_piece(struct wf_relay *relay)
{
	const struct wf_terms *terms = &relay->op->terms;
	struct weft_op_options options = {
		.size = sizeof(options),
		.done = ended,
		.arg = relay,
		.rails_min = terms->rails_min,
		.provider = terms->provider,
		.priority = terms->priority,
	};

	if (receiving_of(relay)->unexpected->record.body.sum_kind != WF_BODY_SUM_NONE)
		options.flags |= WEFT_CHECKSUM;
	if (terms->no_staging)
		options.flags |= WEFT_STRICT_NO_STAGING;
	if (terms->no_fallback)
		options.flags |= WEFT_STRICT_NO_FALLBACK;
	return options;
}

/* Ask for the next piece, as @piece.  Returns whether it is under way. */
static bool ask(struct wf_relay *relay, struct piece *piece)
{
	const struct wf_receiving *r = receiving_of(relay);
	struct weft_access_options options = {
		.size = sizeof(options), .op = options_of_piece(relay),
	};
	struct weft_block block = {
		.local = (char *)r->got.tensor.data + relay->asked_bytes,
		.remote = relay->asked_bytes,
		.bytes = WF_MIN(relay->piece_bytes, r->got.bytes - relay->asked_bytes),
	};

	if (wf_rma_get(relay->remote, &block, 1, &options, &piece->op)) {
		relay->failed = true;
		return false;
	}
	piece->from = block.remote;
	piece->bytes = block.bytes;
	piece->is_here = false;
	relay->asked_bytes += block.bytes;
	return true;
}

/* Take note of the pieces that have ended. */
static void collect(struct wf_relay *relay)
{
	struct wf_receiving *r = receiving_of(relay);

	for (unsigned i = 0; i < DEPTH; i++) {
		struct piece *piece = &relay->pieces[i];

		if (!piece->op || !wf_op_ended(piece->op))
			continue;
		piece->is_here = wf_op_status(piece->op) == WEFT_OK;
		relay->failed |= !piece->is_here;
		if (piece->is_here && !is_closing(relay)) {
			r->path.caps = piece->op->rma.get.path.caps;
			r->path.chunks += piece->op->rma.get.path.chunks;
		}
		wf_op_free(piece->op);
		piece->op = NULL;
	}
}

/* Returns the piece that has come and begins at @from; NULL: there is none. */
static struct piece *piece_here(struct wf_relay *relay, uint64_t from)
{
	for (unsigned i = 0; i < DEPTH; i++)
		if (relay->pieces[i].is_here && relay->pieces[i].from == from)
			return &relay->pieces[i];
	return NULL;
}

/* Count the pieces that have come, in order, as filled. */
static void advance(struct wf_relay *relay)
{
	struct wf_receiving *r = receiving_of(relay);
	uint64_t filled = relay->filled_bytes;
	struct piece *piece;

	while ((piece = piece_here(relay, filled))) {
		piece->is_here = false;
		filled += piece->bytes;
	}
	if (filled == relay->filled_bytes)
		return;
	fill(relay, filled);
	r->path.last_ns = engine_of(relay)->loop.now_ns;
	if (!r->path.first_ns)
		r->path.first_ns = r->path.last_ns;
	if (tell(relay, filled) && r->came)
		r->came(r->came_arg, &r->got.tensor, filled);
}

static void fetch(struct wf_relay *relay)
{
	struct wf_receiving *r = receiving_of(relay);

	collect(relay);
	advance(relay);
	for (unsigned i = 0; i < DEPTH && !relay->failed && !relay->stopped; i++)
		if (!relay->pieces[i].op && !relay->pieces[i].is_here &&
		    relay->asked_bytes < r->got.bytes)
			(void)ask(relay, &relay->pieces[i]);
	if (!is_idle(relay))
		return;
	close_source(relay);
	if (relay->filled_bytes == r->got.bytes) {
		r->path.way = WF_BODY_PULL;
		r->path.bytes = r->got.bytes;
		wf_receiving_relayed(r, NULL, NULL);
	} else {
		go_on(relay);
	}
}

/* Open the window of the source that the sender has named. */
static int open_source(struct wf_relay *relay, const Weft__Broadcast__Source *named)
{
	const struct wf_receiving *r = receiving_of(relay);
	char host[WF_SOCKET_ADDRESS_BYTES];
	struct wf_error e;
	uint16_t port;
	int err = -EINVAL;

	if (strlen(named->address) < WF_SOCKET_ADDRESS_BYTES)
		err = wf_socket_split(named->address, host, sizeof(host), &port, &e);
	if (!err)
		err = wf_peer_open(relay->op->owner, named->address, &relay->source);
	if (!err)
		err = wf_rma_import(relay->source, named->window.data, named->window.len,
				    &relay->remote);
	if (!err && relay->remote->remote.bytes != r->got.bytes)
		err = -EINVAL;
	if (!err)
		relay->remote->remote.in_pieces = true;
	return err;
}

/* The sender has answered, or not. */
static void joined(struct wf_relay *relay)
{
	struct weft_op *call = relay->call;
	const Weft__Broadcast__Source *named =
		(const void *)answer(call, &weft__broadcast__source__descriptor);

	relay->call = NULL;
	if (relay->stopped || is_closing(relay)) {
		go_on(relay);
	} else if (!named || !named->address[0]) {
		pull_rest(relay);
	} else if (open_source(relay, named)) {
		relay->failed = true;
		close_source(relay);
		join_or_pull(relay);
	} else {
		relay->state = FETCHING;
		relay->depth = named->depth;
		relay->asked_bytes = relay->filled_bytes;
		for (unsigned i = 0; i < DEPTH; i++)
			relay->pieces[i] = (struct piece){ .relay = relay };
		fetch(relay);
		if (relay->state == FETCHING)
			watch(relay);
	}
	wf_op_free(call);
}

/* Serving, and the end */

static void finish(struct wf_relay *relay)
{
	wf_op_finish(relay->op, relay->why.code ? &relay->why : NULL,
		     wf_recv_executed(receiving_of(relay)));
}

static void window_ended(void *ctx)
{
	struct wf_relay *relay = ctx;

	wf_node_window_drop(relay->window);
	relay->window = NULL;
	if (relay->state == CLOSING)
		finish(relay);
}

static void shut_window(struct wf_relay *relay)
{
	if (!relay->window || relay->shutting || relay->state == HIDING)
		return;
	relay->shutting = true;
	wf_node_window_shut(relay->window, window_ended, relay);
}

static void shut(struct wf_relay *relay)
{
	if (relay->state == CLOSING)
		return;
	wf_timer_stop(&engine_of(relay)->loop.timers, &relay->timer);
	shut_window(relay);
	relay->state = CLOSING;
	if (!relay->window)
		finish(relay);
}

static void served_enough(struct wf_timer *timer)
{
	shut(WF_CONTAINER(timer, struct wf_relay, timer));
}

/* Another receiver has read a piece here. */
static void taken(struct wf_window *window)
{
	struct wf_relay *relay = window->taken_ctx;

	if (relay->state == SERVING)
		step_soon(relay);
}

static bool is_taken(const struct wf_relay *relay)
{
	return relay->window->window.taken_bytes >= relay->window->window.bytes;
}

void wf_relay_done(struct wf_relay *relay, const struct wf_error *e)
{
	relay->why = e ? *e : (struct wf_error){ 0 };
	if (!e && relay->window)
		fill(relay, receiving_of(relay)->got.bytes);
	if (!e && relay->window && !relay->shutting && !is_taken(relay) && !is_closing(relay)) {
		relay->state = LEAVING;
		relay->failed = false;
		if (!call(relay, leave))
			return;
	}
	shut(relay);
}

/* The sender has said whether another receiver reads here, or not. */
static void left(struct wf_relay *relay)
{
	struct wf_engine *engine = engine_of(relay);
	uint64_t took_ns = engine->loop.now_ns - relay->began_ns;
	struct weft_op *call = relay->call;
	const Weft__Broadcast__Readers *readers =
		(const void *)answer(call, &weft__broadcast__readers__descriptor);

	relay->call = NULL;
	if (readers && readers->any && !relay->shutting && !is_taken(relay)) {
		relay->state = SERVING;
		wf_loop_timer(&engine->loop, &relay->timer,
			      engine->loop.now_ns + WF_MAX(took_ns, SERVING_MIN_NS), served_enough);
	} else {
		shut(relay);
	}
	wf_op_free(call);
}

bool wf_relay_stop(struct wf_relay *relay)
{
	if (relay->state == LEAVING) {
		/* A call that has just ended is not cancelled: left() sees that the window shuts. */
		shut_window(relay);
		wf_op_cancel(relay->call);
	} else if (relay->state == SERVING) {
		shut(relay);
	}
	return relay->state >= LEAVING;
}

static void step(struct wf_loop_task *task)
{
	struct wf_relay *relay = WF_CONTAINER(task, struct wf_relay, task);
	struct weft_op *op = relay->op;

	relay->tasked = false;
	if (is_closing(relay))
		op->recv.receiving.path.caps = NULL; /* the rail may be gone */
	if (relay->state == JOINING && !relay->call)
		go_on(relay);
	else if (relay->state == JOINING && wf_op_ended(relay->call))
		joined(relay);
	else if (relay->state == FETCHING)
		fetch(relay);
	else if (relay->state == LEAVING && wf_op_ended(relay->call))
		left(relay);
	else if (relay->state == SERVING && is_taken(relay))
		shut(relay);
	wf_op_put(op);
}

/* The functions of a receiving */

static void begin(struct wf_receiving *r)
{
	struct wf_relay *relay = relay_of(r);
	struct weft_node *node = relay->op->owner;

	relay->began_ns = engine_of(relay)->loop.now_ns;
	relay->offer = r->unexpected->record.body.offer;
	relay->piece_bytes = WF_MIN(WF_MAX(r->got.bytes / PIECES, PIECE_MIN), PIECE_MAX);
	relay->state = JOINING;
	/* Without a window the receive serves nobody, and joins nobody. */
	if (wf_node_window_open(node, r->got.tensor.data, r->got.bytes, WEFT_WINDOW_READ, NULL,
				&relay->window)) {
		relay->window = NULL;
		relay->joins = JOINS_MAX;
	} else {
		relay->window->window.fills = true;
		relay->window->window.taken = taken;
		relay->window->window.taken_ctx = relay;
	}
	step_soon(relay);
}

/* Others' reads here may take as long to end as the receive's own: both end side by side. */
static void stopping(struct wf_receiving *r)
{
	shut_window(relay_of(r));
}

static void stop(struct wf_receiving *r, const struct wf_error *e)
{
	struct wf_relay *relay = relay_of(r);

	if (relay->stopped)
		return;
	relay->stopped = true;
	relay->why = *e;
	cancel_all(relay);
	if (is_idle(relay) && relay->state != HIDING) {
		close_source(relay);
		wf_receiving_relayed(r, NULL, &relay->why);
	}
}

static bool came(struct wf_receiving *r, uint64_t *bytes, uint64_t sure)
{
	struct wf_relay *relay = relay_of(r);

	if (relay->state != PULLING)
		return true;
	*bytes += relay->rest.from;
	sure += relay->rest.from;
	if (sure > relay->filled_bytes)
		fill(relay, sure);
	return tell(relay, *bytes);
}

const struct wf_receiving_relay wf_relay_functions = {
	.begin = begin,
	.stopping = stopping,
	.stop = stop,
	.came = came,
};

int wf_relay_open(struct weft_op *op, struct wf_relay **relay)
{
	*relay = calloc(1, sizeof(**relay));
	if (!*relay)
		return -ENOMEM;
	(*relay)->op = op;
	return 0;
}

void wf_relay_free(struct wf_relay *relay)
{
	free(relay);
}
