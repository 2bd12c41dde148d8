/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/worker.h"

#include <errno.h>
#include <stdio.h>

#include "core/attachment.h"
#include "core/drain.h"
#include "core/intercept.h"
#include "core/node.h"
#include "core/op.h"
#include "core/peer.h"
#include "core/relay.h"
#include "core/server_hooks.h"
#include "core/step_relay.h"
#include "core/turn.h"
#include "core/watch.h"
#include "util/clock.h"
#include "util/thread.h"

#define RECALL_TURN_NS (5 * WF_NS_PER_MS)

/*
 * Make the peer of @link before a record from it reaches the program, so that asking for the
 * sender of a tensor can't fail for lack of memory.
 */
static int meet(struct wf_worker *worker, struct wf_link *link)
{
	return wf_peer_meet(worker, link) ? 0 : -ENOMEM;
}

static int take_tensor(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_worker *worker = ctx;
	int err = meet(worker, link);

	return err || worker->node->closing ? err
					    : wf_channels_record(&worker->channels, link, record);
}

static int take_call(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_worker *worker = ctx;
	int err = meet(worker, link);

	return err || worker->node->closing ? err
					  : wf_server_call_begin(&worker->serving, link, record);
}

static int take_push(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_worker *worker = ctx;
	int err = meet(worker, link);

	return err || worker->node->closing ? err
					  : wf_window_push(&worker->windows, link, record);
}

static int take_blocks(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	(void)ctx;
	return wf_window_blocks(link, record);
}

static int take_ask(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_worker *worker = ctx;

	return worker->node->closing ? wf_window_turn_away(link, record) :
				       wf_window_ask(&worker->windows, link, record);
}

static int take_lend(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_worker *worker = ctx;

	return wf_remote_lend(&worker->remotes, link, record);
}

static int take_noted(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_worker *worker = ctx;

	return wf_remote_noted(&worker->remotes, link, record);
}

static void set_routes(struct wf_worker *worker)
{
	struct wf_routes *routes = &worker->routes;

	wf_route_set(routes, WF_RECORD_TENSOR, take_tensor, worker);
	wf_route_set(routes, WF_RECORD_CALL, take_call, worker);
	wf_route_set(routes, WF_RECORD_PUSH, take_push, worker);
	wf_route_set(routes, WF_RECORD_BLOCKS, take_blocks, worker);
	wf_route_set(routes, WF_RECORD_ASK, take_ask, worker);
	wf_route_set(routes, WF_RECORD_LEND, take_lend, worker);
	wf_route_set(routes, WF_RECORD_NOTED, take_noted, worker);
	wf_transfer_route(&worker->transfer, routes);
	wf_echo_route(&worker->echoes, routes);
	wf_step_end_route(&worker->channels, routes);
	wf_attachment_sets_route(&worker->attachment_sets, routes);
	wf_call_route(&worker->calls, routes);
	wf_server_call_route(&worker->serving, routes);
	wf_drain_route(worker, routes);
}

/* The link floor's sink: events are passed to the floors above. */

static void sink_up(void *ctx, struct wf_link *link)
{
	struct wf_worker *worker = ctx;

	wf_peer_met(worker, link);
	wf_step_end_up(&worker->channels, link);
	wf_drain_up(worker, link);
	wf_transfer_up(link);
	wf_remote_up(link);
	wf_peer_change_note(worker, link, NULL);
}

static void sink_proven(void *ctx, struct wf_link *link)
{
	wf_peer_met(ctx, link);
}

static void sink_paused(void *ctx, struct wf_link *link)
{
	(void)ctx;
	wf_transfer_paused(link);
}

static void sink_lane(void *ctx, struct wf_lane *lane, bool open)
{
	(void)ctx;
	wf_transfer_lane(lane, open);
}

static void sink_quiet(void *ctx, const struct wf_engine_rail *on)
{
	struct wf_worker *worker = ctx;

	wf_transfer_quiet(&worker->transfer, on);
}

static void sink_elsewhere(void *ctx, struct wf_link *link, struct wf_engine *home)
{
	wf_peer_move(ctx, link, WF_CONTAINER(home, struct wf_worker, engine));
}

static void sink_merged(void *ctx, struct wf_link *from, struct wf_link *into)
{
	struct wf_worker *worker = ctx;

	wf_peer_stand_for(from->user, into);
	wf_channels_merged(&worker->channels, from, into);
	if (into->state == WF_LINK_UP)
		sink_up(ctx, into);
}

static void sink_dying(void *ctx, struct wf_link *link, const struct wf_error *e)
{
	wf_watch_dying(ctx, link, e);
}

static void sink_down(void *ctx, struct wf_link *link, const struct wf_error *e)
{
	struct wf_worker *worker = ctx;

	wf_transfer_down(&worker->transfer, link, e);
	wf_remote_down(link, e);
	wf_channels_down(&worker->channels, link, e);
	wf_sending_down(&worker->attachments, link, e);
	wf_call_down(link, e);
	wf_server_call_down(link, e);
	wf_streams_down(link, e);
	wf_echo_down(link, e);
	wf_peer_change_note(worker, link, e);
	wf_peer_down(link);
}

static void sink_unused(void *ctx, struct wf_link *link)
{
	(void)ctx;
	wf_peer_unlinked(link);
}

static const struct wf_engine_sink sink = {
	.up = sink_up,
	.proven = sink_proven,
	.paused = sink_paused,
	.lane = sink_lane,
	.quiet = sink_quiet,
	.elsewhere = sink_elsewhere,
	.merged = sink_merged,
	.dying = sink_dying,
	.down = sink_down,
	.unused = sink_unused,
};

static void served_gone(struct wf_server_call *served)
{
	wf_server_hooks_gone(served);
	wf_drain_gone(wf_worker_of(served));
}

/* Opening. */

int wf_worker_init(struct wf_worker *worker, struct weft_node *node)
{
	struct wf_attachment_ops attachments = {
		.expect = wf_attachments_expect,
		.drop = wf_attachments_drop,
		.progress = wf_attachments_progress,
		.ctx = worker,
	};
	int err;

	worker->node = node;
	worker->thread = pthread_self();
	err = wf_baton_init(&worker->baton);
	if (err)
		return err;
	err = wf_transfer_init(&worker->transfer, &worker->engine);
	if (err) {
		wf_baton_fini(&worker->baton);
		return err;
	}
	wf_unexpected_init(&worker->unexpected_queue, &worker->engine, &worker->transfer);
	if (node->worker_count == 1)
		worker->unexpected_queue.relay = &wf_relay_functions;
	wf_channels_init(&worker->channels, &worker->unexpected_queue, wf_step_relay_tell, worker);
	wf_echo_init(&worker->echoes);
	wf_window_init(&worker->windows, &worker->transfer, &node->window_table,
		       &worker->unexpected_queue.pulls, &node->terms,
		       (unsigned)(worker - node->workers));
	wf_remotes_init(&worker->remotes, &worker->transfer, &worker->unexpected_queue.pulls);
	wf_attachment_sets_init(&worker->attachment_sets, &worker->unexpected_queue);
	wf_sending_init(&worker->attachments, &worker->transfer, WF_RECORD_ATTACHMENT);
	wf_streams_init(&worker->streams, &worker->transfer, &attachments);
	wf_call_init(&worker->calls, &worker->streams);
	wf_server_call_init(&worker->serving, &worker->streams, &node->services);
	worker->serving.given_up = wf_server_hooks_given_up;
	worker->serving.gone = served_gone;
	worker->serving.answered = wf_server_hooks_answered;
	if (node->interceptor_count) {
		worker->serving.admit = wf_intercept_admit;
		worker->serving.told = wf_intercept_served;
	}
	set_routes(worker);
	return 0;
}

void wf_worker_fini(struct wf_worker *worker)
{
	wf_channels_fini(&worker->channels);
	wf_server_call_fini(&worker->serving);
	wf_call_fini(&worker->calls);
	wf_streams_fini(&worker->streams);
	wf_attachment_sets_fini(&worker->attachment_sets);
	wf_echo_fini(&worker->echoes);
	wf_remotes_fini(&worker->remotes);
	wf_transfer_fini(&worker->transfer);
	wf_unexpected_fini(&worker->unexpected_queue);
	wf_baton_fini(&worker->baton);
}

int wf_worker_open(struct wf_worker *worker, struct wf_engine_config *config, struct wf_error *e)
{
	config->routes = &worker->routes;
	config->sink = &sink;
	config->sink_ctx = worker;
	return wf_engine_open(&worker->engine, config, e);
}

/* The worker's thread. */

static void *turn(void *arg)
{
	struct wf_worker *worker = arg;
	struct wf_engine *engine = &worker->engine;

	struct wf_loop *loop = &engine->loop;
	struct wf_loop_sleep sleep;
	uint64_t sleep_ns;

	atomic_store_explicit(&worker->driver, (uintptr_t)pthread_self(), memory_order_relaxed);
	wf_baton_enter(&worker->baton);
	/* A child that was forked in a callback has nothing more to do here. */
	while (!worker->stop && !loop->forked) {
		if (wf_baton_is_wanted(&worker->baton))
			wf_baton_yield(&worker->baton);
		if (wf_loop_round(loop, UINT64_MAX, &sleep_ns) != WF_LOOP_SLEEP)
			continue;
		wf_baton_sleep(&worker->baton);
		wf_loop_sleep(loop, sleep_ns, &sleep);
		if (wf_baton_wake(&worker->baton))
			wf_loop_doubt(loop);
		else
			wf_loop_slept(loop, &sleep);
	}
	if (!loop->forked)
		wf_baton_leave(&worker->baton);
	return NULL;
}

int wf_worker_start(struct wf_worker *worker)
{
	char name[16];
	pthread_t thread;
	int err;

	snprintf(name, sizeof(name), "weft worker %u",
		 (unsigned)(worker - worker->node->workers) % 100);
	err = wf_thread_start(&thread, name, turn, worker);
	if (!err)
		worker->thread = thread;
	return err;
}

/* A task sets the flag, as only a task ends a wait that runs. */
static void stop(struct wf_loop_task *task)
{
	WF_CONTAINER(task, struct wf_worker, stop_task)->stop = true;
}

void wf_worker_interrupt(struct wf_worker *worker)
{
	worker->stop_task.run = stop;
	wf_loop_submit(&worker->engine.loop, &worker->stop_task);
}

void wf_worker_stop(struct wf_worker *worker)
{
	wf_worker_interrupt(worker);
	pthread_join(worker->thread, NULL);
}

/* Closing. */

void wf_worker_end(struct wf_worker *worker)
{
	/* The thread that drove a manual node before may be freeing what came out of a queue. */
	if (worker->node->manual) {
		worker->thread = pthread_self();
		wf_turn_enter(worker);
	} else {
		atomic_store_explicit(&worker->driver, (uintptr_t)pthread_self(),
				      memory_order_relaxed);
	}
	wf_server_call_close(&worker->serving);
	/* Submitted operations begin, so that they can end, and answers to calls leave. */
	wf_loop_tick(&worker->engine.loop);
	wf_loop_catch_up(&worker->engine.loop);
	wf_loop_poll(&worker->engine.loop);
	wf_channels_cancel(&worker->channels);
	wf_op_starve(worker);
}

bool wf_worker_recall(struct wf_worker *worker)
{
	struct wf_error e;

	wf_error_set(&e, -ECANCELED, "this node has closed");
	return wf_transfer_recall(&worker->transfer, &e);
}

void wf_worker_live_on(struct wf_worker *worker)
{
	struct wf_engine *engine = &worker->engine;

	wf_loop_wait(&engine->loop, engine->loop.now_ns + RECALL_TURN_NS);
}
