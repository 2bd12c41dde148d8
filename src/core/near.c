/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory near to the devices that will use it: the orchestrator chooses it, the pools of
 * all workers look after it as after their own, and it is registered before a user gets it.
 *
 * Users hold shares in the first worker's pool, which is asked for shares first.  With the
 * last share the memory leaves that pool, then all other pools, and then goes back to its
 * publisher.
 *
 * Memory that the processor does not reach is in no pool, for neither a rail nor another
 * process could use it.  Users of such memory are counted here.
 */
#include "core/near.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/last.h"
#include "core/memory.h"
#include "core/node.h"
#include "core/turn.h"
#include "core/worker.h"
#include "fabric/mr.h"
#include "memory/orchestrator.h"
#include "util/clock.h"

struct near;

/* Near memory as a guest of one worker's pool. */
struct part {
	struct wf_pool_guest guest;
	struct near *near;
	struct wf_worker *worker;
	bool here; /* the guest has not left the pool */
};

struct near {
	struct wf_list node; /* in owner->near.all */
	struct weft_node *owner;
	struct wf_publisher *publisher;
	struct wf_publisher_piece piece;
	atomic_uint holds;   /* parts that are here, visits, and the maker; apart: users */
	bool apart;          /* the memory is in no pool */
	struct weft_placement placement;
	struct part parts[];
};

int wf_near_check(const struct wf_options *options)
{
	struct wf_rules rules;
	struct wf_error e;
	int err = wf_rules_open(&rules, options->rules, &e);

	if (err)
		return wf_last_copy(&e);
	wf_rules_close(&rules);
	return 0;
}

/* The orchestrator is opened at first use, as that reads hundreds of small files. */
static int orchestrator_of(struct weft_node *node, struct wf_orchestrator **o)
{
	const struct wf_options *options = &node->workers[0].engine.options;
	struct wf_orchestrator *fresh;
	struct wf_error e;
	int err;

	pthread_mutex_lock(&node->lock);
	*o = node->near.orchestrator;
	pthread_mutex_unlock(&node->lock);
	if (*o)
		return 0;
	fresh = malloc(sizeof(*fresh));
	if (!fresh)
		return wf_last_set(-ENOMEM, "no memory for an orchestrator");
	err = wf_orchestrator_open(fresh, options->sysfs, options->rules, options->cuda, &e);
	if (err) {
		free(fresh);
		return wf_last_copy(&e);
	}
	pthread_mutex_lock(&node->lock);
	*o = node->near.orchestrator;
	if (!*o)
		*o = node->near.orchestrator = fresh;
	pthread_mutex_unlock(&node->lock);
	if (*o != fresh) { /* another thread was faster */
		wf_orchestrator_close(fresh);
		free(fresh);
	}
	return 0;
}

/* Life of near memory. */

static void put(struct near *near)
{
	struct weft_node *node = near->owner;

	if (atomic_fetch_sub(&near->holds, 1) > 1)
		return;
	pthread_mutex_lock(&node->lock);
	wf_list_remove(&near->node);
	pthread_mutex_unlock(&node->lock);
	wf_orchestrator_give(node->near.orchestrator, near->publisher, &near->piece);
	free(near);
}

void wf_near_fini(struct weft_node *node)
{
	struct wf_list *at;

	/* Only memory that is in no pool is left. */
	while ((at = wf_list_first(&node->near.all))) {
		struct near *near = WF_CONTAINER(at, struct near, node);

		atomic_store(&near->holds, 1);
		put(near);
	}
	if (!node->near.orchestrator)
		return;
	wf_orchestrator_close(node->near.orchestrator);
	free(node->near.orchestrator);
}

/* Find near memory that begins at @memory and is in no pool, or NULL.  Under the lock. */
static struct near *find_apart(const struct weft_node *node, const void *memory)
{
	WF_LIST_EACH(at, &node->near.all) {
		struct near *near = WF_CONTAINER(at, struct near, node);

		if (near->apart && near->piece.base == memory)
			return near;
	}
	return NULL;
}

int wf_near_share(struct weft_node *node, const void *memory)
{
	struct near *near;

	pthread_mutex_lock(&node->lock);
	near = find_apart(node, memory);
	if (near)
		atomic_fetch_add(&near->holds, 1);
	pthread_mutex_unlock(&node->lock);
	return near ? 0 : -EINVAL;
}

int wf_near_give(struct weft_node *node, const void *memory)
{
	struct near *near;

	pthread_mutex_lock(&node->lock);
	near = find_apart(node, memory);
	pthread_mutex_unlock(&node->lock);
	if (!near)
		return -EINVAL;
	put(near);
	return 0;
}

/* A pool has lost its guest.  Threads: owner of the pool. */
static void left(struct wf_pool_guest *guest)
{
	struct part *part = WF_CONTAINER(guest, struct part, guest);
	struct near *near = part->near;
	unsigned others = part == near->parts ? near->owner->worker_count : 0;

	part->here = false;
	for (unsigned i = 1; i < others; i++) {
		struct part *other = &near->parts[i];

		/* In a closing node the first pool ends last. */
		if (!other->here)
			continue;
		(void)wf_pool_give(&other->worker->engine.pool, near->piece.base);
		wf_loop_wake(&other->worker->engine.loop);
	}
	put(near);
}

static void forked(struct wf_pool_guest *guest)
{
	struct part *part = WF_CONTAINER(guest, struct part, guest);

	if (part == part->near->parts)
		part->near->publisher->how->forked(&part->near->piece);
}

/* Admit @near to the pools of all workers.  -ENOMEM: to none. */
static int admit(struct near *near)
{
	struct weft_node *node = near->owner;
	unsigned i = node->worker_count;

	/* The first pool comes last: memory that is in it can be shared and freed. */
	while (i--) {
		struct part *part = &near->parts[i];

		*part = (struct part){ { left, forked }, near, &node->workers[i], true };
		atomic_fetch_add(&near->holds, 1);
		if (!wf_pool_admit(&part->worker->engine.pool, near->piece.base, near->piece.bytes,
				   &near->piece.file, &part->guest))
			continue;
		part->here = false;
		put(near);
		while (++i < node->worker_count)
			(void)wf_pool_give(&near->parts[i].worker->engine.pool, near->piece.base);
		return -ENOMEM;
	}
	return 0;
}

/* Visits: each worker does something that the caller waits for. */

struct visits;

struct visit {
	struct wf_loop_task task;
	struct visits *all;
	struct wf_worker *worker;
	bool done;
	struct wf_error e; /* code 0: the visit went well */
};

struct visits {
	struct weft_node *node;
	struct near *near; /* memory to be registered; NULL: guests are to leave */
	atomic_uint refs;
	struct visit each[];
};

static void leave(struct visits *v)
{
	if (atomic_fetch_sub(&v->refs, 1) > 1)
		return;
	if (v->near)
		put(v->near);
	free(v);
}

/*
 * Register @piece with @rail.  If registration is cheap and each operation makes a key of its
 * own, a key is made and closed.  If registration is dear, it is for peers to read, as most
 * users need it.
 */
static int try_rail(struct wf_engine *engine, struct wf_rail *rail,
		    const struct wf_publisher_piece *piece, struct wf_error *e)
{
	const struct wf_rail_caps *caps = wf_rail_caps(rail);
	struct wf_region *region;
	struct wf_mr *mr;

	if (caps->memory.reg_cheap && !caps->memory.local)
		return wf_mr_try(rail, piece->base, piece->bytes, e);
	region = caps->memory.reg_cheap ? wf_pool_region(&engine->pool, piece->base, piece->bytes)
				 : wf_pool_shown(&engine->pool, piece->base, piece->bytes);
	if (!region)
		return wf_error_set(e, -ENOMEM, "no memory to register with %s", caps->provider);
	return wf_region_mr(region, rail, &mr, e);
}

static void run_visit(struct wf_loop_task *task)
{
	struct visit *visit = WF_CONTAINER(task, struct visit, task);
	struct wf_engine *engine = &visit->worker->engine;
	struct near *near = visit->all->near;
	/* The memory may have been given up before this worker had time for it. */
	bool here = near && near->parts[visit - visit->all->each].here;
	int err = 0;

	if (!near)
		wf_pool_dismiss(&engine->pool);
	for (uint32_t i = 0; here && !err && i < engine->rail_count; i++)
		err = try_rail(engine, engine->rails[i].rail, &near->piece, &visit->e);
	pthread_mutex_lock(&visit->worker->node->lock);
	visit->done = true;
	pthread_cond_broadcast(&visit->worker->node->ended);
	pthread_mutex_unlock(&visit->worker->node->lock);
	leave(visit->all);
}

static bool all_done(const struct visits *v)
{
	for (unsigned i = 0; i < v->node->worker_count; i++)
		if (!v->each[i].done)
			return false;
	return true;
}

/* Wait for all visits.  Returns the first error of any. */
static int await(struct visits *v, struct wf_error *e)
{
	struct weft_node *node = v->node;
	struct timespec at = wf_clock_timespec(
		wf_clock_after(wf_clock_now(), node->workers[0].engine.options.timeout_ns));
	int err = 0, rc = 0;

	pthread_mutex_lock(&node->lock);
	while (!all_done(v) && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&node->ended, &node->lock, &at);
	for (unsigned i = 0; !err && i < node->worker_count; i++) {
		if (!v->each[i].done)
			err = wf_error_set(e, -ETIMEDOUT, "the node's thread does not answer");
		else if (v->each[i].e.code)
			err = wf_error_set(e, v->each[i].e.code, "%s", v->each[i].e.text);
	}
	pthread_mutex_unlock(&node->lock);
	return err;
}

/* Register @near with all rails; NULL: let guests without a share leave. */
static int visit_all(struct weft_node *node, struct near *near, struct wf_error *e)
{
	struct visits *v = calloc(1, sizeof(*v) + node->worker_count * sizeof(v->each[0]));
	uint64_t now_ns = wf_clock_now();
	int err;

	if (!v)
		return wf_error_set(e, -ENOMEM, "no memory to ask the node's threads");
	v->node = node;
	v->near = near;
	if (near)
		atomic_fetch_add(&near->holds, 1);
	atomic_store(&v->refs, node->worker_count + 1);
	for (unsigned i = 0; i < node->worker_count; i++) {
		v->each[i].task.run = run_visit;
		v->each[i].all = v;
		v->each[i].worker = &node->workers[i];
		wf_turn_run(v->each[i].worker, &v->each[i].task, now_ns);
	}
	err = await(v, e);
	leave(v);
	return err;
}

/* Requests. */

static int add_client(struct wf_orchestrator_request *request,
		      const struct wf_topology_place *place)
{
	for (unsigned i = 0; i < request->client_count; i++)
		if (request->clients[i].device == place->device &&
		    request->clients[i].node == place->node)
			return 0;
	if (request->client_count == WF_REQUEST_CLIENTS_MAX)
		return wf_last_set(-EINVAL, "more than %d clients", WF_REQUEST_CLIENTS_MAX);
	request->clients[request->client_count++] = *place;
	return 0;
}

/* Add the NICs of this node's rails as clients, or without any this thread's NUMA node. */
static int add_own(struct wf_orchestrator_request *request, const struct weft_node *node,
		   const struct wf_topology *t)
{
	const struct wf_engine *engine = &node->workers[0].engine;
	struct wf_topology_place place;
	int err = 0;

	for (uint32_t i = 0; !err && i < engine->rail_count; i++) {
		const struct wf_rail_caps *caps = wf_rail_caps(engine->rails[i].rail);

		if (!wf_topology_find(t, caps->pci, &place) ||
		    !wf_topology_find(t, caps->domain, &place))
			err = add_client(request, &place);
	}
	if (err || request->client_count)
		return err;
	return add_client(request, &(struct wf_topology_place){ NULL, wf_topology_here(t) });
}

static int make_request(struct weft_node *node, const struct wf_orchestrator *o, size_t bytes,
			const struct weft_near_options *options,
			struct wf_orchestrator_request *request)
{
	const char *const *name = options->clients;
	struct wf_topology_place place;
	struct wf_error e;
	int err = 0;

	*request = (struct wf_orchestrator_request){ .bytes = bytes };
	request->strict = options->flags & WEFT_NEAR_STRICT;
	request->device = options->flags & WEFT_NEAR_DEVICE;
	if (options->flags & ~(unsigned)(WEFT_NEAR_STRICT | WEFT_NEAR_DEVICE))
		return wf_last_set(-EINVAL, "flags %#x are not for memory", options->flags);
	if (options->from && wf_rules_who(options->from, &request->from, &e))
		return wf_last_copy(&e);
	for (; name && *name && !err; name++) {
		if (wf_topology_find(&o->topology, *name, &place))
			return wf_last_set(-ENODEV, "there is no device or NUMA node %.64s here", *name);
		err = add_client(request, &place);
	}
	if (err || request->client_count)
		return err;
	return add_own(request, node, &o->topology);
}

/* Append why @choice gave nothing, for a sentence about the publisher that did, if any. */
static void note(char *notes, size_t notes_bytes, const struct wf_orchestrator_choice *choice,
		 const char *why)
{
	size_t used = strlen(notes);
	size_t name = strlen(choice->publisher->name);

	/* A sentence about taking memory begins with the publisher's name. */
	if (!strncmp(why, choice->publisher->name, name) && why[name] == ':')
		why += name + 2;
	snprintf(notes + used, notes_bytes - used, "%s%s: %.300s", used ? "; " : "",
		 choice->publisher->name, why);
}

/* Fill in the placement that users can ask for. */
static void describe(struct near *near, const struct wf_orchestrator_choice *choice,
		     const char *notes)
{
	struct weft_placement *p = &near->placement;

	*p = (struct weft_placement){
		.numa_node = near->piece.anywhere ? -1 : choice->publisher->place.node,
		.bytes = near->piece.bytes,
		.device = { near->apart ? WEFT_CUDA : WEFT_CPU, near->piece.device },
	};
	snprintf(p->publisher, sizeof(p->publisher), "%s", choice->publisher->name);
	snprintf(p->why, sizeof(p->why), "%s%s%s%.200s", choice->why,
		 near->piece.anywhere ? ", but the system does not let memory be placed" : "",
		 *notes ? "; not " : "", notes);
}

/* Take memory of @choice and register it.  A failure has a sentence in @e. */
static int take(struct weft_node *node, const struct wf_orchestrator_request *request,
		const struct wf_orchestrator_choice *choice, const char *notes, void **memory,
		struct wf_error *e)
{
	struct near *near = calloc(1, sizeof(*near) + node->worker_count * sizeof(near->parts[0]));
	int err;

	if (!near)
		return wf_error_set(e, -ENOMEM, "no memory to look after it");
	near->owner = node;
	near->publisher = choice->publisher;
	near->apart = !(choice->publisher->how->rights & WF_PUBLISHER_CPU);
	atomic_store(&near->holds, 1);
	err = wf_orchestrator_take(node->near.orchestrator, choice->publisher, request->bytes,
				   &near->piece, e);
	if (err) {
		free(near);
		return err;
	}
	describe(near, choice, notes);
	pthread_mutex_lock(&node->lock);
	wf_list_append(&node->near.all, &near->node);
	pthread_mutex_unlock(&node->lock);
	if (near->apart) {
		*memory = near->piece.base; /* the hold is the user's */
		return 0;
	}
	if (near->piece.anywhere && request->strict)
		err = wf_error_set(e, -EPERM, "the system does not let memory be placed");
	else if (admit(near))
		err = wf_error_set(e, -ENOMEM, "no memory to look after it");
	if (!err) {
		err = visit_all(node, near, e);
		if (err)
			(void)wf_memory_give(node, near->piece.base);
	}
	if (!err)
		*memory = near->piece.base;
	put(near);
	return err;
}

/* Take from the first publisher that can give; a strict request stops at the first that may. */
static int take_first(struct weft_node *node, const struct wf_orchestrator_request *request,
		      const struct wf_orchestrator_choice *choices, size_t count, void **memory)
{
	char notes[WF_ERROR_BYTES] = "";
	struct wf_error e;
	int first = 0;

	for (size_t i = 0; i < count; i++) {
		const struct wf_orchestrator_choice *c = &choices[i];

		if (!c->err) {
			int err = take(node, request, c, notes, memory, &e);

			if (!err)
				return 0;
			first = first ? first : err;
		}
		note(notes, sizeof(notes), c, c->err ? c->why : e.text);
		if (request->strict && (!c->err || c->err == -ENOBUFS))
			break;
	}
	return wf_last_set(first ? first : -ENOBUFS, "no publisher gives %llu bytes: %.400s",
			   (unsigned long long)request->bytes, notes);
}

/* Returns whether a publisher's memory is all in use. */
static bool lacks_room(const struct wf_orchestrator_choice *choices, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (choices[i].err == -ENOBUFS)
			return true;
	return false;
}

int wf_near_take(struct weft_node *node, size_t bytes, const struct weft_near_options *options,
		 void **memory)
{
	struct wf_orchestrator *o;
	struct wf_orchestrator_request request;
	struct wf_orchestrator_choice *choices;
	size_t count;
	int err = orchestrator_of(node, &o);

	if (!err)
		err = make_request(node, o, bytes, options, &request);
	if (err)
		return err;
	count = o->publishers.count;
	choices = calloc(count, sizeof(*choices));
	if (!choices)
		return wf_last_set(-ENOMEM, "no memory to choose who gives some");
	wf_orchestrator_judge(o, &request, choices);
	/* Freed memory may still be leaving the first worker's pool, and then the other pools. */
	for (unsigned i = 0; i < 2 && lacks_room(choices, count); i++) {
		if (visit_all(node, NULL, NULL))
			break;
		wf_orchestrator_judge(o, &request, choices);
	}
	err = take_first(node, &request, choices, count, memory);
	free(choices);
	return err;
}

int wf_near_place(struct weft_node *node, const void *memory, struct weft_placement *placement)
{
	int err = -EINVAL;

	pthread_mutex_lock(&node->lock);
	WF_LIST_EACH(at, &node->near.all) {
		struct near *near = WF_CONTAINER(at, struct near, node);

		if ((uintptr_t)memory - (uintptr_t)near->piece.base >= near->piece.bytes)
			continue;
		near->placement.size = placement->size;
		memcpy(placement, &near->placement, WF_MIN(placement->size, sizeof(*placement)));
		err = 0;
	}
	pthread_mutex_unlock(&node->lock);
	return err ? wf_last_set(err, "that is no memory of weft_alloc_near") : 0;
}
