/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/dump.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "core/describe.h"
#include "core/last.h"
#include "core/node.h"
#include "core/op.h"
#include "core/watch.h"
#include "core/worker.h"
#include "link/lease.h"
#include "link/ledger.h"
#include "util/clock.h"

#define UNMATCHED_SHOWN 64 /* unmatched tensors may number a million */
#define ANSWER_NS WF_NS_PER_S /* a worker turns within a second, asleep or not */

/* A dump is freed by the later of the caller and the worker. */
struct dump {
	struct wf_loop_task task;
	struct wf_worker *worker;
	atomic_uint refs;
	char *text;
	size_t bytes;
	bool done; /* under the node's lock */
};

static void put(struct dump *d)
{
	if (atomic_fetch_sub(&d->refs, 1) > 1)
		return;
	free(d->text);
	free(d);
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

/* @inside: the worker writes, and may tell what each operation waits for. */
static void write_ops(FILE *out, struct wf_worker *worker, bool inside)
{
	struct weft_node *node = worker->node;
	uint64_t now_ns = wf_clock_now();
	char text[WF_DESCRIBE_BYTES];

	pthread_mutex_lock(&node->lock);
	WF_LIST_EACH(at, &node->ops) {
		struct weft_op *op = WF_CONTAINER(at, struct weft_op, node);

		/* An operation that is not submitted belongs to the thread that makes it. */
		if (op->worker != worker || !atomic_load(&op->submitted) ||
		    atomic_load(&op->state) != WF_OP_RUNNING)
			continue;
		wf_describe_op(op, text);
		fprintf(out, "operation %llu: %s, begun %.1f s ago",
			(unsigned long long)op->number, text,
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
	pthread_mutex_unlock(&node->lock);
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

static void write_links(FILE *out, const struct wf_engine *engine)
{
	char state[WF_LINK_STATE_BYTES];

	WF_LIST_EACH(at, &engine->link_list) {
		const struct wf_link *link = WF_CONTAINER(at, struct wf_link, node);

		if (link->same)
			continue; /* another name of a link that is in the list too */
		wf_link_describe(link, state);
		fprintf(out,
			"link %u to %s at %s: %s; epoch %u, credit for %u frames, %u wait for it%s\n",
			link->number, wf_link_label(link),
			link->address[0] ? link->address : "no known address", state,
			link->probe.epoch, wf_credit_left(&link->tx.credit),
			link->keepalive.watch_count,
			link->above.drains ? "; it takes no more calls" : "");
		fprintf(out, "link %u keeps %llu bytes that came and wait, %llu of calls and answers; at most %llu of each%s\n",
			link->number, (unsigned long long)link->account.bytes[WF_LEDGER_RECEIVED],
			(unsigned long long)link->account.bytes[WF_LEDGER_OWED],
			(unsigned long long)wf_ledger_bound(link),
			link->account.stranger ? "; a stranger" : "");
	}
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

static void write_inside(FILE *out, struct wf_worker *worker)
{
	write_node(out, worker);
	write_links(out, &worker->engine);
	write_ops(out, worker, true);
	write_served(out, &worker->serving);
	write_channels(out, &worker->channels);
	write_pool(out, &worker->engine);
	write_registrations(out, &worker->engine);
	write_events(out, &worker->engine);
}

/* Write into memory first: the program's file may be slow, and locks are held. */
static void compose(struct wf_worker *worker, void (*write)(FILE *out, struct wf_worker *worker),
		    char **text, size_t *bytes)
{
	FILE *out = open_memstream(text, bytes);

	if (!out)
		return;
	write(out, worker);
	if (fclose(out)) {
		free(*text);
		*text = NULL;
	}
}

static void answer(struct wf_loop_task *task)
{
	struct dump *d = WF_CONTAINER(task, struct dump, task);
	struct weft_node *node = d->worker->node;

	compose(d->worker, write_inside, &d->text, &d->bytes);
	pthread_mutex_lock(&node->lock);
	d->done = true;
	pthread_cond_broadcast(&node->ended);
	pthread_mutex_unlock(&node->lock);
	put(d);
}

/* Dumps by another thread. */

static bool answered(struct dump *d)
{
	struct weft_node *node = d->worker->node;
	uint64_t until_ns = wf_clock_now() + ANSWER_NS;
	struct timespec at = wf_clock_timespec(until_ns);
	int err = 0;
	bool done;

	wf_loop_submit(&d->worker->engine.loop, &d->task);
	pthread_mutex_lock(&node->lock);
	while (!d->done && err != ETIMEDOUT)
		err = pthread_cond_timedwait(&node->ended, &node->lock, &at);
	done = d->done;
	pthread_mutex_unlock(&node->lock);
	return done;
}

static void write_outside(FILE *out, struct wf_worker *worker)
{
	char where[WF_WATCH_WHERE_BYTES];

	wf_watch_where(worker, where);
	write_node(out, worker);
	fprintf(out, "the worker does not answer, and its links can't be shown: %s\n", where);
	write_ops(out, worker, false);
	write_pool(out, &worker->engine);
	write_registrations(out, &worker->engine);
	write_events(out, &worker->engine);
}

/* Takes @text. */
static int print(FILE *out, char *text, size_t bytes)
{
	if (!text)
		return wf_last_set(-ENOMEM, "no memory for a dump");
	fwrite(text, 1, bytes, out);
	free(text);
	return 0;
}

static int ask(struct wf_worker *worker, FILE *out)
{
	struct dump *d = calloc(1, sizeof(*d));
	char *text = NULL;
	size_t bytes = 0;

	if (!d)
		return wf_last_set(-ENOMEM, "no memory for a dump");
	d->worker = worker;
	d->task.run = answer;
	atomic_init(&d->refs, 2);
	if (answered(d)) {
		text = d->text;
		bytes = d->bytes;
		d->text = NULL;
	} else {
		compose(worker, write_outside, &text, &bytes);
	}
	put(d);
	return print(out, text, bytes);
}

static int dump_worker(struct wf_worker *worker, FILE *out)
{
	char *text = NULL;
	size_t bytes = 0;

	/* A callback runs on the worker's own thread. */
	if (!wf_worker_inside(worker)) {
		if (!worker->node->manual || !pthread_equal(worker->thread, pthread_self()))
			return ask(worker, out);
		wf_loop_tick(&worker->engine.loop);
	}
	compose(worker, write_inside, &text, &bytes);
	return print(out, text, bytes);
}

int wf_dump(struct weft_node *node, FILE *out)
{
	int err = 0;

	for (unsigned i = 0; i < node->worker_count && !err; i++)
		err = dump_worker(&node->workers[i], out);
	return err;
}
