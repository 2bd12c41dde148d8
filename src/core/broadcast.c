/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/broadcast.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/describe.h"
#include "core/last.h"
#include "core/memory.h"
#include "core/node.h"
#include "core/op.h"
#include "core/peer.h"
#include "core/send.h"
#include "core/serve.h"
#include "core/tensor.h"
#include "rpc/broadcast.pb-c.h"
#include "rpc/reply.h"
#include "tensor/shape.h"

#define CHAIN_MAX 64 /* receivers of a chain that double its time: a piece is a 64th of the body */

/* One peer, and its place in a chain once it has joined. */
struct member {
	struct wf_broadcast *all;
	struct weft_op *send;
	struct member *source; /* member that is read; NULL: the sender, or nobody yet */
	struct member *reader; /* member that reads this one, until that has all; NULL: none */
	bool joined;
	bool is_useless;       /* another could not read it, or has no address to dial */
	bool ended;
	/* description that the receiver gave of itself: */
	uint64_t offer;
	uint8_t window[WF_ACCESS_DESCRIPTOR_BYTES];
	char address[WF_SOCKET_ADDRESS_BYTES];
};

struct wf_broadcast {
	struct wf_list node; /* in the node's broadcasts, until all members have ended */
	struct weft_op *op;
	struct member **members;
	size_t count;
	size_t running; /* members that have not ended, and one until the operation has begun */
	unsigned readers;    /* members that may read the sender at once; 0: by the count */
	struct wf_loop_task end_task;
	void *chunk;         /* shared memory, claimed until all members have ended; NULL: none */
	/* for members that are added */
	uint64_t step;
	void *key;
	size_t key_bytes;
	struct weft_tensor tensor;
	struct weft_send_options options;
};

/* Chains */

/* Returns how many members may read the sender at once. */
static size_t readers_of(const struct wf_broadcast *all)
{
	size_t readers = 1;

	if (all->readers)
		return all->readers;
	while (readers * readers * CHAIN_MAX < all->count)
		readers++;
	return readers;
}

static bool is_joined(const struct member *m)
{
	return m->joined && !m->ended;
}

/* Let @m read @source from now on; NULL: the sender, or nobody. */
static void set_source(struct member *m, struct member *source)
{
	if (m->source && m->source->reader == m)
		m->source->reader = NULL;
	m->source = source;
	if (source)
		source->reader = m;
}

/* Does @m read @source, maybe through others? */
static bool reads(const struct member *m, const struct member *source)
{
	while (m && m != source)
		m = m->source;
	return m;
}

/* Choose whom @m reads; NULL: the sender. */
static struct member *choose(const struct wf_broadcast *all, const struct member *m)
{
	size_t readers = 0;

	for (size_t i = 0; i < all->count; i++)
		readers += all->members[i] != m && is_joined(all->members[i]) &&
			   !all->members[i]->source;
	if (readers < readers_of(all))
		return NULL;
	for (size_t i = 0; i < all->count; i++) {
		struct member *source = all->members[i];

		if (is_joined(source) && !source->is_useless && !source->reader &&
		    !reads(source, m))
			return source;
	}
	return NULL;
}

/* Is the offer @id one to @m, of which @peer speaks?  Called at the peer's worker. */
static bool is_offered(const struct member *m, const struct weft_peer *peer, uint64_t id)
{
	if (m->send->peer != peer)
		return false;
	return m->joined ? m->offer == id
			 : !m->ended && m->send->send.sending.outgoing.offer.id == id;
}

/* Returns the member of @peer to which the offer @id is made; NULL: there is none. */
static struct member *find(const struct weft_node *node, const struct weft_peer *peer, uint64_t id)
{
	WF_LIST_EACH(at, &node->broadcasts.all) {
		const struct wf_broadcast *all = WF_CONTAINER(at, struct wf_broadcast, node);

		for (size_t i = 0; i < all->count; i++) {
			struct member *m = all->members[i];

			if (is_offered(m, peer, id))
				return m;
		}
	}
	return NULL;
}

/* Returns where others dial @m, which has joined; "": nowhere. */
static const char *address_of(const struct member *m)
{
	const char *given = m->send->peer->address;

	return given[0] ? given : m->address;
}

/* Keep what @m says of itself. */
static void note(struct member *m, const Weft__Broadcast__Receiver *said)
{
	if (said->failed && m->source)
		m->source->is_useless = true;
	set_source(m, NULL);
	if (m->joined)
		return;
	m->joined = true;
	m->offer = said->offer;
	memcpy(m->window, said->window.data, sizeof(m->window));
	strcpy(m->address, said->address);
	m->is_useless = !address_of(m)[0];
}

/* Can @said be of a receiver? */
static bool is_sound(const Weft__Broadcast__Receiver *said)
{
	return said->window.len == WF_ACCESS_DESCRIPTOR_BYTES &&
	       strlen(said->address) < WF_SOCKET_ADDRESS_BYTES;
}

/* The source of a member, copied while the lock is held. */
struct named {
	char address[WF_SOCKET_ADDRESS_BYTES];
	uint8_t window[WF_ACCESS_DESCRIPTOR_BYTES];
	uint32_t depth;
};

static void name(const struct member *source, struct named *named)
{
	snprintf(named->address, sizeof(named->address), "%s", address_of(source));
	memcpy(named->window, source->window, sizeof(named->window));
	for (; source; source = source->source)
		named->depth++;
}

/* Returns the peer that made @call, to *@node.  NULL: no memory. */
static const struct weft_peer *caller(const struct wf_server_call *call, struct weft_node **node)
{
	struct wf_worker *worker = wf_worker_of(call);

	*node = worker->node;
	return wf_peer_meet(worker, call->link);
}

static void handle_join(Weft__Broadcast__Broadcast_Service *service,
			const Weft__Broadcast__Receiver *said,
			Weft__Broadcast__Source_Closure closure, void *call)
{
	Weft__Broadcast__Source reply = WEFT__BROADCAST__SOURCE__INIT;
	struct weft_node *node;
	const struct weft_peer *peer = caller(call, &node);
	struct named named = { 0 };
	struct member *m;

	(void)service;
	pthread_mutex_lock(&node->lock);
	m = peer && is_sound(said) ? find(node, peer, said->offer) : NULL;
	if (m && !m->ended) {
		note(m, said);
		set_source(m, choose(m->all, m));
	}
	if (m && m->source)
		name(m->source, &named);
	pthread_mutex_unlock(&node->lock);
	if (!m) {
		wf_reply_submit(call, WEFT_NOT_FOUND, "no broadcast to this receiver", NULL);
		return;
	}
	reply.address = named.address;
	if (named.address[0]) {
		reply.window.data = named.window;
		reply.window.len = sizeof(named.window);
		reply.depth = named.depth;
	}
	closure(&reply, call);
}

static void handle_leave(Weft__Broadcast__Broadcast_Service *service,
			 const Weft__Broadcast__Receiver *said,
			 Weft__Broadcast__Readers_Closure closure, void *call)
{
	Weft__Broadcast__Readers reply = WEFT__BROADCAST__READERS__INIT;
	struct weft_node *node;
	const struct weft_peer *peer = caller(call, &node);
	const struct member *m;

	(void)service;
	pthread_mutex_lock(&node->lock);
	m = peer ? find(node, peer, said->offer) : NULL;
	reply.any = m && m->reader;
	pthread_mutex_unlock(&node->lock);
	if (m)
		closure(&reply, call);
	else
		wf_reply_submit(call, WEFT_NOT_FOUND, "no broadcast to this receiver", NULL);
}

/* Members */

static void finish(struct wf_loop_task *task)
{
	struct wf_broadcast *all = WF_CONTAINER(task, struct wf_broadcast, end_task);
	const struct weft_op *first = NULL;
	struct wf_error why = { 0 }, e;
	enum weft_executed executed = WEFT_EXECUTED_NO;
	size_t failed = 0;

	for (size_t i = 0; i < all->count; i++) {
		const struct weft_op *send = all->members[i]->send;

		executed = WF_MAX(executed, send->outcome.executed);
		if (!send->outcome.error.code)
			continue;
		if (!failed++)
			first = send;
	}
	if (first)
		wf_error_set(&e, first->outcome.error.code,
			     "%zu of %zu peers did not get it; the first, %s: %s", failed,
			     all->count, wf_peer_name(first->peer),
			     wf_reason_get(&first->outcome.error, &why)->text);
	wf_op_finish(all->op, first ? &e : NULL, WF_MIN(executed, WEFT_EXECUTED_MAYBE));
}

/* End @m, or, if that is NULL, the beginning of @all, which counts as a member that runs. */
static void leave(struct wf_broadcast *all, struct member *m)
{
	struct weft_node *node = all->op->owner;
	bool last;

	pthread_mutex_lock(&node->lock);
	if (m) {
		m->ended = true;
		set_source(m, NULL);
	}
	last = !--all->running;
	if (last)
		wf_list_remove(&all->node);
	pthread_mutex_unlock(&node->lock);
	if (!last)
		return;
	if (all->chunk)
		(void)wf_memory_give(node, all->chunk);
	all->chunk = NULL;
	all->end_task.run = finish;
	wf_loop_submit(&all->op->worker->engine.loop, &all->end_task);
}

static void member_ended(struct weft_op *op, void *arg)
{
	struct member *m = arg;

	(void)op;
	leave(m->all, m);
}

static void free_member(struct member *m)
{
	if (m->send)
		wf_op_free(m->send);
	free(m);
}

/* Free @m, whose send was not submitted. */
static void drop_member(struct member *m)
{
	struct weft_op *send = m->send;

	if (send->send.sending.chunk) /* shared memory, of which an end of the send would let go */
		(void)wf_memory_give(send->owner, send->send.sending.chunk);
	wf_op_drop(send);
	m->send = NULL;
	free_member(m);
}

/* Make the send to @peer, as a new member that is not in the list yet.  Failures are recorded. */
static int new_member(struct wf_broadcast *all, struct weft_peer *peer, struct member **member)
{
	struct weft_send_options options = all->options;
	struct member *m = calloc(1, sizeof(*m));
	struct weft_op *send;
	int err;

	if (!m)
		return wf_last_set(-ENOMEM, "no memory for a peer of a broadcast");
	m->all = all;
	options.op.size = sizeof(options.op);
	options.op.done = member_ended;
	options.op.arg = m;
	options.op.queue = NULL;
	err = wf_send_new(peer->owner, peer, all->key, all->key_bytes, &all->tensor, &options, &send);
	if (err) {
		free(m);
		return err;
	}
	send->send.sending.step = all->step;
	send->send.sending.flags |= WF_TENSOR_RELAYED;
	m->send = send;
	*member = m;
	return 0;
}

/* Have all members of @all ended, or is @all cancelled?  Under the lock. */
static bool is_over(const struct wf_broadcast *all)
{
	return !all->running || atomic_load(&all->op->cancel_asked);
}

/* Put @m into the list.  -ENOMEM, recorded.  Under the lock. */
static int enter(struct wf_broadcast *all, struct member *m)
{
	struct member **more = realloc(all->members, (all->count + 1) * sizeof(*more));

	if (!more)
		return wf_last_set(-ENOMEM, "no memory for a peer of a broadcast");
	all->members = more;
	all->members[all->count++] = m;
	all->running++;
	return 0;
}

/* Operations */

/* The sends were submitted before. */
static void start(struct weft_op *op)
{
	leave(op->broadcast.all, NULL);
}

static void stop(struct weft_op *op, const struct wf_error *e)
{
	struct weft_op *send;

	(void)e; /* the outcome is that of the sends */
	for (size_t i = 0; (send = wf_broadcast_send_to(op, i)); i++)
		wf_op_cancel(send);
}

static void free_broadcast(struct weft_op *op)
{
	struct wf_broadcast *all = op->broadcast.all;

	if (!all)
		return;
	for (size_t i = 0; i < all->count; i++)
		free_member(all->members[i]);
	if (op->owner && all->chunk)
		(void)wf_memory_give(op->owner, all->chunk);
	free(all->members);
	free(all->tensor.shape);
	free(all->key);
	free(all);
}

static uint64_t step(const struct weft_op *op)
{
	return op->broadcast.all->step;
}

static void describe(const struct weft_op *op, char *text)
{
	const struct wf_broadcast *all = op->broadcast.all;

	wf_describe_add(text, "broadcast");
	wf_describe_channel(all->step, all->key, all->key_bytes, text);
	wf_describe_add(text, " to %zu peers", all->count);
}

static void describe_wait(const struct weft_op *op, char *text, size_t bytes)
{
	(void)snprintf(text, bytes, "%zu peers do not have it yet", op->broadcast.all->running);
}

#define BYTES (offsetof(struct weft_op, broadcast) + sizeof(struct wf_op_broadcast))

const struct wf_op_class wf_broadcast_class = {
	.kind = WF_OP_BROADCAST,
	.recorded = WF_RECORDER_SEND,
	.bytes = BYTES,
	.zero_to = BYTES,
	.patient = true,
	.start = start,
	.refuse = wf_op_refuse_parts,
	.stop = stop,
	.free = free_broadcast,
	.step = step,
	.describe = describe,
	.describe_wait = describe_wait,
};

/* Making them */

/* Copy what later members need, too. */
static int copy(struct wf_broadcast *all, const void *key, size_t key_bytes,
		const struct weft_tensor *tensor)
{
	size_t shape_bytes = (size_t)tensor->ndim * sizeof(tensor->shape[0]);

	all->tensor = *tensor;
	all->tensor.strides = NULL;
	all->key_bytes = key_bytes;
	all->key = malloc(key_bytes + 1);
	all->tensor.shape = malloc(shape_bytes + 1);
	if (!all->key || !all->tensor.shape)
		return wf_last_set(-ENOMEM, "no memory for a broadcast");
	if (key_bytes)
		memcpy(all->key, key, key_bytes);
	if (shape_bytes)
		memcpy(all->tensor.shape, tensor->shape, shape_bytes);
	return 0;
}

static int check(struct weft_peer *const *peers, size_t count, const void *key, size_t key_bytes,
		 const struct weft_tensor *tensor, const struct weft_broadcast_options *o)
{
	uint64_t bytes;
	int err = WF_NEED(tensor);

	for (size_t i = 0; i < count; i++)
		if (peers[i]->owner != peers[0]->owner)
			return wf_last_set(-EINVAL, "the peers are of several nodes");
	if (o->flags & ~(unsigned)(WEFT_DEAD | WEFT_OPAQUE | WEFT_SHARE))
		return wf_last_set(-EINVAL, "flags %#x are not for a broadcast", o->flags);
	if (!err)
		err = wf_tensor_check_key(key, key_bytes);
	if (!err)
		err = o->flags & WEFT_DEAD ? wf_tensor_bytes(tensor, &bytes)
					   : wf_tensor_check(tensor, &bytes);
	if (!err && !wf_shape_contiguous(tensor))
		err = wf_last_set(-EINVAL, "a tensor to broadcast must be contiguous");
	return err;
}

static int serve(struct weft_node *node)
{
	static Weft__Broadcast__Broadcast_Service handlers =
		WEFT__BROADCAST__BROADCAST__INIT(handle_);

	return wf_serve_own(node, &handlers.base, NULL, &node->broadcasts.serves);
}

int wf_broadcast(struct weft_peer *const *peers, size_t count, uint64_t step, const void *key,
		 size_t key_bytes, const struct weft_tensor *tensor,
		 const struct weft_broadcast_options *options, struct weft_op **op)
{
	const struct weft_op_options *nested;
	struct weft_broadcast_options o;
	struct weft_node *node = peers[0]->owner;
	struct wf_broadcast *all;
	struct weft_op *fresh;
	struct member *m;
	int err = wf_check_options(options, &o, sizeof(o));

	if (!err)
		err = check(peers, count, key, key_bytes, tensor, &o);
	if (!err)
		err = serve(node);
	if (!err)
		err = wf_op_nested(&o.op, &nested);
	if (!err)
		err = wf_op_new(node, NULL, &wf_broadcast_class, nested, &fresh);
	if (err)
		return err;
	fresh->time.deadline_ns = UINT64_MAX; /* the sends have it */
	all = fresh->broadcast.all = calloc(1, sizeof(*all));
	err = all ? copy(all, key, key_bytes, tensor)
		  : wf_last_set(-ENOMEM, "no memory for a broadcast");
	if (err)
		goto drop_op;
	wf_list_init(&all->node);
	all->op = fresh;
	all->running = 1;
	all->step = step;
	all->readers = o.readers;
	all->options = (struct weft_send_options){
		.size = sizeof(all->options), .op = o.op, .flags = o.flags, .stream = o.stream,
	};
	all->options.op.provider = fresh->terms.provider; /* the caller's name may go after the call */
	/* Where memory can't be shared the first member says why. */
	if (o.flags & WEFT_SHARE && !(o.flags & WEFT_DEAD))
		(void)wf_memory_share(node, (char *)tensor->data + tensor->byte_offset, 1, &all->chunk);
	for (size_t i = 0; i < count; i++) {
		err = new_member(all, peers[i], &m);
		if (err)
			goto drop_op;
		err = enter(all, m);
		if (err) {
			drop_member(m);
			goto drop_op;
		}
	}
	pthread_mutex_lock(&node->lock);
	wf_list_append(&node->broadcasts.all, &all->node);
	pthread_mutex_unlock(&node->lock);
	for (size_t i = 0; i < count; i++)
		wf_op_submit(all->members[i]->send, fresh->time.made_ns);
	wf_op_launch(fresh, fresh->time.made_ns, op);
	return 0;

drop_op:
	while (all && all->count)
		drop_member(all->members[--all->count]);
	wf_op_drop(fresh);
	return err;
}

int wf_broadcast_add(struct weft_op *op, struct weft_peer *peer)
{
	struct wf_broadcast *all = op->broadcast.all;
	struct weft_node *node = op->owner;
	struct member *m = NULL;
	int err;

	if (peer->owner != node)
		return wf_last_set(-EINVAL, "the peer belongs to another node");
	err = new_member(all, peer, &m);
	pthread_mutex_lock(&node->lock);
	if (is_over(all)) /* shared memory may be gone, too */
		err = wf_last_set(-EALREADY, "the broadcast has ended, or is about to");
	else if (m)
		err = enter(all, m);
	/* A cancel of the broadcast may come before the start of the send, and is to wait for it. */
	if (!err)
		atomic_store(&m->send->submitted, true);
	pthread_mutex_unlock(&node->lock);
	if (!err)
		wf_op_submit(m->send, m->send->time.made_ns);
	else if (m)
		drop_member(m);
	return err;
}

struct weft_op *wf_broadcast_send_to(const struct weft_op *op, size_t index)
{
	const struct wf_broadcast *all = op->broadcast.all;
	struct weft_node *node = op->owner;
	struct weft_op *send;

	if (node)
		pthread_mutex_lock(&node->lock);
	send = index < all->count ? all->members[index]->send : NULL;
	if (node)
		pthread_mutex_unlock(&node->lock);
	return send;
}
