/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/dump.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "core/describe.h"
#include "core/last.h"
#include "core/node.h"
#include "core/op.h"
#include "core/turn.h"
#include "core/watch.h"
#include "core/worker.h"
#include "link/lease.h"
#include "link/ledger.h"
#include "util/clock.h"

#define UNMATCHED_SHOWN 64 /* unmatched tensors may number a million */
#define ANSWER_NS WF_NS_PER_S /* a worker turns within a second, asleep or not */
#define A_TURN 32 /* links or operations that a turn describes, in some 25 us */

/*
 * A dump of a worker.  It is written into memory first: the program's file may be slow, and locks
 * are held.
 */
struct dump {
	struct wf_worker *worker;
	FILE *out; /* into text; NULL: there is no memory, or it is closed */
	char *text;
	size_t bytes;
	bool gathered;
	uint32_t link_number; /* the last link that is written */
	struct weft_op **ops; /* the operations that ran when links had been written, referenced */
	size_t op_count, op_next;
};

/* A dump that was not written to its end still has operations: the worker will not go on. */
static void end(struct dump *d)
{
	while (d->op_next < d->op_count)
		wf_op_put(d->ops[d->op_next++]);
	free(d->ops);
	if (d->out)
		fclose(d->out);
	free(d->text);
}

/* Parts that the worker and any other thread can write. */

static void write_node(FILE *out, const struct wf_worker *worker)
{
	const struct weft_node *node = worker->node;
	const struct wf_engine *engine = &worker->engine;

	if (worker == node->workers)
		fprintf(out, "node %s at %s\n", engine->name, engine->address);
	if (worker == node->workers && atomic_load(&node->draining))
		fprintf(out, "it drains: no more calls are taken\n");
	if (node->worker_count > 1)
		fprintf(out, "worker %d of %u\n", (int)(worker - node->workers) + 1,
			node->worker_count);
	for (uint32_t i = 0; i < engine->rail_count; i++) {
		const struct wf_rail_caps *caps = wf_rail_caps(engine->rails[i].rail);

		fprintf(out, "rail %u: %s on %s\n", i, caps->provider, caps->domain);
	}
}

static void start(struct dump *d, struct wf_worker *worker)
{
	*d = (struct dump){ .worker = worker };
	d->out = open_memstream(&d->text, &d->bytes);
	if (d->out)
		write_node(d->out, worker);
}

/*
 * Does @worker run @op?  One that is not submitted belongs to the thread that makes it.  The state
 * comes first: a spare operation is not submitted, and is made anew after that.
 */
static bool is_running(const struct weft_op *op, const struct wf_worker *worker)
{
	return atomic_load(&op->state) == WF_OP_RUNNING && atomic_load(&op->submitted) &&
	       op->worker == worker;
}

/* @inside: the worker writes, and may tell what the operation waits for. */
static void write_op(FILE *out, const struct weft_op *op, bool inside)
{
	uint64_t now_ns = wf_clock_now();
	char text[WF_DESCRIBE_BYTES];

	wf_describe_op(op, text);
	fprintf(out, "operation %llu: %s, begun %.1f s ago", (unsigned long long)op->number, text,
		((double)now_ns - (double)op->time.made_ns) / WF_NS_PER_S);
	if (op->time.deadline_ns != UINT64_MAX)
		fprintf(out, ", %.1f s left",
			((double)op->time.deadline_ns - (double)now_ns) / WF_NS_PER_S);
	if (inside) {
		wf_describe_wait(op, text);
		fprintf(out, ": %s", text);
	}
	fputc('\n', out);
}

static void write_pool(FILE *out, struct wf_engine *engine)
{
	struct wf_pool *pool = &engine->pool;
	const struct wf_shm_export *shm_export = engine->shm_export;

	pthread_mutex_lock(&pool->lock);
	fprintf(out, "pool: %llu of %llu bytes, %llu used", (unsigned long long)pool->slab_bytes,
		(unsigned long long)pool->budget_bytes, (unsigned long long)pool->used_bytes);
	if (pool->placement.huge)
		fprintf(out, ", %llu in huge pages", (unsigned long long)pool->huge_bytes);
	pthread_mutex_unlock(&pool->lock);
	if (shm_export && wf_shm_export_held(shm_export))
		fprintf(out, ", %u chunks of it looked at by peers",
			wf_shm_export_held(shm_export));
	fprintf(out, "\n");
}

static void write_registrations(FILE *out, const struct wf_engine *engine)
{
	const struct wf_counters *c = &engine->counters;

	fprintf(out, "registered: %llu bytes: %llu of the program's, %llu of the pool and links, %llu of devices, %llu cached; %llu pinned for devices; made %llu times, found made %llu times, %llu given up for others\n",
		(unsigned long long)atomic_load(&c->registered_bytes),
		(unsigned long long)atomic_load(&c->registered[WF_COUNTERS_USER]),
		(unsigned long long)atomic_load(&c->registered[WF_COUNTERS_POOL]),
		(unsigned long long)atomic_load(&c->registered[WF_COUNTERS_DEVICE]),
		(unsigned long long)atomic_load(&c->registered[WF_COUNTERS_CACHED]),
		(unsigned long long)atomic_load(&engine->pool.pinned_bytes),
		(unsigned long long)atomic_load(&c->registrations),
		(unsigned long long)atomic_load(&c->registration_hits),
		(unsigned long long)atomic_load(&c->registration_evictions));
}

static void write_events(FILE *out, const struct wf_engine *engine)
{
	const struct wf_recorder *r = &engine->loop.recorder;
	uint64_t first = wf_recorder_first(r), last = wf_recorder_last(r);
	uint64_t now_ns = wf_clock_now();

	fprintf(out, "the last %llu events of %llu:\n", (unsigned long long)(last - first),
		(unsigned long long)last);
	for (uint64_t n = first; n < last; n++) {
		char text[WF_RECORDER_TEXT_BYTES];
		struct wf_recorder_event e;

		if (!wf_recorder_get(r, n, &e))
			continue;
		wf_recorder_text(&e, text);
		fprintf(out, "%13.6f s  %s\n", -((double)now_ns - (double)e.time_ns) / WF_NS_PER_S,
			text);
	}
}

/* Parts that the worker alone can write. */

static void write_link(FILE *out, const struct wf_link *link)
{
	char state[WF_LINK_STATE_BYTES];

	wf_link_describe(link, state);
	fprintf(out, "link %u to %s at %s: %s; epoch %u, credit for %u frames, %u wait for it%s\n",
		link->number, wf_link_label(link),
		link->address[0] ? link->address : "no known address", state, link->probe.epoch,
		wf_credit_left(&link->tx.credit), link->keepalive.watch_count,
		link->above.drains ? "; it takes no more calls" : "");
	fprintf(out, "link %u keeps %llu bytes that came and wait, %llu of calls and answers; at most %llu of each%s\n",
		link->number, (unsigned long long)link->account.bytes[WF_LEDGER_RECEIVED],
		(unsigned long long)link->account.bytes[WF_LEDGER_OWED],
		(unsigned long long)wf_ledger_bound(link),
		link->account.stranger ? "; a stranger" : "");
}

/* Write some links, which are listed by their numbers.  Returns: are there no more? */
static bool write_some_links(struct dump *d)
{
	unsigned count = 0;

	WF_LIST_EACH(at, &d->worker->engine.link_list) {
		const struct wf_link *link = WF_CONTAINER(at, struct wf_link, node);

		/* Another name of a link is in the list too. */
		if (link->number <= d->link_number || link->same)
			continue;
		if (count++ == A_TURN)
			return false;
		write_link(d->out, link);
		d->link_number = link->number;
	}
	return true;
}

static void write_served(FILE *out, const struct wf_server_calls *serving)
{
	struct wf_map_node *at = NULL;
	char text[WF_DESCRIBE_BYTES];

	while ((at = wf_map_next(&serving->map, at))) {
		wf_server_call_describe(WF_CONTAINER(at, struct wf_server_call, node), text,
					sizeof(text));
		fprintf(out, "call to serve: %s\n", text);
	}
	WF_LIST_EACH(node, &serving->alone) {
		wf_server_call_describe(WF_CONTAINER(node, struct wf_server_call, link_node), text,
					sizeof(text));
		fprintf(out, "call to serve: %s\n", text);
	}
	if (serving->replies.kept_count)
		fprintf(out, "replies kept for callers who may ask again: %u, of %llu bytes\n",
			serving->replies.kept_count,
			(unsigned long long)serving->replies.kept_bytes);
}

/* Unmatched tensors: a wrong step or key shows here. */
struct unmatched {
	FILE *out;
	uint64_t now_ns;
	unsigned count;
};

static void write_tensor(void *ctx, const struct wf_record_tensor *t, const struct wf_link *from,
			 uint64_t since_ns)
{
	char text[WF_DESCRIBE_BYTES] = "";
	struct unmatched *u = ctx;

	if (++u->count > UNMATCHED_SHOWN)
		return;
	wf_describe_channel(t->step, t->key, t->key_bytes, text);
	fprintf(u->out, "not received:%s %llu bytes from %s, come %.1f s ago\n", text,
		(unsigned long long)t->body.bytes, wf_link_label(from),
		((double)u->now_ns - (double)since_ns) / WF_NS_PER_S);
}

static void write_channels(FILE *out, const struct wf_channels *c)
{
	struct unmatched u = { .out = out, .now_ns = c->engine->loop.now_ns };

	fprintf(out, "steps: %zu tensors came and are not received, %zu steps were aborted, %zu have ended\n",
		c->unexpected_queue->count, c->aborted.count, c->ended.count);
	wf_channels_unmatched(c, write_tensor, &u);
	if (u.count > UNMATCHED_SHOWN)
		fprintf(out, "not received: %u more\n", u.count - UNMATCHED_SHOWN);
	WF_LIST_EACH(at, &c->aborted.by_age) {
		struct wf_error e;

		wf_step_error(WF_CONTAINER(at, struct wf_step, node), &e);
		fprintf(out, "%s\n", e.text);
	}
}

/* Reference the operations that run.  No other thread can end them. */
static void gather_ops(struct dump *d)
{
	struct weft_node *node = d->worker->node;
	size_t count = 0;

	pthread_mutex_lock(&node->lock);
	WF_LIST_EACH(at, &node->ops)
		count += is_running(WF_CONTAINER(at, struct weft_op, node), d->worker);
	d->ops = count ? calloc(count, sizeof(struct weft_op *)) : NULL;
	WF_LIST_EACH(at, &node->ops) {
		struct weft_op *op = WF_CONTAINER(at, struct weft_op, node);

		/* One that another thread has submitted in between is too late. */
		if (!d->ops || d->op_count == count || !is_running(op, d->worker))
			continue;
		atomic_fetch_add(&op->refs, 1);
		d->ops[d->op_count++] = op;
	}
	pthread_mutex_unlock(&node->lock);
	if (count && !d->ops)
		fprintf(d->out, "no memory to tell of %zu operations\n", count);
}

/* Describe some operations, but those that have ended since, or have moved to another worker. */
static void write_some_ops(struct dump *d)
{
	size_t last = WF_MIN(d->op_next + A_TURN, d->op_count);

	while (d->op_next < last) {
		struct weft_op *op = d->ops[d->op_next++];

		if (is_running(op, d->worker))
			write_op(d->out, op, true);
		wf_op_put(op);
	}
}

/* Write what the worker alone can write, as much as a turn has time for.  Returns: is it all? */
static bool write_inside(struct dump *d)
{
	struct wf_worker *worker = d->worker;

	if (!d->gathered) {
		if (!write_some_links(d))
			return false;
		gather_ops(d);
	}
	d->gathered = true;
	write_some_ops(d);
	if (d->op_next < d->op_count)
		return false;
	write_served(d->out, &worker->serving);
	write_channels(d->out, &worker->channels);
	return true;
}

/* Write what any thread may, and print all.  Returns 0, or -ENOMEM. */
static int finish(struct dump *d, FILE *out)
{
	const struct wf_engine *engine = &d->worker->engine;
	bool whole;

	write_pool(d->out, &d->worker->engine);
	write_registrations(d->out, engine);
	write_events(d->out, engine);
	whole = !fclose(d->out);
	d->out = NULL;
	if (whole)
		fwrite(d->text, 1, d->bytes, out);
	return whole ? 0 : -ENOMEM;
}

/* Dumps by another thread. */

/* A question is freed by the later of the caller and the worker. */
struct question {
	struct wf_loop_task task;
	struct dump dump;
	atomic_uint refs;
	/* Under the node's lock. */
	unsigned turns; /* turns that have written a part */
	bool answered;
};

static void put(struct question *q)
{
	if (atomic_fetch_sub(&q->refs, 1) > 1)
		return;
	end(&q->dump);
	free(q);
}

static void answer(struct wf_loop_task *task)
{
	struct question *q = WF_CONTAINER(task, struct question, task);
	struct wf_worker *worker = q->dump.worker;
	struct weft_node *node = worker->node;
	bool all = write_inside(&q->dump);

	pthread_mutex_lock(&node->lock);
	q->answered = all;
	q->turns++;
	pthread_cond_broadcast(&node->ended);
	pthread_mutex_unlock(&node->lock);
	if (all)
		put(q);
	else
		wf_loop_submit_inside(&worker->engine.loop, &q->task);
}

/* Wait until the worker has written all, or has not written for long.  Returns whether it has. */
static bool wait_for_answer(struct question *q)
{
	struct weft_node *node = q->dump.worker->node;
	unsigned turns;
	bool answered;
	int err = 0;

	pthread_mutex_lock(&node->lock);
	while (!q->answered && err != ETIMEDOUT) {
		struct timespec at = wf_clock_timespec(wf_clock_now() + ANSWER_NS);

		turns = q->turns;
		while (q->turns == turns && err != ETIMEDOUT)
			err = pthread_cond_timedwait(&node->ended, &node->lock, &at);
		if (q->turns != turns)
			err = 0;
	}
	answered = q->answered;
	pthread_mutex_unlock(&node->lock);
	return answered;
}

/* Write for a worker that does not answer. */
static void write_silent(FILE *out, struct wf_worker *worker)
{
	struct weft_node *node = worker->node;
	char where[WF_WATCH_WHERE_BYTES];

	wf_watch_where(worker, where);
	fprintf(out, "the worker does not answer, and its links can't be shown: %s\n", where);
	pthread_mutex_lock(&node->lock);
	/* An operation that is seen to run below is freed after this, if it ends meanwhile. */
	atomic_store(&node->describing, true);
	WF_LIST_EACH(at, &node->ops) {
		const struct weft_op *op = WF_CONTAINER(at, struct weft_op, node);

		if (is_running(op, worker))
			write_op(out, op, false);
	}
	atomic_store(&node->describing, false);
	pthread_mutex_unlock(&node->lock);
}

static int dump_silent(struct wf_worker *worker, FILE *out)
{
	struct dump d;
	int err = -ENOMEM;

	start(&d, worker);
	if (d.out) {
		write_silent(d.out, worker);
		err = finish(&d, out);
	}
	end(&d);
	return err;
}

/* Returns 0, or -ENOMEM. */
static int ask(struct wf_worker *worker, FILE *out)
{
	struct question *q = calloc(1, sizeof(*q));
	int err = -ENOMEM;

	if (!q)
		return err;
	start(&q->dump, worker);
	q->task.run = answer;
	atomic_init(&q->refs, 1);
	if (q->dump.out) {
		atomic_store(&q->refs, 2);
		wf_loop_submit(&worker->engine.loop, &q->task);
		err = wait_for_answer(q) ? finish(&q->dump, out) : dump_silent(worker, out);
	}
	put(q);
	return err;
}

/* Returns 0, or -ENOMEM. */
static int dump_inside(struct wf_worker *worker, FILE *out)
{
	struct dump d;
	int err = -ENOMEM;

	start(&d, worker);
	if (d.out) {
		while (!write_inside(&d))
			;
		err = finish(&d, out);
	}
	end(&d);
	return err;
}

static int dump_worker(struct wf_worker *worker, FILE *out)
{
	int err;

	/* A callback runs on the worker's own thread. */
	if (wf_worker_inside(worker))
		return dump_inside(worker, out);
	if (!worker->node->manual || !pthread_equal(worker->thread, pthread_self()))
		return ask(worker, out);
	wf_turn_enter(worker);
	wf_loop_tick(&worker->engine.loop);
	err = dump_inside(worker, out);
	wf_turn_leave(worker);
	return err;
}

int wf_dump(struct weft_node *node, FILE *out)
{
	int err = 0;

	for (unsigned i = 0; i < node->worker_count && !err; i++)
		err = dump_worker(&node->workers[i], out);
	return err ? wf_last_set(err, "no memory for a dump") : 0;
}
