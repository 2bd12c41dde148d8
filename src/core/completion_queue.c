/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/completion_queue.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/last.h"
#include "core/node.h"
#include "core/op.h"
#include "core/turn.h"
#include "core/worker.h"
#include "util/clock.h"
#include "util/fork.h"
#include "util/thread.h"

static struct weft_op *op_of(struct wf_list *node)
{
	return WF_CONTAINER(node, struct weft_op, notice.node);
}

/* Take the operation that ended first out of @queue.  NULL: none. */
static struct weft_op *pop(struct weft_queue *queue)
{
	struct wf_list *at = wf_list_pop(&queue->ended);

	if (!at)
		return NULL;
	op_of(at)->entry.queued = false;
	return op_of(at);
}

static int init_lock(struct weft_queue *queue)
{
	int err = -pthread_mutex_init(&queue->lock, NULL);

	if (err)
		return err;
	err = wf_thread_cond_init(&queue->filled);
	if (err)
		pthread_mutex_destroy(&queue->lock);
	return err;
}

int wf_completion_queue_open(struct weft_node *node, struct weft_queue **queue)
{
	struct weft_queue *fresh = calloc(1, sizeof(*fresh));
	int err = fresh ? init_lock(fresh) : -ENOMEM;

	if (err) {
		free(fresh);
		return wf_last_set(err, "no memory for a completion queue");
	}
	atomic_init(&fresh->refs, 1);
	fresh->manual = node->manual;
	fresh->owner = node;
	fresh->closing = node->closing; /* then this is a callback, on the thread that closes */
	fresh->closer = pthread_self();
	fresh->fd = -1;
	wf_list_init(&fresh->ended);
	wf_fork_hold();
	wf_list_append(&node->queues.all, &fresh->node);
	wf_fork_let();
	*queue = fresh;
	return 0;
}

void wf_completion_queue_put(struct weft_queue *queue)
{
	if (atomic_fetch_sub(&queue->refs, 1) != 1)
		return;
	wf_fork_hold();
	wf_list_remove(&queue->node);
	wf_fork_let();
	if (queue->fd >= 0)
		close(queue->fd);
	pthread_cond_destroy(&queue->filled);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
}

/*
 * Lock @queue, and return its node, which stays until it is released.  NULL: the node has closed,
 * or this is a callback on the thread that closes it, which waits for no parting.
 */
static struct weft_node *lock_with_node(struct weft_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	while (queue->parting && !pthread_equal(queue->closer, pthread_self()))
		pthread_cond_wait(&queue->filled, &queue->lock);
	if (queue->owner)
		atomic_fetch_add(&queue->owner->queues.freeing, 1);
	return queue->owner;
}

void wf_completion_queue_release(struct weft_node *node)
{
	if (node)
		atomic_fetch_sub(&node->queues.freeing, 1); /* the node may be gone from here on */
}

void wf_completion_queue_close(struct weft_queue *queue)
{
	struct weft_node *node = lock_with_node(queue);
	struct wf_list nobodys, *at;
	struct weft_op *op;

	wf_list_init(&nobodys);
	queue->closed = true;
	while ((op = pop(queue)))
		if (op->entry.sole)
			wf_list_append(&nobodys, &op->notice.node);
	pthread_mutex_unlock(&queue->lock);
	while ((at = wf_list_pop(&nobodys)))
		wf_op_put(op_of(at));
	wf_completion_queue_put(queue);
	wf_completion_queue_release(node);
}

void wf_completion_queue_leave(struct weft_node *node)
{
	atomic_store(&node->queues.leaving, true);
	/* The owner of a manual node may be asleep in its loop. */
	if (node->manual && atomic_load(&node->queues.visitors))
		wf_worker_interrupt(&node->workers[0]);
	while (atomic_load(&node->queues.visitors))
		sched_yield();
}

void wf_completion_queue_node_closes(struct weft_node *node)
{
	wf_fork_hold();
	WF_LIST_EACH(at, &node->queues.all) {
		struct weft_queue *queue = WF_CONTAINER(at, struct weft_queue, node);

		pthread_mutex_lock(&queue->lock);
		queue->closing = true;
		queue->closer = pthread_self();
		pthread_mutex_unlock(&queue->lock);
	}
	wf_fork_let();
}

void wf_completion_queue_part(struct weft_node *node)
{
	wf_fork_hold();
	WF_LIST_EACH(at, &node->queues.all) {
		struct weft_queue *queue = WF_CONTAINER(at, struct weft_queue, node);

		pthread_mutex_lock(&queue->lock);
		queue->owner = NULL;
		queue->parting = true;
		pthread_mutex_unlock(&queue->lock);
	}
	wf_fork_let();
	/* Threads that are freeing operations of the node are about to be through. */
	while (atomic_load(&node->queues.freeing))
		sched_yield();
}

void wf_completion_queue_parted(struct weft_node *node)
{
	struct wf_list *at;

	wf_fork_hold();
	while ((at = wf_list_pop(&node->queues.all))) {
		struct weft_queue *queue = WF_CONTAINER(at, struct weft_queue, node);

		pthread_mutex_lock(&queue->lock);
		queue->owner = NULL; /* a callback may have opened it since the others were parted */
		queue->parting = false;
		pthread_cond_broadcast(&queue->filled);
		pthread_mutex_unlock(&queue->lock);
	}
	wf_fork_let();
}

void wf_completion_queue_name(struct weft_queue *queue, struct weft_op *op)
{
	atomic_fetch_add(&queue->refs, 1);
	op->told.queue = queue;
	op->entry.named = true;
}

/* The descriptor is written once for many operations, and read when none is left. */
static void show(const struct weft_queue *queue, bool readable)
{
	uint64_t count = 1;

	if (queue->fd < 0)
		return;
	if (readable)
		(void)!write(queue->fd, &count, sizeof(count));
	else
		(void)!read(queue->fd, &count, sizeof(count));
}

void wf_completion_queue_add(struct weft_op *op)
{
	struct weft_queue *queue = op->told.queue;
	bool nobodys;

	pthread_mutex_lock(&queue->lock);
	nobodys = queue->closed && op->entry.sole;
	if (!queue->closed && !op->entry.forgotten) {
		if (wf_list_empty(&queue->ended))
			show(queue, true);
		wf_list_append(&queue->ended, &op->notice.node);
		op->entry.queued = true;
		if (queue->waiting)
			pthread_cond_signal(&queue->filled);
	}
	pthread_mutex_unlock(&queue->lock);
	if (nobodys)
		wf_op_put(op);
}

struct weft_node *wf_completion_queue_forget(struct weft_op *op)
{
	struct weft_queue *queue = op->told.queue;
	struct weft_node *node = lock_with_node(queue);

	op->entry.forgotten = true;
	if (op->entry.queued) {
		wf_list_remove(&op->notice.node);
		op->entry.queued = false;
		if (wf_list_empty(&queue->ended))
			show(queue, false);
	}
	pthread_mutex_unlock(&queue->lock);
	return node;
}

static int take(struct weft_queue *queue, struct weft_op **ops, size_t max)
{
	size_t count = 0;

	while (count < max && (ops[count] = pop(queue)))
		ops[count++]->entry.sole = false;
	if (count && wf_list_empty(&queue->ended))
		show(queue, false);
	return (int)count;
}

/* Is this thread inside a callback of the node?  Under the lock. */
static bool is_inside(const struct weft_queue *queue)
{
	return queue->closing ? pthread_equal(queue->closer, pthread_self())
			      : wf_node_inside(queue->owner);
}

static bool is_over(void *ctx)
{
	struct weft_queue *queue = ctx;
	bool over;

	pthread_mutex_lock(&queue->lock);
	over = !wf_list_empty(&queue->ended) || atomic_load(&queue->owner->queues.leaving);
	pthread_mutex_unlock(&queue->lock);
	return over;
}

/*
 * Turn the loop meanwhile, that of a threaded node if it can be had; the lock is let go for that
 * time.  A node that closes waits for its visitors.  Returns whether the caller is to look again
 * before it sleeps: it has driven a manual node, or a callback has forked it.
 */
static bool visit(struct weft_queue *queue, uint64_t until_ns)
{
	struct weft_node *node = queue->owner;
	bool open;

	atomic_fetch_add(&node->queues.visitors, 1);
	open = !atomic_load(&node->queues.leaving);
	if (open) {
		pthread_mutex_unlock(&queue->lock);
		if (queue->manual)
			wf_turn_until(&node->workers[0], until_ns);
		else
			(void)wf_turn_visit(&node->workers[0], is_over, queue, until_ns);
		if (atomic_load(&queue->forked))
			return true;
		pthread_mutex_lock(&queue->lock);
	}
	atomic_fetch_sub(&node->queues.visitors, 1); /* the node may be gone from here on */
	return open && queue->manual;
}

static void sleep_until(struct weft_queue *queue, uint64_t until_ns)
{
	struct timespec at = wf_clock_timespec(until_ns);

	queue->waiting++;
	atomic_fetch_add(&queue->owner->queues.sleepers, 1);
	pthread_cond_timedwait(&queue->filled, &queue->lock, &at);
	if (queue->owner)
		atomic_fetch_sub(&queue->owner->queues.sleepers, 1);
	queue->waiting--;
}

/*
 * Let operations end, or wait for another thread that does; the lock is let go meanwhile.  In a
 * child that a callback has forked it may be held for ever, and is not taken again.
 */
static void let_come(struct weft_queue *queue, uint64_t until_ns)
{
	const struct wf_worker *worker = &queue->owner->workers[0];
	bool visits = !queue->closing &&
		      (!queue->manual || pthread_equal(worker->thread, pthread_self()));

	if (visits && visit(queue, until_ns))
		return;
	if (queue->owner && wf_list_empty(&queue->ended))
		sleep_until(queue, until_ns);
}

int wf_completion_queue_check(const struct weft_queue *queue)
{
	if (!atomic_load(&queue->forked))
		return 0;
	return wf_last_set(-EOWNERDEAD, "this process is a forked child: the queue is its parent's");
}

/* Returns 0 if operations may still come, and the caller may wait for them. */
static int check_wait(const struct weft_queue *queue)
{
	if (!queue->owner)
		return wf_last_set(-ECANCELED, "the queue's node has closed");
	if (is_inside(queue))
		return wf_last_set(-EDEADLK, "weft_queue_next inside a callback would wait for itself");
	return 0;
}

int wf_completion_queue_next(struct weft_queue *queue, struct weft_op **ops, size_t max,
			     uint64_t until_ns)
{
	int count, err = wf_completion_queue_check(queue);
	bool late = false;

	if (err)
		return err;
	pthread_mutex_lock(&queue->lock);
	while (!(count = take(queue, ops, max)) && !late && !(err = check_wait(queue))) {
		let_come(queue, until_ns);
		err = wf_completion_queue_check(queue);
		if (err)
			return err;
		late = wf_clock_now() >= until_ns;
	}
	pthread_mutex_unlock(&queue->lock);
	return err ? err : count;
}

int wf_completion_queue_fd(struct weft_queue *queue)
{
	int fd, err = 0;

	pthread_mutex_lock(&queue->lock);
	if (queue->fd < 0) {
		queue->fd = eventfd(!wf_list_empty(&queue->ended), EFD_NONBLOCK | EFD_CLOEXEC);
		err = queue->fd < 0 ? -errno : 0;
	}
	fd = queue->fd;
	pthread_mutex_unlock(&queue->lock);
	if (err)
		return wf_last_set(err, "no descriptor for a completion queue: %s",
				   wf_error_name(err));
	return fd;
}
