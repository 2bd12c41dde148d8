/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/registration.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/await.h"
#include "core/check.h"
#include "core/last.h"
#include "core/node.h"
#include "core/turn.h"
#include "core/worker.h"
#include "memory/arena.h"
#include "util/clock.h"

/* The memory as an arena of one worker. */
struct part {
	struct wf_arena arena;
	struct weft_region *region;
	struct wf_worker *worker;
	struct wf_loop_task task;
	struct wf_error e; /* code 0: the memory is registered */
};

struct weft_region {
	struct wf_list node;  /* in owner->regions, under the lock */
	struct weft_node *owner;
	void *base;
	size_t bytes;
	unsigned users;       /* registrations of the memory, or of a part; under the lock */
	atomic_uint busy;     /* workers that have not done what they were asked for last */
	struct part parts[];
};

static struct wf_list *arenas_of(struct part *part)
{
	return &part->worker->engine.pool.arenas;
}

static void done(struct part *part)
{
	struct weft_node *node = part->region->owner;

	atomic_fetch_sub(&part->region->busy, 1);
	wf_await_wake(node); /* the region may be gone */
}

static bool is_idle(void *ctx)
{
	struct weft_region *region = ctx;

	return !atomic_load(&region->busy);
}

/* Have @run done by every worker, and wait. */
static int ask_all(struct weft_region *region, void (*run)(struct wf_loop_task *task))
{
	struct weft_node *node = region->owner;

	atomic_store(&region->busy, node->worker_count);
	for (unsigned i = 0; i < node->worker_count; i++) {
		region->parts[i].task.run = run;
		wf_turn_run(&node->workers[i], &region->parts[i].task, wf_clock_now());
	}
	return wf_await_that(&node->workers[0], is_idle, region, UINT64_MAX);
}

static void left(struct wf_arena *arena)
{
	done(WF_CONTAINER(arena, struct part, arena));
}

static void enter(struct wf_loop_task *task)
{
	struct part *part = WF_CONTAINER(task, struct part, task);
	struct wf_engine *engine = &part->worker->engine;
	int err = 0;

	part->arena.left = left;
	wf_arena_enter(arenas_of(part), &part->arena, part->region->base, part->region->bytes);
	for (uint32_t i = 0; i < engine->rail_count && !err; i++)
		err = wf_arena_register(&part->arena, engine->rails[i].rail, &part->e);
	done(part);
}

static void leave(struct wf_loop_task *task)
{
	wf_arena_leave(&WF_CONTAINER(task, struct part, task)->arena);
}

/*
 * Find the region of exactly this memory, and use it once more: one that holds more would keep that
 * registered after its own user has given it back.  Under the lock.
 */
static struct weft_region *find(struct weft_node *node, const void *memory, size_t bytes)
{
	WF_LIST_EACH(at, &node->regions) {
		struct weft_region *region = WF_CONTAINER(at, struct weft_region, node);

		if (memory != region->base || bytes != region->bytes)
			continue;
		region->users++;
		return region;
	}
	return NULL;
}

/* Register the memory anew; the region is not listed. */
static int make(struct weft_node *node, void *memory, size_t bytes, struct weft_region **region)
{
	struct weft_region *fresh =
		calloc(1, sizeof(*fresh) + node->worker_count * sizeof(fresh->parts[0]));
	int err;

	if (!fresh)
		return wf_last_set(-ENOMEM, "no memory for a region");
	fresh->owner = node;
	fresh->base = memory;
	fresh->bytes = bytes;
	fresh->users = 1;
	wf_list_init(&fresh->node);
	for (unsigned i = 0; i < node->worker_count; i++) {
		fresh->parts[i].region = fresh;
		fresh->parts[i].worker = &node->workers[i];
	}
	err = ask_all(fresh, enter);
	if (err)
		return err; /* a forked child: the region is the parent's */
	for (unsigned i = 0; i < node->worker_count && !err; i++)
		if (fresh->parts[i].e.code)
			err = wf_last_copy(&fresh->parts[i].e);
	if (!err) {
		*region = fresh;
		return 0;
	}
	(void)ask_all(fresh, leave);
	free(fresh);
	return err;
}

int wf_registration_open(struct weft_node *node, void *memory, size_t bytes,
			 struct weft_region **region)
{
	struct weft_region *found;
	int err;

	pthread_mutex_lock(&node->lock);
	found = find(node, memory, bytes);
	pthread_mutex_unlock(&node->lock);
	if (!found) {
		err = make(node, memory, bytes, &found);
		if (err)
			return err;
		pthread_mutex_lock(&node->lock);
		wf_list_append(&node->regions, &found->node);
		pthread_mutex_unlock(&node->lock);
	}
	*region = found;
	return 0;
}

int wf_registration_close(struct weft_region *region)
{
	struct weft_node *node = region->owner;
	bool last;
	int err = wf_check_node(node);

	if (err)
		return err;
	if (wf_node_inside(node))
		return wf_last_set(-EDEADLK, "weft_unregister inside a callback would wait for itself");
	pthread_mutex_lock(&node->lock);
	last = !--region->users;
	if (last)
		wf_list_remove(&region->node);
	pthread_mutex_unlock(&node->lock);
	if (!last)
		return 0;
	err = ask_all(region, leave);
	if (!err)
		free(region);
	return err;
}

void wf_registration_fini(struct weft_node *node)
{
	struct wf_list *at;

	while ((at = wf_list_pop(&node->regions)))
		free(WF_CONTAINER(at, struct weft_region, node));
}
