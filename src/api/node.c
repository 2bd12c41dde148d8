/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/fork.h"

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
		wf_worker_forked(&node->desk.worker);
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
	return wf_desk_inside(&node->desk);
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
	};
	n->manual = given.mode == WEFT_MANUAL;
	wf_op_init(n, &o);
	wf_list_init(&n->peers);
	wf_list_init(&n->services);
	err = wf_desk_init(&n->desk, n);
	if (err) {
		wf_last_set(err, "no lock for a node");
		goto free_node;
	}
	err = init_locks(n);
	if (err) {
		wf_last_set(err, "no lock for a node");
		goto fini_desk;
	}
	err = serve_all(n, given.services);
	if (err)
		goto forget_services;
	err = wf_desk_open(&n->desk, &config, &e);
	if (err) {
		wf_last_copy(&e);
		goto forget_services;
	}
	list(n);
	if (!n->manual) {
		err = wf_desk_start(&n->desk);
		if (err) {
			wf_last_set(err, "no thread for a node");
			goto close_worker;
		}
	}
	*node = n;
	return 0;

close_worker:
	unlist(n);
	wf_worker_leave(&n->desk.worker);
	wf_worker_close(&n->desk.worker);
forget_services:
	forget_services(n);
	fini_locks(n);
fini_desk:
	wf_desk_fini(&n->desk);
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

int weft_node_close(struct weft_node *node)
{
	if (!node)
		return 0;
	if (wf_node_check(node))
		return -EOWNERDEAD;
	if (wf_node_inside(node))
		return wf_last_set(-EDEADLK, "a node can't be closed inside its own callback");
	if (!node->manual)
		wf_desk_stop(&node->desk);
	node->closing = true;
	wf_desk_leave(&node->desk);
	wf_desk_fini(&node->desk);
	let_go(node);
	/* First: a child must not look at what is being freed. */
	unlist(node);
	wf_worker_close(&node->desk.worker);
	wf_op_fini(node);
	fini_locks(node);
	free(node);
	return 0;
}

const char *weft_node_address(const struct weft_node *node)
{
	return node->desk.worker.address;
}

/* Driving a manual node. */

static int check_manual(struct weft_node *node, const char *what)
{
	struct wf_desk *desk = &node->desk;
	int err = wf_node_check(node);

	if (err)
		return err;
	if (!node->manual)
		return wf_last_set(-EINVAL, "%s is for manual nodes", what);
	if (wf_node_inside(node))
		return wf_last_set(-EDEADLK, "%s inside a callback", what);
	/* Written only when it changes: others may look at it. */
	if (!pthread_equal(desk->thread, pthread_self()))
		desk->thread = pthread_self();
	return 0;
}

int weft_poll(struct weft_node *node, uint64_t timeout_ns)
{
	uint64_t now = wf_clock_now();
	int err = check_manual(node, "weft_poll");

	if (err)
		return err;
	node->desk.ended_count = 0;
	wf_desk_turn(&node->desk, timeout_ns >= UINT64_MAX - now ? UINT64_MAX : now + timeout_ns);
	err = wf_node_check(node);
	return err ? err : (int)node->desk.ended_count;
}

int weft_fd(struct weft_node *node)
{
	int err = check_manual(node, "weft_fd");

	return err ? err : wf_worker_fd(&node->desk.worker);
}

int weft_arm(struct weft_node *node, uint64_t *timeout_ns)
{
	struct wf_desk *desk = &node->desk;
	uint64_t until, now;
	int err = check_manual(node, "weft_arm");

	if (err)
		return err;
	desk->polling = true;
	wf_worker_tick(&desk->worker);
	err = wf_worker_arm(&desk->worker, &until);
	desk->polling = false;
	if (err)
		return wf_last_set(err, "there is work: call weft_poll");
	now = wf_clock_now();
	*timeout_ns = until > now ? until - now : 0;
	return 0;
}

/* Seeing. */

int weft_node_counters(struct weft_node *node, struct weft_counters *counters)
{
	struct wf_counters *c = &node->desk.worker.counters;
	struct wf_pool *pool = &node->desk.worker.pool;
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
