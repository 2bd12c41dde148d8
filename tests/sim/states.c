/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/sim/states.h"

#include "core/broadcast.h"
#include "core/op.h"
#include "core/worker.h"
#include "tests/sim/casting.h"
#include "tests/sim/onesided.h"
#include "tests/sim/staying.h"

/* What an operation is doing, or WF_STATES: nothing any more. */
static enum wf_state state_of_outgoing(const struct wf_outgoing *p, enum wf_state waiting,
				       enum wf_state queued, enum wf_state offered)
{
	switch (p->state) {
	case WF_OUTGOING_WAITING:
		return waiting;
	case WF_OUTGOING_QUEUED:
		return queued;
	case WF_OUTGOING_OFFERED:
		return offered;
	case WF_OUTGOING_WITHDRAWING:
		return WF_STATE_SEND_WITHDRAWING;
	case WF_OUTGOING_ENDED:
		break;
	}
	return WF_STATES;
}

/* Has somebody all the bytes of @leg, which waits for word of that? */
static bool is_pulled(const struct wf_leg *leg)
{
	const struct wf_group *g = leg->group;

	for (unsigned i = 0; i < g->count; i++)
		if (g->legs[i].kind == WF_LEG_RECEIVE && g->legs[i].flight.outcomes &&
		    g->legs[i].flight.status == WEFT_OK && g->count == 2)
			return true;
	return false;
}

static enum wf_state state_of_send(const struct wf_leg *leg, const struct weft_op *op)
{
	enum wf_state state = state_of_outgoing(&op->send.sending.outgoing, WF_STATE_SEND_WAITING,
						WF_STATE_SEND_QUEUED, WF_STATE_SEND_OFFERED);

	return state == WF_STATE_SEND_OFFERED && is_pulled(leg) ? WF_STATE_SEND_PULLED : state;
}

static enum wf_state state_of_receive(const struct wf_receiving *r)
{
	switch (r->state) {
	case WF_RECEIVING_WAITING:
		return WF_STATE_RECEIVE_WAITING;
	case WF_RECEIVING_MEMORY:
		return r->attached ? WF_STATE_ATTACHMENTS_MEMORY : WF_STATE_RECEIVE_MEMORY;
	case WF_RECEIVING_RELAYING:
		return WF_STATE_RECEIVE_RELAYING;
	case WF_RECEIVING_ENDED:
		return r->flags & WEFT_RELAY ? WF_STATE_RECEIVE_SERVING : WF_STATES;
	case WF_RECEIVING_PULLING:
		if (r->attached)
			return r->pull->state == WF_PULL_STOPPING ? WF_STATE_ATTACHMENTS_STOPPING
								  : WF_STATE_ATTACHMENTS_PULLING;
		return r->pull->state == WF_PULL_STOPPING ? WF_STATE_RECEIVE_STOPPING
							  : WF_STATE_RECEIVE_PULLING;
	default:
		return WF_STATES;
	}
}

/* One that has not begun goes with its message. */
static enum wf_state state_of_attachment(const struct wf_sending *s)
{
	switch (s->state) {
	case WF_SENDING_MEMORY:
	case WF_SENDING_GATHERING:
		return WF_STATE_ATTACHMENT_MEMORY;
	case WF_SENDING_MOVING:
		if (s->outgoing.state == WF_OUTGOING_WITHDRAWING)
			return WF_STATE_ATTACHMENT_WITHDRAWING;
		return state_of_outgoing(&s->outgoing, WF_STATE_ATTACHMENT_WAITING,
					 WF_STATE_ATTACHMENT_QUEUED, WF_STATE_ATTACHMENT_OFFERED);
	default:
		return WF_STATES;
	}
}

static enum wf_state state_of_call(const struct wf_call *call)
{
	if (call->run.reply_busy)
		return WF_STATE_CALL_REPLY;
	if (call->run.request_busy)
		return state_of_outgoing(&call->outgoing, WF_STATE_CALL_WAITING, WF_STATE_CALL_QUEUED,
					 WF_STATE_CALL_OFFERED);
	return WF_STATE_CALL_DELIVERED;
}

static enum wf_state state_of_get(const struct wf_remote_get *get)
{
	switch (get->state) {
	case WF_REMOTE_GET_WAITING:
		return WF_STATE_GET_WAITING;
	case WF_REMOTE_GET_ASKING:
		return WF_STATE_GET_ASKING;
	case WF_REMOTE_GET_READING:
		return get->pull->state == WF_PULL_STOPPING ? WF_STATE_GET_STOPPING
							    : WF_STATE_GET_READING;
	case WF_REMOTE_GET_ENDED:
		break;
	}
	return WF_STATE_GET_TELLING;
}

/* By the first of its bodies that has not ended. */
static enum wf_state state_of_put(const struct wf_putting *p)
{
	for (uint32_t i = 0; i < wf_putting_bodies(p->count); i++) {
		const struct wf_outgoing *outgoing = &p->bodies[i].outgoing;

		if (outgoing->state == WF_OUTGOING_WITHDRAWING)
			return WF_STATE_PUT_WITHDRAWING;
		if (outgoing->state != WF_OUTGOING_ENDED)
			return state_of_outgoing(outgoing, WF_STATE_PUT_WAITING,
						 WF_STATE_PUT_QUEUED, WF_STATE_PUT_OFFERED);
	}
	return WF_STATES;
}

static enum wf_state state_of_staying(const struct wf_op_recv_many *many)
{
	return atomic_load(&many->out) < many->max ? WF_STATE_STAYING_WAITING
						   : WF_STATE_STAYING_FULL;
}

static enum wf_state state_of_op(const struct weft_op *op)
{
	if (!op || !op->started || op->outcome.known)
		return WF_STATES;
	switch (op->class->kind) {
	case WF_OP_SEND:
		if (!op->send.attached)
			return state_of_outgoing(&op->send.sending.outgoing, WF_STATE_SEND_WAITING,
						 WF_STATE_SEND_QUEUED, WF_STATE_SEND_OFFERED);
		return state_of_attachment(&op->send.sending);
	case WF_OP_RECV_MANY:
		return state_of_staying(&op->recv_many);
	case WF_OP_RECV:
		return state_of_receive(&op->recv.receiving);
	case WF_OP_BROADCAST:
		return WF_STATES; /* the sends to its members have states */
	case WF_OP_CALL:
		if (op->call.waits)
			return WF_STATE_CALL_BUFFERS;
		return op->call.running ? state_of_call(&op->call.call) : WF_STATES;
	case WF_OP_GET:
		return state_of_get(&op->rma.get);
	case WF_OP_PUT:
		return state_of_put(&op->rma.work.putting);
	default:
		return WF_STATE_PING;
	}
}

static enum wf_state state_of(const struct wf_leg *leg)
{
	const struct weft_op *op = leg->flight.op;

	if (op && op->class->kind == WF_OP_SEND)
		return op->started && !op->outcome.known ? state_of_send(leg, op) : WF_STATES;
	return state_of_op(op);
}

static enum wf_state state_of_served(const struct wf_server_call *s)
{
	if (s->reply.outgoing.state != WF_OUTGOING_ENDED)
		return WF_STATE_SERVED_REPLYING;
	return s->handler.begun ? WF_STATE_SERVED_HANDLING : WF_STATE_SERVED_REQUEST;
}

static enum wf_state state_of_link(const struct wf_link *link)
{
	if (wf_link_was_up(link) && !link->conn)
		return WF_STATE_LINK_REDIALLING;
	switch (link->state) {
	case WF_LINK_DIALLING:
		return WF_STATE_LINK_DIALLING;
	case WF_LINK_TRYING:
		return WF_STATE_LINK_TRYING;
	case WF_LINK_UP:
		return WF_STATE_LINK_UP;
	default:
		return WF_STATE_LINK_IDLE;
	}
}

static void count(struct wf_tally *tally, enum wf_fault fault, enum wf_state state)
{
	if (state != WF_STATES)
		tally->hits[state][fault]++;
}

/* Both ways of one end of a stream, each by what is first. */
static void count_stream(struct wf_tally *tally, enum wf_fault fault, const struct wf_stream *s)
{
	struct wf_list *posted = wf_list_first(&s->out.posted);

	if (posted)
		count(tally, fault,
		      state_of_outgoing(&WF_CONTAINER(posted, struct wf_write, node)->outgoing,
					WF_STATE_STREAM_WAITING, WF_STATE_STREAM_QUEUED,
					WF_STATE_STREAM_OFFERED));
	if (!wf_list_empty(&s->out.pending) && !s->out.held)
		count(tally, fault, WF_STATE_STREAM_FULL);
	if (s->in.ahead_bytes)
		count(tally, fault, WF_STATE_STREAM_PULLING);
	else if (!wf_list_empty(&s->in.readers))
		count(tally, fault, WF_STATE_STREAM_READING);
	else if (!wf_list_empty(&s->in.incoming))
		count(tally, fault, WF_STATE_STREAM_UNREAD);
}

static void count_op(struct wf_tally *tally, enum wf_fault fault, const struct wf_leg *leg)
{
	count(tally, fault, state_of(leg));
	if (leg->talk.stream)
		count_stream(tally, fault, &leg->talk.stream->stream);
}

static void count_served(struct wf_tally *tally, enum wf_fault fault,
			 const struct wf_server_call *s)
{
	count(tally, fault, state_of_served(s));
	if (s->stream)
		count_stream(tally, fault, s->stream);
}

static struct wf_link *link_between(unsigned node, unsigned other)
{
	struct weft_peer *peer = wf_world_node(node) ? wf_world_known(node, other) : NULL;
	struct wf_link *link = peer ? peer->link : NULL;

	return link ? wf_link_real(link) : NULL;
}

/* The worker that has it. */
static const struct wf_worker *worker_of(const struct wf_link *link)
{
	return WF_CONTAINER(link->engine, struct wf_worker, engine);
}

static const struct wf_server_calls *serving_of(const struct wf_link *link)
{
	return &worker_of(link)->serving;
}

static bool keeps_some(const struct wf_attachment_set *b)
{
	for (uint32_t i = 0; i < b->count; i++)
		if (b->tensors[i]->unexpected)
			return true;
	return false;
}

static void count_attachments(struct wf_tally *tally, enum wf_fault fault,
			      const struct wf_attachment_set *b)
{
	if (b->came < b->count)
		count(tally, fault, WF_STATE_ATTACHMENTS_COMING);
	else if (keeps_some(b))
		count(tally, fault, WF_STATE_ATTACHMENTS_KEPT);
}

/*
 * What goes over @link beside messages, both ways, and tensors that receives that stay have
 * claimed; who receives it is an operation.
 */
static void count_cargo(struct wf_tally *tally, enum wf_fault fault, const struct wf_link *link)
{
	const struct wf_worker *worker = worker_of(link);
	struct wf_map_node *at = NULL;

	WF_LIST_EACH(node, &worker->attachments.all) {
		const struct wf_sending *s = WF_CONTAINER(node, struct wf_sending, node);

		if (wf_link_real(s->link) == link)
			count(tally, fault, state_of_attachment(s));
	}
	while ((at = wf_map_next(&worker->attachment_sets.map, at))) {
		const struct wf_attachment_set *b =
			WF_CONTAINER(at, struct wf_attachment_set, node);

		if (b->name.link == link)
			count_attachments(tally, fault, b);
	}
	WF_LIST_EACH(node, &worker->node->ops) {
		const struct weft_op *op = WF_CONTAINER(node, struct weft_op, node);

		if (op->class->kind == WF_OP_RECV &&
		    (op->recv.receiving.attached || (!op->recv.parts && op->recv.one_of)) &&
		    op->recv.receiving.got.from && wf_link_real(op->recv.receiving.got.from) == link)
			count(tally, fault, state_of_op(op));
	}
}

/* What @node serves to @other, and how its link to it is. */
static void count_side(struct wf_tally *tally, enum wf_fault fault, unsigned node, unsigned other)
{
	struct wf_link *link = link_between(node, other);
	struct wf_map_node *at = NULL;

	if (!link)
		return;
	count(tally, fault, state_of_link(link));
	count_cargo(tally, fault, link);
	while ((at = wf_map_next(&serving_of(link)->map, at))) {
		const struct wf_server_call *s = WF_CONTAINER(at, struct wf_server_call, node);

		if (s->link == link)
			count_served(tally, fault, s);
	}
}

static bool is_between(const struct wf_leg *leg, unsigned node, unsigned other)
{
	return (leg->node == node && (leg->peer == other || other == node)) ||
	       (leg->node == other && leg->peer == node);
}

/* Gets and puts between the two nodes; of all peers of @node, if they are the same. */
static void count_accesses(struct wf_tally *tally, enum wf_fault fault, unsigned node,
			   unsigned other)
{
	unsigned access_count;
	const struct wf_onesided_access *all = wf_onesided_accesses(&access_count);

	for (const struct wf_onesided_access *a = all; a < all + access_count; a++) {
		unsigned owner = a->window->owner;

		if (wf_onesided_is_live(a) &&
		    ((a->node == node && (owner == other || other == node)) ||
		     (a->node == other && owner == node)))
			count(tally, fault, state_of_op(a->flight.op));
	}
}

/* Receives that stay and sends to them, as count_accesses(). */
static void count_staying(struct wf_tally *tally, enum wf_fault fault, unsigned node,
			  unsigned other)
{
	unsigned receive_count, send_count;
	const struct wf_staying_receive *receives = wf_staying_receives(&receive_count);
	const struct wf_staying_send *sends = wf_staying_sends(&send_count);

	for (const struct wf_staying_receive *r = receives; r < receives + receive_count; r++) {
		unsigned owner = r->channel->receiver, from = r->channel->from;

		if (wf_staying_receive_is_live(r) &&
		    ((owner == node && (from == owner || from == other || other == node)) ||
		     (owner == other && (from == owner || from == node))))
			count(tally, fault, state_of_op(r->flight.op));
	}
	for (const struct wf_staying_send *s = sends; s < sends + send_count; s++) {
		unsigned owner = s->channel->receiver;

		if (wf_staying_send_is_live(s) &&
		    ((s->node == node && (owner == other || other == node)) ||
		     (s->node == other && owner == node)))
			count(tally, fault, state_of_op(s->flight.op));
	}
}

/* Sends of broadcasts and their receives, as count_accesses(). */
static void count_casting(struct wf_tally *tally, enum wf_fault fault, unsigned node,
			  unsigned other)
{
	unsigned broadcast_count;
	const struct wf_casting_broadcast *all = wf_casting_broadcasts(&broadcast_count);

	for (; broadcast_count--; all++) {
		for (const struct wf_casting_member *m = all->members; m < all->members + all->count; m++) {
			bool sends = all->node == node && (m->node == other || other == node);

			if (!sends && !(all->node == other && m->node == node))
				continue;
			if (m->entered && all->flight.op && wf_casting_is_live(all))
				count(tally, fault,
				      state_of_op(wf_broadcast_send_to(all->flight.op, m->index)));
			for (unsigned i = 0; i < m->receive_count; i++)
				if (wf_casting_receive_is_live(&m->receives[i]))
					count(tally, fault, state_of_op(m->receives[i].flight.op));
		}
	}
}

void wf_states_count(struct wf_tally *tally, enum wf_fault fault, unsigned node, unsigned other)
{
	unsigned group_count;
	const struct wf_group *groups = wf_traffic_groups(&group_count);

	for (unsigned i = 0; i < group_count; i++) {
		for (unsigned j = 0; j < groups[i].count; j++) {
			const struct wf_leg *leg = &groups[i].legs[j];

			if (is_between(leg, node, other) && wf_leg_is_live(leg))
				count_op(tally, fault, leg);
		}
	}
	count_accesses(tally, fault, node, other);
	count_staying(tally, fault, node, other);
	count_casting(tally, fault, node, other);
	/* One and the same: it has struck the node alone, and all of its links. */
	for (unsigned i = 0; node == other && i < wf_world_population(); i++)
		if (i != node)
			count_side(tally, fault, node, i);
	if (node == other)
		return;
	count_side(tally, fault, node, other);
	count_side(tally, fault, other, node);
}

void wf_states_count_op(struct wf_tally *tally, enum wf_fault fault, const struct weft_op *op)
{
	count(tally, fault, state_of_op(op));
}

void wf_states_count_leg(struct wf_tally *tally, enum wf_fault fault, const struct wf_leg *leg)
{
	const struct weft_op *op = leg->flight.op;
	const struct wf_call *call = op && op->class->kind == WF_OP_CALL && op->call.running ?
					     &op->call.call : NULL;
	struct wf_link *link = leg->node == leg->peer ? NULL : link_between(leg->node, leg->peer);
	struct wf_map_node *at = NULL;

	count_op(tally, fault, leg);
	if (link)
		count(tally, fault, state_of_link(link));
	if (!call || !wf_world_node(leg->peer))
		return;
	link = link_between(leg->peer, leg->node);
	while (link && (at = wf_map_next(&serving_of(link)->map, at))) {
		const struct wf_server_call *s = WF_CONTAINER(at, struct wf_server_call, node);

		if (s->call != call->id || s->link != link)
			continue;
		count_served(tally, fault, s);
		if (s->request.attachment_set)
			count_attachments(tally, fault, s->request.attachment_set);
	}
}
