/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/fork.h"
#include "util/thread.h"

#define RECALL_NS (2 * WF_NS_PER_S)       /* for offers to come back: the bound of a shared rail */
#define RECALL_TURN_NS (5 * WF_NS_PER_MS)

/* Every open node of the process: for fork alone, and changed under its hold. */
static struct wf_list all = { &all, &all };

/*
 * The child has copies of descriptors that would hide the parent's death.  Once
 * closed their numbers are the child's: its own children leave them alone.
 */
static void in_child(void)
{
	struct wf_list *at;

	while ((at = wf_list_pop(&all))) {
		struct weft_node *node = WF_CONTAINER(at, struct weft_node, node);

		atomic_store(&node->forked, true);
		wf_worker_forked(&node->worker);
	}
}

static void list(struct weft_node *node)
{
	wf_fork_watch(in_child);
	wf_fork_hold();
	wf_list_append(&all, &node->node);
	wf_fork_let();
}

static void unlist(struct weft_node *node)
{
	wf_fork_hold();
	wf_list_remove(&node->node);
	wf_fork_let();
}

int wf_node_check(const struct weft_node *node)
{
	if (atomic_load(&node->forked))
		return wf_last_set(-EOWNERDEAD,
				   "this process is a forked child: the node is its parent's");
	return 0;
}

/* Are we in a callback of this node? */
bool wf_node_inside(const struct weft_node *node)
{
	return pthread_equal(node->thread, pthread_self()) && (!node->manual || node->polling);
}

/* On the worker: at once if this is its thread and it does nothing else, else by the inbox. */
void wf_node_run(struct weft_node *node, struct wf_task *task)
{
	if (!node->manual || node->polling || !pthread_equal(node->thread, pthread_self())) {
		wf_worker_submit(&node->worker, task);
		return;
	}
	wf_worker_tick(&node->worker);
	task->run(task);
	wf_worker_flush(&node->worker);
}

/* One turn of a manual node's loop, or a wait for it. */
void wf_node_turn(struct weft_node *node, uint64_t until_ns)
{
	node->polling = true;
	wf_worker_wait(&node->worker, until_ns);
	node->polling = false;
}

/* @peer stands for @link from now on: one that a user opened by its address rather than one we made. */
static void stand_for(struct wf_link *link, struct weft_peer *peer)
{
	const struct weft_peer *now = link->user;

	if (peer && (!now || (!now->address[0] && peer->address[0])))
		link->user = peer;
}

/* What the link floor tells, for the floors above it. */

static int sink_record(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct weft_node *node = ctx;

	if (wf_transfer_owns(record->type))
		return wf_transfer_record(&node->transfer, link, record);
	/* Whoever asks who sent it is not to be told that there was no memory for a name. */
	if ((record->type == WF_RECORD_TENSOR || record->type == WF_RECORD_CALL) &&
	    !wf_node_peer_of(node, link))
		return -ENOMEM;
	switch (record->type) {
	case WF_RECORD_TENSOR:
		return node->closing ? 0 : wf_channels_record(&node->channels, link, record);
	case WF_RECORD_ABORT:
		return wf_ending_record(&node->channels, link, record);
	case WF_RECORD_CALL:
		return node->closing ? 0 : wf_served_call(&node->serving, link, record);
	case WF_RECORD_REPLY:
		return wf_call_replied(&node->calls, link, record);
	case WF_RECORD_CANCEL:
		return wf_served_cancel(&node->serving, link, record);
	case WF_RECORD_ECHO:
	case WF_RECORD_ECHOED:
		return wf_echo_record(&node->echoes, link, record);
	default:
		return -EBADMSG;
	}
}

static void sink_up(void *ctx, struct wf_link *link)
{
	struct weft_node *node = ctx;
	struct weft_peer *peer = link->user;

	if (peer) {
		pthread_mutex_lock(&node->lock);
		if (!peer->name[0])
			memcpy(peer->name, link->name, sizeof(peer->name));
		pthread_mutex_unlock(&node->lock);
	}
	wf_ending_up(&node->channels, link);
	wf_transfer_up(&node->transfer, link);
}

static void sink_paused(void *ctx, struct wf_link *link)
{
	struct weft_node *node = ctx;

	wf_transfer_paused(&node->transfer, link);
}

static void sink_quiet(void *ctx, const struct wf_worker_rail *on)
{
	struct weft_node *node = ctx;

	wf_transfer_quiet(&node->transfer, on);
}

static void sink_merged(void *ctx, struct wf_link *from, struct wf_link *into)
{
	struct weft_node *node = ctx;

	stand_for(into, from->user);
	wf_channels_merged(&node->channels);
	if (into->state == WF_LINK_UP)
		sink_up(ctx, into);
}

static void sink_dying(void *ctx, struct wf_link *link, const struct wf_error *e)
{
	wf_watch_dying(ctx, link, e);
}

static void sink_down(void *ctx, struct wf_link *link, const struct wf_error *e)
{
	struct weft_node *node = ctx;

	wf_transfer_down(&node->transfer, link, e);
	wf_channels_down(&node->channels, link, e);
	wf_call_down(&node->calls, link, e);
	wf_served_down(&node->serving, link);
	wf_echo_down(&node->echoes, link, e);
}

static const struct wf_worker_sink sink = {
	.record = sink_record,
	.up = sink_up,
	.paused = sink_paused,
	.quiet = sink_quiet,
	.merged = sink_merged,
	.dying = sink_dying,
	.down = sink_down,
};

static void withdrawn(void *ctx, struct wf_link *link, uint64_t offer)
{
	struct weft_node *node = ctx;

	wf_channels_withdrawn(&node->channels, link, offer);
}

/* Opening and closing. */

static int set_text(char *to, const char *from, const char *what)
{
	if (!from)
		return 0;
	if (strlen(from) >= WF_OPTION_TEXT_BYTES)
		return wf_last_set(-EINVAL, "%s is longer than %d bytes", what,
				   WF_OPTION_TEXT_BYTES - 1);
	strcpy(to, from);
	return 0;
}

/* To a list that has room for each word that there is. */
static void add_word(char *list, const char *word)
{
	if (wf_options_lists(list, word))
		return;
	if (*list)
		strcat(list, ",");
	strcat(list, word);
}

/* The environment, and over it what the caller says. */
int wf_node_settings(const struct weft_node_options *given, struct wf_options *o)
{
	struct wf_error e;
	int err = wf_options_load(o, &e);

	if (err)
		return wf_last_copy(&e);
	err = set_text(o->listen, given->listen, "listen");
	if (!err)
		err = set_text(o->advertise, given->advertise, "advertise");
	if (!err)
		err = set_text(o->provider, given->provider, "provider");
	if (!err)
		err = set_text(o->device, given->device, "device");
	if (err)
		return err;
	if (given->security == WEFT_SECURITY_OPEN)
		strcpy(o->security, "open");
	if (given->flags & ~(uint64_t)WF_OP_FLAGS)
		return wf_last_set(-EINVAL, "flags %#llx are not for a node",
				   (unsigned long long)given->flags);
	if (given->flags & WEFT_CHECKSUM)
		o->checksum = 1;
	if (given->flags & WEFT_STRICT_NO_STAGING)
		add_word(o->strict, "no-staging");
	if (given->flags & WEFT_STRICT_NO_FALLBACK)
		add_word(o->strict, "no-fallback");
	if (given->timeout_ns)
		o->timeout_ns = given->timeout_ns;
	if (given->pool_bytes)
		o->pool_bytes = given->pool_bytes;
	return 0;
}

/*
 * The @known bytes of @options that this library knows, from a struct that may
 * be shorter or longer and begins with its size.  NULL: all zero.
 */
int wf_node_options(const void *options, void *given, size_t known)
{
	size_t size;

	memset(given, 0, known);
	if (!options)
		return 0;
	memcpy(&size, options, sizeof(size));
	if (size < sizeof(size))
		return wf_last_set(-EINVAL, "options->size is not set");
	for (size_t i = known; i < size; i++)
		if (((const unsigned char *)options)[i])
			return wf_last_set(-EINVAL,
					   "options has a field that this version does not know");
	memcpy(given, options, WF_MIN(size, known));
	return 0;
}

/* A task, and not a flag alone: only what was done ends the wait that runs. */
static void stop(struct wf_task *task)
{
	WF_CONTAINER(task, struct weft_node, stop_task)->stop = true;
}

static void *run(void *arg)
{
	struct weft_node *node = arg;
	struct wf_worker *w = &node->worker;

	/* Forked in a callback that returned: the child has nothing more to do here. */
	while (!node->stop && !w->forked)
		wf_worker_wait(w, wf_clock_now() + WF_NS_PER_S);
	return NULL;
}

static int init_locks(struct weft_node *node)
{
	pthread_condattr_t attr;
	int err;

	err = pthread_mutex_init(&node->lock, NULL);
	if (err)
		return -err;
	err = pthread_mutex_init(&node->log_lock, NULL);
	if (err)
		goto destroy_lock;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	err = pthread_cond_init(&node->ended, &attr);
	pthread_condattr_destroy(&attr);
	if (err)
		goto destroy_log_lock;
	return 0;

destroy_log_lock:
	pthread_mutex_destroy(&node->log_lock);
destroy_lock:
	pthread_mutex_destroy(&node->lock);
	return -err;
}

static void fini_locks(struct weft_node *node)
{
	pthread_cond_destroy(&node->ended);
	pthread_mutex_destroy(&node->log_lock);
	pthread_mutex_destroy(&node->lock);
}

static void forget_services(struct weft_node *node)
{
	struct wf_list *at;

	while ((at = wf_list_pop(&node->services)))
		free(WF_CONTAINER(at, struct wf_pb_service, mine));
}

/* Before the door is open: whoever calls first finds them. */
static int serve_all(struct weft_node *node, ProtobufCService *const *services)
{
	int err = 0;

	while (!err && services && *services)
		err = wf_rpc_serve(node, *services++);
	return err;
}

int weft_node_open(const struct weft_node_options *options, struct weft_node **node)
{
	struct weft_node_options given;
	struct wf_worker_config config;
	struct wf_options o;
	struct weft_node *n;
	struct wf_error e;
	char name[64], host[40] = "";
	int err;

	err = wf_node_options(options, &given, sizeof(given));
	if (!err)
		err = wf_node_settings(&given, &o);
	if (err)
		return err;
	n = calloc(1, sizeof(*n));
	if (!n)
		return wf_last_set(-ENOMEM, "no memory for a node");
	gethostname(host, sizeof(host) - 1);
	snprintf(name, sizeof(name), "%.40s.%ld", host, (long)getpid());
	config = (struct wf_worker_config){
		.options = &o,
		.log = { given.log, given.log_arg, (int)o.log_level, &n->log_lock },
		.name = given.name ? given.name : name,
		.manual = given.mode == WEFT_MANUAL,
		.sink = &sink,
		.sink_ctx = n,
	};
	n->manual = given.mode == WEFT_MANUAL;
	n->thread = pthread_self();
	wf_op_init(n, &o);
	wf_list_init(&n->peers);
	wf_list_init(&n->services);
	err = wf_transfer_init(&n->transfer, &n->worker, withdrawn, n);
	if (err) {
		wf_last_set(err, "no lock for a node");
		goto free_node;
	}
	wf_channels_init(&n->channels, &n->worker, &n->transfer);
	wf_echo_init(&n->echoes);
	wf_call_init(&n->calls, &n->transfer);
	wf_served_init(&n->serving, &n->transfer);
	err = init_locks(n);
	if (err) {
		wf_last_set(err, "no lock for a node");
		goto fini_transfer;
	}
	err = serve_all(n, given.services);
	if (err)
		goto forget_services;
	err = wf_worker_open(&n->worker, &config, &e);
	if (err) {
		wf_last_copy(&e);
		goto forget_services;
	}
	list(n);
	if (!n->manual) {
		err = wf_thread_start(&n->thread, run, n);
		if (err) {
			wf_last_set(err, "no thread for a node");
			goto close_worker;
		}
	}
	*node = n;
	return 0;

close_worker:
	unlist(n);
	wf_worker_leave(&n->worker);
	wf_worker_close(&n->worker);
forget_services:
	forget_services(n);
	fini_locks(n);
fini_transfer:
	wf_transfer_fini(&n->transfer);
free_node:
	free(n);
	return err;
}

/* What users still hold: operations forget the node; peers and services go with it. */
static void let_go(struct weft_node *node)
{
	struct wf_list *at;

	while ((at = wf_list_pop(&node->ops))) {
		struct weft_op *op = WF_CONTAINER(at, struct weft_op, node);

		op->owner = NULL;
		if (op->kind == WF_OP_RECV) {
			op->recv.receiving.chunk = NULL;
			op->recv.from = NULL;
		}
	}
	while ((at = wf_list_pop(&node->peers))) {
		struct weft_peer *peer = WF_CONTAINER(at, struct weft_peer, node);

		if (peer->link)
			wf_link_put(peer->link);
		free(peer);
	}
	forget_services(node);
}

/* What waits for memory would wait for ever: nobody gives any back. */
static void starve(struct weft_node *node)
{
	struct wf_error e;

	wf_error_set(&e, -ECANCELED, "this node has closed");
	WF_LIST_EACH(at, &node->ops)
		wf_op_starve(WF_CONTAINER(at, struct weft_op, node), &e);
}

/*
 * Peers must have stopped reading before whoever offered the bytes is told that they are
 * his again: on a shared rail closing our end of it stops nobody.
 */
static void take_offers_back(struct weft_node *node)
{
	struct wf_worker *w = &node->worker;
	uint64_t until_ns = w->now_ns + RECALL_NS;
	struct wf_error e;

	wf_error_set(&e, -ECANCELED, "this node has closed");
	while (!wf_transfer_recall(&node->transfer, &e) && w->now_ns < until_ns)
		wf_worker_wait(w, w->now_ns + RECALL_TURN_NS);
}

int weft_node_close(struct weft_node *node)
{
	if (!node)
		return 0;
	if (wf_node_check(node))
		return -EOWNERDEAD;
	if (wf_node_inside(node))
		return wf_last_set(-EDEADLK, "a node can't be closed inside its own callback");
	if (!node->manual) {
		node->stop_task.run = stop;
		wf_worker_submit(&node->worker, &node->stop_task);
		pthread_join(node->thread, NULL);
	}
	node->thread = pthread_self();
	node->polling = true;
	node->closing = true;
	wf_served_close(&node->serving);
	/* What was submitted is begun, so that it can end. */
	wf_worker_poll(&node->worker);
	wf_channels_cancel(&node->channels);
	starve(node);
	take_offers_back(node);
	wf_worker_leave(&node->worker);
	wf_channels_fini(&node->channels);
	wf_served_fini(&node->serving);
	wf_call_fini(&node->calls);
	wf_echo_fini(&node->echoes);
	wf_transfer_fini(&node->transfer);
	let_go(node);
	/* First: a child must not look at what is being freed. */
	unlist(node);
	wf_worker_close(&node->worker);
	wf_op_fini(node);
	fini_locks(node);
	free(node);
	return 0;
}

const char *weft_node_address(const struct weft_node *node)
{
	return node->worker.address;
}

/* Peers. */

static struct weft_peer *new_peer(struct weft_node *node, const char *address)
{
	struct weft_peer *peer = calloc(1, sizeof(*peer));

	if (!peer)
		return NULL;
	peer->owner = node;
	snprintf(peer->address, sizeof(peer->address), "%s", address);
	wf_list_append(&node->peers, &peer->node);
	return peer;
}

int weft_peer_open(struct weft_node *node, const char *address, struct weft_peer **peer)
{
	char host[WF_SOCKET_ADDRESS_BYTES];
	struct weft_peer *found = NULL;
	struct wf_error e;
	uint16_t port;
	int err = wf_node_check(node);

	if (err)
		return err;
	if (strlen(address) >= WF_SOCKET_ADDRESS_BYTES)
		return wf_last_set(-EINVAL, "an address of more than %d bytes",
				   WF_SOCKET_ADDRESS_BYTES - 1);
	if (wf_socket_split(address, host, sizeof(host), &port, &e))
		return wf_last_copy(&e);
	if (!port)
		return wf_last_set(-EINVAL, "\"%s\": port 0 is no address of a peer", address);
	pthread_mutex_lock(&node->lock);
	WF_LIST_EACH(at, &node->peers) {
		struct weft_peer *known = WF_CONTAINER(at, struct weft_peer, node);

		if (!strcmp(known->address, address))
			found = known;
	}
	if (!found)
		found = new_peer(node, address);
	if (found)
		found->refs++;
	pthread_mutex_unlock(&node->lock);
	if (!found)
		return wf_last_set(-ENOMEM, "no memory for a peer");
	*peer = found;
	return 0;
}

/* The object stays until the node closes: operations and links may name it. */
void weft_peer_close(struct weft_peer *peer)
{
	if (!peer || wf_node_check(peer->owner))
		return;
	pthread_mutex_lock(&peer->owner->lock);
	peer->refs--;
	pthread_mutex_unlock(&peer->owner->lock);
}

const char *weft_peer_name(const struct weft_peer *peer)
{
	const char *name;

	/* In a forked child the lock may be held for ever. */
	if (wf_node_check(peer->owner))
		return peer->address;
	pthread_mutex_lock(&peer->owner->lock);
	name = peer->name[0] ? peer->name : peer->address;
	pthread_mutex_unlock(&peer->owner->lock);
	return name;
}

int wf_node_link(struct weft_peer *peer, struct wf_link **link, struct wf_error *e)
{
	struct wf_link *real;
	int err;

	if (!peer->link) {
		err = wf_link_open(&peer->owner->worker, peer->address, &peer->link, e);
		if (err)
			return err;
	}
	real = wf_link_real(peer->link);
	stand_for(real, peer);
	*link = real;
	return 0;
}

/*
 * The peer that stands for @link, made if nobody has opened it.  NULL: no memory;
 * not any more once a tensor or call has come over it.
 */
struct weft_peer *wf_node_peer_of(struct weft_node *node, struct wf_link *link)
{
	struct weft_peer *peer;

	link = wf_link_real(link);
	if (link->user)
		return link->user;
	pthread_mutex_lock(&node->lock);
	/* Its address is not given: opening that by name is another's right. */
	peer = new_peer(node, "");
	if (peer)
		memcpy(peer->name, link->name, sizeof(peer->name));
	pthread_mutex_unlock(&node->lock);
	if (!peer)
		return NULL;
	peer->link = link;
	wf_link_get(link);
	link->user = peer;
	return peer;
}

/* Driving a manual node. */

static int check_manual(struct weft_node *node, const char *what)
{
	int err = wf_node_check(node);

	if (err)
		return err;
	if (!node->manual)
		return wf_last_set(-EINVAL, "%s is for manual nodes", what);
	if (wf_node_inside(node))
		return wf_last_set(-EDEADLK, "%s inside a callback", what);
	/* Written only when it changes: others may look at it. */
	if (!pthread_equal(node->thread, pthread_self()))
		node->thread = pthread_self();
	return 0;
}

int weft_poll(struct weft_node *node, uint64_t timeout_ns)
{
	uint64_t now = wf_clock_now();
	int err = check_manual(node, "weft_poll");

	if (err)
		return err;
	node->ended_count = 0;
	wf_node_turn(node, timeout_ns >= UINT64_MAX - now ? UINT64_MAX : now + timeout_ns);
	err = wf_node_check(node);
	return err ? err : (int)node->ended_count;
}

int weft_fd(struct weft_node *node)
{
	int err = check_manual(node, "weft_fd");

	return err ? err : wf_worker_fd(&node->worker);
}

int weft_arm(struct weft_node *node, uint64_t *timeout_ns)
{
	uint64_t until, now;
	int err = check_manual(node, "weft_arm");

	if (err)
		return err;
	node->polling = true;
	wf_worker_tick(&node->worker);
	err = wf_worker_arm(&node->worker, &until);
	node->polling = false;
	if (err)
		return wf_last_set(err, "there is work: call weft_poll");
	now = wf_clock_now();
	*timeout_ns = until > now ? until - now : 0;
	return 0;
}

/* Seeing. */

int weft_node_counters(struct weft_node *node, struct weft_counters *counters)
{
	struct wf_counters *c = &node->worker.counters;
	struct wf_pool *pool = &node->worker.pool;
	struct weft_counters all_of = { .size = counters->size };
	int err = wf_node_check(node);

	if (err)
		return err;
	if (counters->size < sizeof(counters->size))
		return wf_last_set(-EINVAL, "counters->size is not set");
	all_of.frames_sent = atomic_load(&c->frames_sent);
	all_of.frames_received = atomic_load(&c->frames_received);
	all_of.frames_replayed = atomic_load(&c->frames_replayed);
	all_of.frames_refused = atomic_load(&c->frames_refused);
	all_of.bytes_eager = atomic_load(&c->bytes_eager);
	all_of.bytes_pulled = atomic_load(&c->bytes_pulled);
	all_of.peers_lost = atomic_load(&c->peers_lost);
	all_of.links_resumed = atomic_load(&c->links_resumed);
	all_of.registered_bytes = atomic_load(&c->registered_bytes);
	all_of.late_dropped = atomic_load(&c->late_dropped);
	all_of.bytes_viewed = atomic_load(&c->bytes_viewed);
	pthread_mutex_lock(&pool->lock);
	all_of.pool_bytes = pool->slab_bytes;
	all_of.pool_bytes_used = pool->used_bytes;
	all_of.pool_waits = pool->wait_count;
	pthread_mutex_unlock(&pool->lock);
	memcpy(counters, &all_of, WF_MIN(counters->size, sizeof(all_of)));
	return 0;
}
