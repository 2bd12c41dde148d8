/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/health.h"
#include "core/intercept.h"
#include "core/last.h"
#include "core/near.h"
#include "core/node_window.h"
#include "core/op.h"
#include "core/peer.h"
#include "core/proof.h"
#include "core/registration.h"
#include "core/serve.h"
#include "core/streaming.h"
#include "core/worker.h"
#include "memory/monitor.h"
#include "util/clock.h"
#include "util/fork.h"
#include "util/thread.h"

#define UNKNOWN_BYTES 500 /* names in one line of the log */
#define RECALL_NS (2 * WF_NS_PER_S) /* time for offers to come back: the bound of a shared rail */

/* All open nodes of the process, for fork alone; changed under wf_fork_hold. */
static struct wf_list all = { &all, &all };

/*
 * A child closes its copies of descriptors, which would hide the parent's death.  The
 * list is emptied, as closed numbers may be reused: a grandchild must not close them.
 */
static void in_child(void)
{
	struct wf_list *at;

	wf_monitor_forked();
	while ((at = wf_list_pop(&all))) {
		struct weft_node *node = WF_CONTAINER(at, struct weft_node, node);

		atomic_store(&node->forked, true);
		WF_LIST_EACH(queue, &node->queues.all)
			atomic_store(&WF_CONTAINER(queue, struct weft_queue, node)->forked, true);
		for (unsigned i = 0; i < node->worker_count; i++)
			wf_engine_forked(&node->workers[i].engine);
	}
}

static void list(struct weft_node *node)
{
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

/* Add @word to @list, which has room for all words that there are. */
static void add_word(char *list, const char *word)
{
	if (wf_options_lists(list, word))
		return;
	if (*list)
		strcat(list, ",");
	strcat(list, word);
}

/* Names of enum weft_security in the environment; the empty one leaves the choice to weft. */
static const char *const securities[] = {
	[WEFT_SECURITY_NONE] = "",
	[WEFT_SECURITY_OPEN] = "open",
	[WEFT_SECURITY_KEYED] = "keyed",
	[WEFT_SECURITY_SEALED] = "sealed",
};

enum weft_security wf_node_security(const struct weft_node *node)
{
	const struct wf_options *o = &node->workers[0].engine.options;
	unsigned i = WEFT_SECURITY_SEALED;

	while (i > WEFT_SECURITY_NONE && strcmp(o->security, securities[i]))
		i--;
	return (enum weft_security)i;
}

int wf_node_settings(const struct weft_node_options *given, struct wf_options *o)
{
	struct wf_error e;
	int err = wf_options_load(o, given->settings, &e);

	if (err)
		return wf_last_copy(&e);
	err = set_text(o->listen, given->listen, "listen");
	if (!err)
		err = set_text(o->advertise, given->advertise, "advertise");
	if (!err)
		err = set_text(o->provider, given->provider, "provider");
	if (!err)
		err = set_text(o->device, given->device, "device");
	if (!err)
		err = set_text(o->rules, given->rules, "rules");
	if (!err)
		err = wf_near_check(o);
	if (err)
		return err;
	if (given->name && strlen(given->name) >= WF_GREET_NAME_BYTES)
		return wf_last_set(-EINVAL, "name has %zu bytes: at most %d", strlen(given->name),
				   WF_GREET_NAME_BYTES - 1);
	if (given->provider)
		wf_options_overrule(o, "WEFT_PROVIDER");
	if (given->device)
		wf_options_overrule(o, "WEFT_DEVICE");
	if ((unsigned)given->security >= WF_COUNT(securities))
		return wf_last_set(-EINVAL, "there is no security number %d", given->security);
	if (given->security != WEFT_SECURITY_NONE)
		strcpy(o->security, securities[given->security]);
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
	if (given->workers > WF_WORKERS_MAX)
		return wf_last_set(-EINVAL, "%u workers: at most %d", given->workers,
				   WF_WORKERS_MAX);
	if (given->workers)
		o->workers = given->workers;
	return 0;
}

static int init_locks(struct weft_node *node)
{
	int err = -pthread_mutex_init(&node->lock, NULL);

	if (err)
		return err;
	err = -pthread_mutex_init(&node->log_lock, NULL);
	if (err)
		goto destroy_lock;
	err = -pthread_mutex_init(&node->served.own_lock, NULL);
	if (err)
		goto destroy_log_lock;
	err = wf_limits_init(&node->services.limits);
	if (err)
		goto destroy_own_lock;
	err = wf_window_table_init(&node->window_table);
	if (err)
		goto fini_limits;
	err = wf_thread_cond_init(&node->ended);
	if (err)
		goto fini_windows;
	return 0;

fini_windows:
	wf_window_table_fini(&node->window_table);
fini_limits:
	wf_limits_fini(&node->services.limits);
destroy_own_lock:
	pthread_mutex_destroy(&node->served.own_lock);
destroy_log_lock:
	pthread_mutex_destroy(&node->log_lock);
destroy_lock:
	pthread_mutex_destroy(&node->lock);
	return err;
}

static void fini_locks(struct weft_node *node)
{
	pthread_cond_destroy(&node->ended);
	wf_window_table_fini(&node->window_table);
	wf_limits_fini(&node->services.limits);
	pthread_mutex_destroy(&node->served.own_lock);
	pthread_mutex_destroy(&node->log_lock);
	pthread_mutex_destroy(&node->lock);
}

static void forget_services(struct weft_node *node)
{
	struct wf_list *at;

	while ((at = wf_list_pop(&node->served.all)))
		wf_serve_forget(WF_CONTAINER(at, struct wf_service_pb, mine));
	free(node->reflection);
	node->reflection = NULL;
	wf_publish_forget(node, NULL);
	wf_health_close(node->health);
	node->health = NULL;
}

/* Services are added before the door opens, so that the first caller finds them. */
static int serve_all(struct weft_node *node, ProtobufCService *const *services)
{
	const struct weft_serve_options none = { 0 };
	int err = 0;

	while (!err && services && *services)
		err = wf_serve_add(node, *services++, &none);
	return err;
}

/* Close the first @count workers; the first one's door closes last. */
static void close_workers(struct weft_node *node, unsigned count)
{
	while (count--) {
		wf_engine_leave(&node->workers[count].engine);
		wf_worker_fini(&node->workers[count]);
		wf_engine_close(&node->workers[count].engine);
	}
}

/* Open worker @number; the door of the first one listens for all. */
static int open_worker(struct weft_node *node, unsigned number, struct wf_engine_config *config)
{
	struct wf_worker *worker = &node->workers[number];
	struct wf_error e;
	int err = wf_worker_init(worker, node);

	if (err)
		return wf_last_set(err, "no lock for a node");
	config->first = number ? &node->workers[0].engine : NULL;
	err = wf_worker_open(worker, config, &e);
	if (!err)
		return 0;
	wf_worker_fini(worker);
	return wf_last_copy(&e);
}

/* Open all workers, which share the node's credentials, and the rights of its peers. */
static int open_workers(struct weft_node *node, struct wf_engine_config *config)
{
	int err = wf_proof_open(&node->proof, config->options);

	if (err)
		return err;
	config->credentials = node->proof.credentials;
	config->acl = node->proof.acl;
	for (unsigned i = 0; i < node->worker_count && !err; i++) {
		err = open_worker(node, i, config);
		if (err)
			close_workers(node, i);
	}
	if (err)
		wf_proof_close(&node->proof);
	else
		wf_proof_watch(node);
	return err;
}

static void stop_workers(struct weft_node *node, unsigned count)
{
	while (count--)
		wf_worker_stop(&node->workers[count]);
}

/* Start the threads of the workers: of *@count, which is all unless one can't be started. */
static int start_workers(struct weft_node *node, unsigned *count)
{
	int err = 0;

	for (*count = 0; *count < node->worker_count && !err; *count += !err)
		err = wf_worker_start(&node->workers[*count]);
	return err;
}

/* A misspelt setting is not seen at all otherwise. */
static void name_unknown(const struct weft_node *node)
{
	char names[UNKNOWN_BYTES];

	if (wf_options_unknown(names, sizeof(names)))
		wf_log(&node->workers[0].engine.log, WF_LOG_WARN,
		       "the environment has what is no setting of weft: %s; weft_options(7) lists them",
		       names);
}

static const struct wf_op_class *const op_classes[WF_OP_KINDS] = {
	[WF_OP_PING] = &wf_ping_class,
	[WF_OP_SEND] = &wf_send_class,
	[WF_OP_RECV] = &wf_recv_class,
	[WF_OP_CALL] = &wf_rpc_class,
	[WF_OP_WRITE] = &wf_streaming_write_class,
	[WF_OP_READ] = &wf_streaming_read_class,
	[WF_OP_GET] = &wf_rma_get_class,
	[WF_OP_PUT] = &wf_rma_put_class,
	[WF_OP_NOTE] = &wf_note_class,
	[WF_OP_RECV_MANY] = &wf_recv_many_class,
	[WF_OP_BROADCAST] = &wf_broadcast_class,
	[WF_OP_RECV_SET] = &wf_recv_set_class,
	[WF_OP_LANDED] = &wf_landing_next_class,
	[WF_OP_PUSH] = &wf_push_class,
	[WF_OP_COMPOSITE] = &wf_composite_class,
};

static void end(struct weft_node *node, unsigned threads);

int wf_node_open(const struct weft_node_options *given, const struct wf_options *options,
		 unsigned workers, struct weft_node **node)
{
	struct weft_node *n = calloc(1, sizeof(*n) + workers * sizeof(n->workers[0]));
	struct wf_engine_config config;
	struct wf_options shares = *options;
	void (*log)(void *arg, int level, const char *line) = given->log;
	char name[64], host[40] = "";
	unsigned threads;
	int err;

	if (!log && options->log_stderr)
		log = wf_log_print;
	if (!n)
		return wf_last_set(-ENOMEM, "no memory for a node");
	/* A child may be forked before this node is listed. */
	wf_fork_watch(in_child);
	gethostname(host, sizeof(host) - 1);
	snprintf(name, sizeof(name), "%.40s.%ld", host, (long)getpid());
	shares.pool_bytes /= workers; /* the workers share the budgets of the pool and the cache */
	shares.cached_bytes /= workers;
	config = (struct wf_engine_config){
		.options = &shares,
		.log = { log, given->log_arg, (int)options->log_level, &n->log_lock },
		.name = given->name ? given->name : name,
		.manual = given->mode == WEFT_MANUAL,
		.directory = &n->directory,
	};
	n->manual = given->mode == WEFT_MANUAL;
	n->worker_count = workers;
	wf_op_init(n, options, op_classes);
	wf_list_init(&n->waits);
	wf_list_init(&n->queues.all);
	wf_list_init(&n->peers);
	wf_list_init(&n->streams);
	wf_list_init(&n->windows);
	wf_list_init(&n->published.names);
	wf_list_init(&n->broadcasts.all);
	wf_list_init(&n->landings.all);
	wf_list_init(&n->remotes);
	wf_list_init(&n->regions);
	wf_list_init(&n->served.all);
	wf_list_init(&n->near.all);
	err = wf_directory_init(&n->directory);
	if (err) {
		wf_last_set(err, "no lock for a node");
		goto free_node;
	}
	err = init_locks(n);
	if (err) {
		wf_last_set(err, "no lock for a node");
		goto fini_directory;
	}
	err = wf_intercept_open(n, given->interceptors);
	if (!err)
		err = serve_all(n, given->services);
	if (err)
		goto forget_services;
	err = open_workers(n, &config);
	if (err)
		goto forget_services;
	list(n);
	name_unknown(n);
	err = n->manual ? 0 : start_workers(n, &threads);
	if (err) {
		/* Workers that run may have met peers, and handlers may have begun operations. */
		end(n, threads);
		return wf_last_set(err, "no thread for a node");
	}
	*node = n;
	return 0;

forget_services:
	forget_services(n);
	free(n->interceptors);
	fini_locks(n);
fini_directory:
	wf_directory_fini(&n->directory);
free_node:
	free(n);
	return err;
}

/* Free all peers, to which links refer no more: these are freed after them. */
static void free_peers(struct weft_node *node)
{
	struct wf_list *at;

	for (unsigned i = 0; i < node->worker_count; i++)
		WF_LIST_EACH(of, &node->workers[i].engine.link_list)
			WF_CONTAINER(of, struct wf_link, node)->user = NULL;
	while ((at = wf_list_pop(&node->peers)))
		wf_peer_free(WF_CONTAINER(at, struct weft_peer, node));
}

/* Operations that users still hold forget the node; peers and services go with it. */
static void let_go(struct weft_node *node)
{
	struct wf_list *at;

	wf_op_free_spares(node);
	while ((at = wf_list_pop(&node->ops))) {
		struct weft_op *op = WF_CONTAINER(at, struct weft_op, node);

		op->owner = NULL;
		if (op->class->let_go)
			op->class->let_go(op);
	}
	wf_completion_queue_parted(node);
	while ((at = wf_list_pop(&node->streams)))
		wf_streaming_let_go(WF_CONTAINER(at, struct weft_stream, node));
	while ((at = wf_list_pop(&node->remotes)))
		wf_rma_free(WF_CONTAINER(at, struct weft_remote, node));
	while ((at = wf_list_pop(&node->windows)))
		wf_node_window_free(WF_CONTAINER(at, struct weft_window, node));
	wf_landing_forget(node);
	free_peers(node);
	forget_services(node);
}

/*
 * Peers must have stopped reading before the owner of offered bytes is told that they are
 * free: on a shared rail, closing our end does not stop a peer.
 */
static void take_offers_back(struct weft_node *node)
{
	uint64_t until_ns = node->workers[0].engine.loop.now_ns + RECALL_NS;

	for (;;) {
		bool back = true;

		for (unsigned i = 0; i < node->worker_count; i++)
			back &= wf_worker_recall(&node->workers[i]);
		if (back || node->workers[0].engine.loop.now_ns >= until_ns)
			return;
		for (unsigned i = 0; i < node->worker_count; i++)
			wf_worker_live_on(&node->workers[i]);
	}
}

/* Run tasks that one worker has given another since that one left. */
static void drain(struct weft_node *node)
{
	bool any;

	do {
		any = false;
		for (unsigned i = 0; i < node->worker_count; i++)
			any |= wf_loop_drain(&node->workers[i].engine.loop);
	} while (any);
}

/* End and free @node, of which the first @threads workers have threads. */
static void end(struct weft_node *node, unsigned threads)
{
	wf_completion_queue_leave(node);
	stop_workers(node, threads);
	node->closing = true;
	wf_completion_queue_node_closes(node);
	for (unsigned i = 0; i < node->worker_count; i++)
		wf_worker_end(&node->workers[i]);
	take_offers_back(node);
	for (unsigned i = 0; i < node->worker_count; i++)
		wf_stage_settle(&node->workers[i].transfer);
	for (unsigned i = 0; i < node->worker_count; i++)
		wf_engine_leave(&node->workers[i].engine);
	drain(node);
	/* Attachments of calls that nobody has answered end with those, and are told. */
	for (unsigned i = 0; i < node->worker_count; i++)
		wf_server_call_end_all(&node->workers[i].serving);
	drain(node);
	/* A thread that frees an operation needs its worker, and may leave that a task. */
	wf_completion_queue_part(node);
	drain(node);
	for (unsigned i = 0; i < node->worker_count; i++)
		wf_worker_fini(&node->workers[i]);
	let_go(node);
	/* Unlisted first, so that a child does not look at a node that is being freed. */
	unlist(node);
	/* The worker whose door listens closes last. */
	for (unsigned i = node->worker_count; i--;)
		wf_engine_close(&node->workers[i].engine);
	wf_proof_close(&node->proof);
	wf_op_fini(node);
	wf_near_fini(node);
	wf_registration_fini(node);
	free(node->interceptors);
	fini_locks(node);
	wf_directory_fini(&node->directory);
	free(node);
}

void wf_node_close(struct weft_node *node)
{
	end(node, node->manual ? 0 : node->worker_count);
}

/* Counters. */

static void add_counters(struct weft_counters *sum, struct wf_engine *engine)
{
	struct wf_counters *c = &engine->counters;
	struct wf_pool *pool = &engine->pool;

	sum->frames_sent += atomic_load(&c->frames_sent);
	sum->frames_received += atomic_load(&c->frames_received);
	sum->frames_replayed += atomic_load(&c->frames_replayed);
	sum->frames_refused += atomic_load(&c->frames_refused);
	sum->bytes_eager += atomic_load(&c->bytes_eager);
	sum->bytes_pulled += atomic_load(&c->bytes_pulled);
	sum->peers_lost += atomic_load(&c->peers_lost);
	sum->links_resumed += atomic_load(&c->links_resumed);
	sum->registered_bytes += atomic_load(&c->registered_bytes);
	sum->late_dropped += atomic_load(&c->late_dropped);
	sum->aborts_ignored += atomic_load(&c->aborts_ignored);
	sum->rights_refused += atomic_load(&c->rights_refused);
	sum->links_rekeyed += atomic_load(&c->links_rekeyed);
	sum->bytes_viewed += atomic_load(&c->bytes_viewed);
	sum->registrations += atomic_load(&c->registrations);
	sum->registration_hits += atomic_load(&c->registration_hits);
	sum->registration_evictions += atomic_load(&c->registration_evictions);
	sum->calls += atomic_load(&c->calls);
	sum->served += atomic_load(&c->served);
	sum->message_bytes += atomic_load(&c->message_bytes);
	sum->unpack_failures += atomic_load(&c->unpack_failures);
	sum->calls_waiting += atomic_load(&c->calls_waiting);
	sum->calls_refused += atomic_load(&c->calls_refused);
	sum->calls_repeated += atomic_load(&c->calls_repeated);
	sum->served_repeated += atomic_load(&c->served_repeated);
	sum->kept_bytes += atomic_load(&c->kept_bytes);
	sum->records_refused += atomic_load(&c->records_refused);
	sum->registered_user += atomic_load(&c->registered[WF_COUNTERS_USER]);
	sum->registered_pool += atomic_load(&c->registered[WF_COUNTERS_POOL]);
	sum->registered_device += atomic_load(&c->registered[WF_COUNTERS_DEVICE]);
	sum->registered_cached += atomic_load(&c->registered[WF_COUNTERS_CACHED]);
	sum->pinned_bytes += atomic_load(&pool->pinned_bytes);
	for (int status = WEFT_OK; status <= WEFT_UNAUTHENTICATED; status++) {
		sum->calls_ended[status] += atomic_load(&c->calls_ended[status]);
		sum->served_ended[status] += atomic_load(&c->served_ended[status]);
	}
	pthread_mutex_lock(&pool->lock);
	sum->pool_bytes += pool->slab_bytes;
	sum->pool_bytes_used += pool->used_bytes;
	sum->pool_waits += pool->wait_count;
	pthread_mutex_unlock(&pool->lock);
}

void wf_node_counters(struct weft_node *node, struct weft_counters *counters)
{
	struct weft_counters sum = { 0 };

	for (unsigned i = 0; i < node->worker_count; i++)
		add_counters(&sum, &node->workers[i].engine);
	sum.size = counters->size;
	memcpy(counters, &sum, WF_MIN(counters->size, sizeof(sum)));
}
