/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/op.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/await.h"
#include "core/check.h"
#include "core/last.h"
#include "core/memory.h"
#include "core/node.h"
#include "core/peer.h"
#include "core/turn.h"
#include "core/watch.h"
#include "core/worker.h"
#include "transfer/plan.h"
#include "util/clock.h"

#define NUMBERS 256 /* numbers that a worker's thread takes at once */
#define LONG_NS WF_NS_PER_S /* a tick of the coarse clock, 10 ms at most, hardly shortens it */

static int check_options(const struct weft_op_options *o)
{
	for (size_t i = 0; i < WF_COUNT(o->reserved); i++)
		if (o->reserved[i])
			return wf_last_set(-EINVAL, "a reserved field of the options is not zero");
	if (o->priority > WEFT_PRIORITY_MAX)
		return wf_last_set(-EINVAL, "priority %u is above %u, the highest", o->priority,
				   WEFT_PRIORITY_MAX);
	if (o->flags & ~WF_OP_FLAGS)
		return wf_last_set(-EINVAL, "flags %#x are not for an operation", o->flags);
	if (o->queue && o->done)
		return wf_last_set(-EINVAL, "options have both a queue and a callback");
	if (o->provider && strlen(o->provider) >= WF_NAMES_BYTES)
		return wf_last_set(-EINVAL, "no provider has so long a name: %.80s", o->provider);
	return 0;
}

/*
 * Combine the node's terms and the options' own, in place: a copy would wait until the zeros
 * of the new operation have reached memory.
 */
static void set_terms(struct wf_terms *terms, const struct weft_node *node,
		      const struct weft_op_options *o, const struct wf_names *names)
{
	terms->checksum = node->terms.checksum || o->flags & WEFT_CHECKSUM;
	terms->no_staging = node->terms.no_staging || o->flags & WEFT_STRICT_NO_STAGING;
	terms->no_fallback = node->terms.no_fallback || o->flags & WEFT_STRICT_NO_FALLBACK;
	terms->priority = (uint8_t)o->priority;
	terms->rails_min = o->rails_min;
	terms->provider = names ? names->provider : NULL;
}

void wf_op_init(struct weft_node *node, const struct wf_options *options,
		const struct wf_op_class *const classes[WF_OP_KINDS])
{
	node->terms = (struct wf_terms){
		.checksum = options->checksum,
		.no_staging = wf_options_lists(options->strict, "no-staging"),
		.no_fallback = wf_options_lists(options->strict, "no-fallback"),
	};
	wf_list_init(&node->ops);
	for (unsigned kind = 0; kind < WF_OP_KINDS; kind++)
		wf_freelist_init(&node->free_ops[kind], classes[kind]->bytes,
				 offsetof(struct weft_op, owner), classes[kind]->zero_to);
}

void wf_op_fini(struct weft_node *node)
{
	for (unsigned kind = 0; kind < WF_OP_KINDS; kind++)
		wf_freelist_fini(&node->free_ops[kind]);
}

/*
 * Returns the time at which an operation of @worker is made.  In a callback, which may make one
 * after another, that of the turn will do until the coarse clock has ticked; a short time limit
 * counts from now.
 */
static uint64_t made_ns(const struct wf_worker *worker, uint64_t timeout_ns)
{
	if (timeout_ns >= LONG_NS && wf_worker_inside(worker) &&
	    wf_clock_coarse() <= worker->engine.loop.now_ns)
		return worker->engine.loop.now_ns;
	return wf_clock_now();
}

static void fill(struct weft_op *op, struct weft_peer *peer, const struct wf_op_class *class,
		 const struct weft_op_options *given, const struct wf_names *names)
{
	struct wf_worker *worker = op->worker;
	struct weft_node *node = worker->node;
	uint64_t timeout =
		given->timeout_ns ? given->timeout_ns : worker->engine.options.timeout_ns;

	op->owner = node;
	op->class = class;
	op->peer = peer;
	op->timed = given->timeout_ns;
	op->told.arg = given->arg;
	op->told.done = given->done;
	if (given->queue)
		wf_completion_queue_name(given->queue, op);
	set_terms(&op->terms, node, given, names);
	op->time.made_ns = made_ns(worker, timeout);
	op->time.deadline_ns = wf_clock_after(op->time.made_ns, timeout);
	op->outcome.executed = WEFT_EXECUTED_NO;
	wf_list_init(&op->notice.node);
	atomic_init(&op->refs, 2);
}

/*
 * Returns where the only worker of @node keeps an operation of @kind that was freed in a callback
 * of its own thread: the next one made there needs no lock, as the spare one stays in the node's
 * list.  NULL: the caller is no such callback.
 */
static struct weft_op **spare_at(struct weft_node *node, enum wf_op_kind kind)
{
	struct wf_worker *worker = &node->workers[0];

	/* A build with a sanitizer is to see uses of what was freed. */
	if (!WF_FREELIST_BYTES_MAX || node->worker_count > 1 || !wf_worker_in_own_turn(worker))
		return NULL;
	return &worker->spare_ops[kind];
}

/* Returns the first of @count numbers for operations of @node. */
static uint64_t take_numbers(struct weft_node *node, uint64_t count)
{
	return atomic_fetch_add_explicit(&node->op_count, count, memory_order_relaxed) + 1;
}

/* Returns a number from those that the worker's thread has taken: they are for people, and gaps do. */
static uint64_t own_number(struct wf_worker *worker)
{
	if (!worker->numbers_left) {
		worker->next_number = take_numbers(worker->node, NUMBERS);
		worker->numbers_left = NUMBERS;
	}
	worker->numbers_left--;
	return worker->next_number++;
}

static struct weft_op *take_spare(struct weft_node *node, const struct wf_op_class *class)
{
	struct weft_op **spare = spare_at(node, class->kind);
	struct weft_op *op = spare ? *spare : NULL;

	if (!op)
		return NULL;
	*spare = NULL;
	memset(&op->owner, 0, class->zero_to - offsetof(struct weft_op, owner));
	atomic_store_explicit(&op->worker, &node->workers[0], memory_order_relaxed);
	op->number = own_number(&node->workers[0]);
	return op;
}

/* Take an operation of @class for @peer, maybe NULL, into the list of @node.  NULL: no memory. */
static struct weft_op *take(struct weft_node *node, struct weft_peer *peer,
			    const struct wf_op_class *class)
{
	struct weft_op *op = take_spare(node, class);

	if (op)
		return op;
	pthread_mutex_lock(&node->lock);
	op = wf_freelist_take(&node->free_ops[class->kind]);
	if (op) {
		atomic_init(&op->worker, peer ? peer->worker : &node->workers[0]);
		op->number = take_numbers(node, 1);
		wf_list_init(&op->node);
		wf_list_append(&node->ops, &op->node);
	}
	pthread_mutex_unlock(&node->lock);
	return op;
}

void wf_op_free_spares(struct weft_node *node)
{
	for (unsigned kind = 0; kind < WF_OP_KINDS; kind++) {
		struct weft_op **spare = &node->workers[0].spare_ops[kind];

		if (*spare)
			wf_list_remove(&(*spare)->node);
		free(*spare);
		*spare = NULL;
	}
}

int wf_op_nested(const struct weft_op_options *given, const struct weft_op_options **options)
{
	bool set = given->timeout_ns || given->done || given->arg || given->flags ||
		   given->rails_min || given->provider || given->queue || given->priority;

	if (set && !given->size)
		return wf_last_set(-EINVAL, "options->op.size is not set, and other fields of "
				   "options->op are");
	*options = given->size ? given : NULL;
	return 0;
}

int wf_op_new(struct weft_node *node, struct weft_peer *peer, const struct wf_op_class *class,
	      const struct weft_op_options *options, struct weft_op **op)
{
	const struct wf_names *names = NULL;
	struct weft_op_options given;
	struct weft_op *fresh;
	int err = wf_check_node(node);

	if (!err)
		err = wf_check_options(options, &given, sizeof(given));
	if (!err)
		err = check_options(&given);
	if (!err && given.queue && given.queue->owner != node)
		err = wf_last_set(-EINVAL, "options->queue is of another node");
	if (err)
		return err;
	if (given.provider && *given.provider) {
		names = wf_names_of(given.provider, "");
		if (!names)
			return wf_last_set(-EINVAL,
					   "too many names of providers were asked for; the last: %s",
					   given.provider);
	}
	fresh = take(node, peer, class);
	if (!fresh)
		return wf_last_set(-ENOMEM, "no memory for an operation");
	fill(fresh, peer, class, &given, names);
	*op = fresh;
	return 0;
}

/*
 * Wait for a thread that describes the operations of @node from outside, and may have seen one run
 * that is to be freed now.
 */
static void await_description(struct weft_node *node)
{
	if (!atomic_load(&node->describing))
		return;
	pthread_mutex_lock(&node->lock);
	pthread_mutex_unlock(&node->lock);
}

static void free_op(struct weft_op *op)
{
	struct weft_node *node = op->owner;
	struct weft_op **spare;

	if (node)
		await_description(node);
	if (op->class->free)
		op->class->free(op);
	if (wf_op_queue(op))
		wf_completion_queue_put(op->told.queue);
	free(op->memory);
	wf_reason_drop(&op->outcome.error);
	if (!node) {
		free(op);
		return;
	}
	spare = spare_at(node, op->class->kind);
	if (spare && !*spare) {
		/* A thread that describes operations must not take a spare one for submitted. */
		atomic_store_explicit(&op->submitted, false, memory_order_relaxed);
		atomic_store_explicit(&op->worker, NULL, memory_order_relaxed);
		*spare = op;
		return;
	}
	pthread_mutex_lock(&node->lock);
	wf_list_remove(&op->node);
	wf_freelist_give(&node->free_ops[op->class->kind], op);
	pthread_mutex_unlock(&node->lock);
}

/* Is @op a call that ends with another one?  A reference may be counted while there is one. */
static bool is_child(const struct weft_op *op)
{
	return op->class->kind == WF_OP_CALL && op->call.child.is_child;
}

void wf_op_put(struct weft_op *op)
{
	/* The last reference is counted by nobody else, but for a child's: no atomic is needed. */
	if ((atomic_load_explicit(&op->refs, memory_order_acquire) == 1 && !is_child(op)) ||
	    atomic_fetch_sub(&op->refs, 1) == 1)
		free_op(op);
}

void wf_op_drop(struct weft_op *op)
{
	wf_op_put(op);
	wf_op_put(op);
}

/* Tell the end of @op in this turn, or only where somebody comes to wait for it. */
static void tell_end(struct wf_loop *loop, struct weft_op *op)
{
	if (op->class->tell || op->told.done || wf_op_queue(op))
		wf_loop_defer(loop, &op->notice);
	else
		wf_loop_defer_quietly(loop, &op->notice);
}

/* Tell the user, as a notice of the loop outside the library's own work. */
static void publish(struct wf_loop_notice *notice)
{
	struct weft_op *op = WF_CONTAINER(notice, struct weft_op, notice);
	struct weft_node *node = op->owner;
	struct wf_worker *worker = op->worker;

	if (!wf_op_submission_is_over(op)) {
		tell_end(&worker->engine.loop, op);
		return;
	}
	if (op->class->tell)
		op->class->tell(op);
	if (!op->entry.named && op->told.done) {
		atomic_store_explicit(&op->state, WF_OP_TOLD, memory_order_release);
		op->told.done(op, op->told.arg);
	}
	/* In a child that the callback forked the lock may be held for ever. */
	if (wf_check_node(node))
		return;
	atomic_store(&op->state, WF_OP_ENDED);
	wf_await_wake(node);
	worker->ended_count++;
	if (wf_op_queue(op))
		wf_completion_queue_add(op);
	wf_op_put(op);
}

/* Returns the time from the making of @op to @at_ns: at least 1, as 0 means unknown. */
static uint64_t since(const struct weft_op *op, uint64_t at_ns)
{
	if (!at_ns)
		return 0;
	return at_ns > op->time.made_ns ? at_ns - op->time.made_ns : 1;
}

void wf_op_finish(struct weft_op *op, const struct wf_error *e, enum weft_executed executed)
{
	struct wf_engine *engine = &op->worker->engine;

	if (e)
		wf_reason_keep(&op->outcome.error, e);
	op->outcome.executed = e ? WF_MAX(op->outcome.executed, executed) : WEFT_EXECUTED_YES;
	op->outcome.known = true;
	op->outcome.done_ns = engine->loop.now_ns;
	wf_recorder_add(&engine->loop.recorder, WF_RECORDER_OP_END, 0, op->number,
			(uint64_t)op->outcome.error.code);
	wf_timer_stop(&engine->loop.timers, &op->time.timer);
	op->notice.run = publish;
	tell_end(&engine->loop, op);
}

void wf_op_finish_kept(struct weft_op *op)
{
	struct wf_error e;

	wf_op_finish(op, wf_reason_get(&op->outcome.error, &e), op->outcome.executed);
}

void wf_op_path_set(struct weft_op *op, const struct wf_path *path, unsigned copies)
{
	op->outcome.path = path;
	/* To encrypt or decrypt a pulled body is a copy as well. */
	op->outcome.copies = (uint8_t)(copies + (path->cipher && path->way != WF_BODY_EAGER));
	if (!path->caps)
		return;
	/* Names outlive the rail, which may be gone when a user asks. */
	op->outcome.over = path->caps->names;
	/* A straight pull and a handle are both called "direct". */
	op->outcome.way = path->straight && path->way == WF_BODY_PULL ? WF_BODY_HANDLE : path->way;
	op->outcome.sum_kind = path->bytes ? path->sum_kind : WF_BODY_SUM_NONE;
	op->outcome.cipher = path->bytes ? path->cipher : 0;
}

void wf_op_stop(struct weft_op *op, const struct wf_error *e)
{
	if (op->started && !op->outcome.known)
		op->class->stop(op, e);
}

/*
 * Returns the first operation of @node that runs behind @before, or at all if that is NULL, with a
 * reference in place of that to @before.  NULL: there is none.  Any thread may free those between
 * them meanwhile, which have ended.
 */
static struct weft_op *next_running(struct weft_node *node, struct weft_op *before)
{
	struct weft_op *found = NULL;

	pthread_mutex_lock(&node->lock);
	for (struct wf_list *at = before ? before->node.next : node->ops.next;
	     at != &node->ops && !found; at = at->next) {
		struct weft_op *op = WF_CONTAINER(at, struct weft_op, node);

		if (op->worker && atomic_load(&op->submitted) && !wf_op_ended(op))
			found = op;
	}
	if (found)
		atomic_fetch_add(&found->refs, 1);
	pthread_mutex_unlock(&node->lock);
	if (before)
		wf_op_put(before);
	return found;
}

void wf_op_starve(struct wf_worker *worker)
{
	struct weft_op *op = NULL;
	struct wf_error e;

	wf_error_set(&e, -ECANCELED, "this node has closed");
	while ((op = next_running(worker->node, op)))
		if (op->class->starve)
			op->class->starve(op, worker, &e);
}

void wf_op_take_back(struct weft_op *op)
{
	if (!op->started || op->outcome.known || op->class->take_back(op))
		return;
	wf_timer_stop(&op->worker->engine.loop.timers, &op->time.timer);
	op->started = false;
	op->moves = true;
}

static void set_worker(struct weft_op *op, struct wf_worker *to)
{
	op->worker = to;
	if (op->class->moved)
		op->class->moved(op, to);
}

void wf_op_move(struct weft_op *op, struct wf_worker *to)
{
	if (!op->moves)
		return;
	op->moves = false;
	set_worker(op, to);
	wf_loop_submit(&to->engine.loop, &op->start_task);
}

static void deadline(struct wf_timer *timer)
{
	struct weft_op *op = WF_CONTAINER(timer, struct weft_op, time.timer);
	const struct wf_link *link = wf_peer_link_known(op->peer, op->worker);
	const char *who = link ? wf_link_label(link) : op->peer ? "the peer" : "any peer";
	const char *trouble = link ? wf_link_trouble(link) : "";
	uint64_t missing = op->class->missing_bytes ? op->class->missing_bytes(op) : 0;
	struct wf_error e;

	if (missing) {
		wf_memory_late(op->worker, missing, &e);
	} else if (trouble[0]) {
		wf_error_set(&e, -ETIMEDOUT, "the deadline passed and %s can't be reached: %s",
			     wf_link_label(link), trouble);
	} else if (op->class->late) {
		op->class->late(op, who, &e);
	} else {
		wf_error_set(&e, -ETIMEDOUT, "the deadline passed before %s answered", who);
	}
	wf_watch_late(op);
	wf_op_stop(op, &e);
}

static struct wf_worker *place(const struct weft_op *op)
{
	if (op->class->place)
		return op->class->place(op);
	return op->peer ? op->peer->at : op->worker;
}

/* Pass @op on if another worker is to run it; the inbox keeps the order. */
static bool pass_on(struct weft_op *op)
{
	struct wf_worker *at = place(op);

	if (at == op->worker)
		return false;
	set_worker(op, at);
	wf_loop_submit(&at->engine.loop, &op->start_task);
	return true;
}

void wf_op_begin(struct weft_op *op)
{
	op->started = true;
	wf_recorder_add(&op->worker->engine.loop.recorder, op->class->recorded, 0, op->number,
			op->class->step ? op->class->step(op) : 0);
	if (op->time.deadline_ns != UINT64_MAX)
		wf_loop_timer(&op->worker->engine.loop, &op->time.timer, op->time.deadline_ns,
			      deadline);
}

static void start(struct wf_loop_task *task)
{
	struct weft_op *op = WF_CONTAINER(task, struct weft_op, start_task);
	struct wf_error e;

	if (pass_on(op))
		return;
	if (op->owner->closing) {
		wf_error_set(&e, -ECANCELED, "this node has closed");
		if (op->class->refuse)
			op->class->refuse(op, &e);
		else
			wf_op_finish(op, &e, WEFT_EXECUTED_NO);
		return;
	}
	wf_op_begin(op);
	op->class->start(op);
	wf_watch_begin(op);
}

void wf_op_refuse_parts(struct weft_op *op, const struct wf_error *e)
{
	(void)e;
	wf_op_begin(op);
	op->class->start(op);
}

void wf_op_submit(struct weft_op *op, uint64_t now_ns)
{
	op->start_task.run = start;
	wf_turn_run(op->worker, &op->start_task, now_ns);
	wf_op_submitted(op, now_ns);
}

void wf_op_start(struct weft_op *op)
{
	op->start_task.run = start;
	start(&op->start_task);
}

void wf_op_submitted(struct weft_op *op, uint64_t now_ns)
{
	if (op->class->fan_out)
		op->class->fan_out(op, now_ns);
	/* The operation can't be gone: its end waits for this. */
	atomic_store_explicit(&op->submitted, true, memory_order_release);
}

bool wf_op_submission_is_over(const struct weft_op *op)
{
	if (atomic_load(&op->submitted))
		return true;
	/* The worker looks again soon, and the thread that submits may be waiting for this core. */
	sched_yield();
	return false;
}

void wf_op_launch(struct weft_op *fresh, uint64_t now_ns, struct weft_op **op)
{
	bool sole = !op && wf_op_queue(fresh);

	if (op)
		*op = fresh;
	fresh->entry.sole = sole;
	wf_op_submit(fresh, now_ns);
	if (!op && !sole)
		wf_op_free(fresh);
}

void wf_op_again(struct weft_op *op)
{
	struct wf_engine *engine = &op->worker->engine;

	wf_timer_stop(&engine->loop.timers, &op->time.timer);
	op->started = false;
	wf_loop_submit(&engine->loop, &op->start_task);
}

static void cancel(struct wf_loop_task *task)
{
	struct weft_op *op = WF_CONTAINER(task, struct weft_op, cancel.task);
	struct wf_worker *worker = op->worker;
	struct wf_error e;

	/* The operation has moved to another worker, or is just on the way here. */
	if (op->cancel.worker != worker ||
	    (!op->started && !op->outcome.known && atomic_load(&op->submitted))) {
		op->cancel.worker = worker;
		wf_loop_submit(&worker->engine.loop, task);
		return;
	}
	wf_error_set(&e, -ECANCELED, "it was cancelled");
	wf_op_stop(op, &e);
	wf_op_put(op);
}

void wf_op_cancel(struct weft_op *op)
{
	/* A second cancel does nothing, as the task is part of the operation. */
	if (wf_op_ended(op) || atomic_exchange(&op->cancel_asked, true))
		return;
	atomic_fetch_add(&op->refs, 1);
	op->cancel.task.run = cancel;
	op->cancel.worker = op->worker;
	wf_turn_run(op->cancel.worker, &op->cancel.task, wf_clock_now());
}

void wf_op_free(struct weft_op *op)
{
	struct weft_node *node = wf_op_queue(op) ? wf_completion_queue_forget(op) : NULL;

	/* Nobody else drops the library's reference to a call that was never invoked. */
	if (op->class->begun && !op->class->begun(op))
		wf_op_put(op);
	wf_op_put(op);
	wf_completion_queue_release(node);
}

static struct weft_path path_of(const struct weft_op *op)
{
	static const struct wf_path none;
	const struct wf_path *from = op->outcome.path ? op->outcome.path : &none;
	struct weft_path to = {
		.bytes = from->bytes,
		.copies = op->outcome.copies,
		.registered = from->registered,
		.chunks = from->chunks,
		.retries = from->retries,
		.helped = from->helped,
		.rails = op->outcome.over ? 1 + from->lanes : 0,
		.queued_ns = since(op, from->queued_ns),
		.matched_ns = since(op, from->matched_ns),
		.first_byte_ns = since(op, from->first_ns),
		.last_byte_ns = since(op, from->last_ns),
		.done_ns = since(op, op->outcome.done_ns),
	};

	if (op->outcome.over) {
		strcpy(to.provider, op->outcome.over->provider);
		strcpy(to.device, op->outcome.over->device);
	}
	strcpy(to.way, wf_plan_way((enum wf_body_way)op->outcome.way));
	strcpy(to.checksum, op->outcome.sum_kind == WF_BODY_SUM_XXH3 ? "xxh3" : "none");
	strcpy(to.cipher, !op->outcome.cipher ? "none" :
		wf_seal_name((enum wf_seal_cipher)(op->outcome.cipher - 1)));
	return to;
}

void wf_op_path(const struct weft_op *op, struct weft_path *path)
{
	struct weft_path known = path_of(op);
	size_t size = path->size;

	memcpy(path, &known, WF_MIN(size, sizeof(known)));
	path->size = size;
}
