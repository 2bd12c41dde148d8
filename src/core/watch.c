/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The watchdog: a line in the log that says which operation waits for which
 * peer, when the operation stands still for WEFT_STALL, when its deadline
 * passes, and when its peer is lost.
 *
 * Operations are looked at ten times per WEFT_STALL, so a line comes late by a
 * tenth of it at most.  Lines beyond what a person reads are counted instead.
 */
#include "core/watch.h"

#include <errno.h>
#include <stdio.h>

#include "core/describe.h"
#include "core/node.h"
#include "core/op.h"
#include "core/worker.h"
#include "util/clock.h"

#define LOOKS 10       /* looks in one WEFT_STALL */
#define LINES_MAX 16   /* lines in one second */

/* An offered body may be on its way unseen by its owner: at 60 MiB/s at least. */
#define OFFERED_NS_PER_BYTE 16

static void look(struct wf_timer *timer);

static double seconds(uint64_t ns)
{
	return (double)ns / WF_NS_PER_S;
}

/* Log how many operations got no line. */
static void say_more(struct wf_worker *worker, int level, unsigned count)
{
	if (count)
		wf_log(&worker->engine.log, level,
		       "and %u more operations, which are not named here but by weft_dump", count);
}

/* Returns whether another line may be written; if not, the line is counted. */
static bool may_say(struct wf_worker *worker, int level)
{
	struct wf_watch *watch = &worker->watch;
	struct wf_engine *engine = &worker->engine;

	if (engine->loop.now_ns - watch->second_ns >= WF_NS_PER_S) {
		say_more(worker, level, watch->unsaid);
		watch->second_ns = engine->loop.now_ns;
		watch->lines = watch->unsaid = 0;
	}
	if (watch->lines < LINES_MAX) {
		watch->lines++;
		return true;
	}
	watch->unsaid++;
	return false;
}

static void say(struct weft_op *op, int level, const char *what)
{
	struct wf_engine *engine = &op->worker->engine;
	char name[WF_DESCRIBE_BYTES], wait[WF_DESCRIBE_BYTES];

	if (!wf_log_hears(&engine->log, level) || !may_say(op->worker, level))
		return;
	wf_describe_op(op, name);
	wf_describe_wait(op, wait);
	wf_log(&engine->log, level, "%s %s: %s", name, what, wait);
}

static uint64_t patience_ns(const struct weft_op *op)
{
	return op->worker->engine.options.stall_ns +
	       wf_describe_offered_bytes(op) * OFFERED_NS_PER_BYTE;
}

/* Operations worth a line, as many as get one. */
struct gathered {
	struct weft_op *ops[LINES_MAX];
	unsigned count, more, running;
};

/*
 * Gather operations that run and are @wanted.  Lines about them are written without the lock,
 * for the log is the program's and may be slow; operations can't go meanwhile, for this is the
 * thread that ends them.
 */
static void gather(struct wf_worker *worker, bool (*wanted)(struct weft_op *op, const void *arg),
		   const void *arg, struct gathered *g)
{
	struct weft_node *node = worker->node;

	*g = (struct gathered){ 0 };
	pthread_mutex_lock(&node->lock);
	WF_LIST_EACH(at, &node->ops) {
		struct weft_op *op = WF_CONTAINER(at, struct weft_op, node);

		if (op->worker != worker || !atomic_load(&op->submitted) || !op->started ||
		    op->outcome.known)
			continue;
		g->running++;
		if (!wanted(op, arg))
			continue;
		if (g->count < LINES_MAX)
			g->ops[g->count++] = op;
		else
			g->more++;
	}
	pthread_mutex_unlock(&node->lock);
}

/* Note the progress of @op.  Returns whether it stands still and is to be logged now. */
static bool stands_still(struct weft_op *op, const void *arg)
{
	uint64_t now_ns = op->worker->engine.loop.now_ns;
	uint64_t progress = wf_describe_progress(op);

	(void)arg;
	if (op->class->patient || op->patient)
		return false;
	if (progress != op->watched.progress) {
		op->watched.progress = progress;
		op->watched.moved_ns = op->watched.told_ns = now_ns;
	}
	if (now_ns - op->watched.told_ns < patience_ns(op))
		return false;
	op->watched.told_ns = now_ns;
	return true;
}

static void arm(struct wf_worker *worker)
{
	struct wf_engine *engine = &worker->engine;

	if (engine->options.stall_ns && wf_log_hears(&engine->log, WF_LOG_WARN))
		wf_loop_timer(&engine->loop, &worker->watch.timer,
			      engine->loop.now_ns + engine->options.stall_ns / LOOKS, look);
}

static void look(struct wf_timer *timer)
{
	struct wf_worker *worker = WF_CONTAINER(timer, struct wf_worker, watch.timer);
	struct gathered g;
	char what[64];

	gather(worker, stands_still, NULL, &g);
	for (unsigned i = 0; i < g.count; i++) {
		(void)snprintf(what, sizeof(what), "stands still for %.1f s",
			       seconds(worker->engine.loop.now_ns - g.ops[i]->watched.moved_ns));
		say(g.ops[i], WF_LOG_WARN, what);
	}
	say_more(worker, WF_LOG_WARN, g.more);
	if (g.running)
		arm(worker);
}

/* Watch @op, which has begun. */
void wf_watch_begin(struct weft_op *op)
{
	if (op->outcome.known)
		return;
	op->watched.progress = wf_describe_progress(op);
	op->watched.moved_ns = op->watched.told_ns = op->worker->engine.loop.now_ns;
	if (!op->worker->watch.timer.armed)
		arm(op->worker);
}

/* Log that the deadline of @op passes, before its state changes. */
void wf_watch_late(struct weft_op *op)
{
	const struct wf_engine *engine = &op->worker->engine;
	uint64_t took_ns = engine->loop.now_ns - op->time.made_ns;
	/* A deadline shorter than WEFT_STALL is the program's own affair: a note. */
	bool long_ago = engine->options.stall_ns && took_ns >= engine->options.stall_ns;
	char what[64];

	if (!op->started || op->outcome.known)
		return;
	(void)snprintf(what, sizeof(what), "has not ended in %.3g s", seconds(took_ns));
	say(op, long_ago ? WF_LOG_WARN : WF_LOG_INFO, what);
}

/* Returns whether @op needs the peer of the link @arg. */
static bool needs(struct weft_op *op, const void *arg)
{
	return wf_peer_is_reached_by(op->peer, op->worker, arg) ||
	       (op->class->source && op->class->source(op) == arg);
}

/* Log operations that wait for the peer of @link, lost because of @e, before they change. */
void wf_watch_dying(struct wf_worker *worker, const struct wf_link *link, const struct wf_error *e)
{
	/* A peer that leaves in order is no fault. */
	int level = worker->engine.options.stall_ns && e->code != -ESHUTDOWN ? WF_LOG_WARN
									   : WF_LOG_INFO;
	char what[WF_ERROR_BYTES + 32];
	struct gathered g;

	if (worker->node->closing || !wf_log_hears(&worker->engine.log, level))
		return;
	gather(worker, needs, link, &g);
	(void)snprintf(what, sizeof(what), "fails, for %s", e->text);
	for (unsigned i = 0; i < g.count; i++)
		say(g.ops[i], level, what);
	say_more(worker, level, g.more);
}

/* Write where the worker is, as seen from outside. */
void wf_watch_where(const struct wf_worker *worker, char text[WF_WATCH_WHERE_BYTES])
{
	const struct wf_recorder *r = &worker->engine.loop.recorder;
	uint64_t turn_ns = atomic_load(&r->turn_ns), now_ns = wf_clock_now();
	const char *call = atomic_load(&r->call), *provider = atomic_load(&r->provider);
	double since = now_ns > turn_ns ? seconds(now_ns - turn_ns) : 0;

	if (call)
		(void)snprintf(text, WF_WATCH_WHERE_BYTES, "for %.1f s it is inside %s%s%s", since,
			       call, provider ? " of " : "", provider ? provider : "");
	else if (worker->node->manual)
		(void)snprintf(text, WF_WATCH_WHERE_BYTES,
			       "its owner has not driven it for %.1f s", since);
	else
		(void)snprintf(text, WF_WATCH_WHERE_BYTES, "its last turn began %.1f s ago", since);
}

/* Log that the worker is stuck, which it can't do itself.  Threads: any. */
void wf_watch_worker(struct wf_worker *worker)
{
	const struct wf_engine *engine = &worker->engine;
	uint64_t stall_ns = engine->options.stall_ns, now_ns = wf_clock_now();
	uint64_t turn_ns = atomic_load(&engine->loop.recorder.turn_ns);
	uint64_t told_ns = atomic_load(&worker->watch.stuck_told_ns);
	/* A worker polls once more after it has set asleep. */
	bool asleep = atomic_load(&engine->loop.poller.asleep) &&
		      !atomic_load(&engine->loop.recorder.call);
	char where[WF_WATCH_WHERE_BYTES];

	if (!stall_ns || asleep || now_ns < turn_ns + stall_ns || now_ns < told_ns + stall_ns ||
	    !atomic_compare_exchange_strong(&worker->watch.stuck_told_ns, &told_ns, now_ns))
		return;
	wf_watch_where(worker, where);
	wf_log_outside(&engine->log, WF_LOG_WARN, "the worker of this node does not turn: %s",
		       where);
}
