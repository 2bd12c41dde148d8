/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/desk.h"

#include <errno.h>

#include "core/attachment.h"
#include "core/drain.h"
#include "core/intercept.h"
#include "core/node.h"
#include "core/op.h"
#include "core/peer.h"
#include "core/server_hooks.h"
#include "core/steps.h"
#include "core/watch.h"
#include "util/clock.h"
#include "util/thread.h"

#define RECALL_TURN_NS (5 * WF_NS_PER_MS)

/*
 * Make the peer of @link before a record from it reaches the program, so that asking for the
 * sender of a tensor can't fail for lack of memory.
 */
static int meet(struct wf_desk *desk, struct wf_link *link)
{
	return wf_peer_of(desk, link) ? 0 : -ENOMEM;
}

static int take_tensor(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_desk *desk = ctx;
	int err = meet(desk, link);

	return err || desk->node->closing ? err : wf_channels_record(&desk->channels, link, record);
}

static int take_call(void *ctx, struct wf_link *link, const struct wf_record *record)
{
	struct wf_desk *desk = ctx;
	int err = meet(desk, link);

	return err || desk->node->closing ? err
					  : wf_server_call_begin(&desk->serving, link, record);
}

static void set_routes(struct wf_desk *desk)
{
	struct wf_routes *routes = &desk->routes;

	wf_route_set(routes, WF_RECORD_TENSOR, take_tensor, desk);
	wf_route_set(routes, WF_RECORD_CALL, take_call, desk);
	wf_transfer_route(&desk->transfer, routes);
	wf_echo_route(&desk->echoes, routes);
	wf_step_end_route(&desk->channels, routes);
	wf_bundles_route(&desk->bundles, routes);
	wf_call_route(&desk->calls, routes);
	wf_server_call_route(&desk->serving, routes);
	wf_drain_route(routes);
}

/* The link floor's sink: events are passed to the floors above. */

static void sink_up(void *ctx, struct wf_link *link)
{
	struct wf_desk *desk = ctx;

	wf_peer_met(desk, link);
	wf_step_end_up(&desk->channels, link);
	wf_drain_up(desk, link);
	wf_transfer_up(link);
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

static void sink_quiet(void *ctx, const struct wf_worker_rail *on)
{
	struct wf_desk *desk = ctx;

	wf_transfer_quiet(&desk->transfer, on);
}

static void sink_elsewhere(void *ctx, struct wf_link *link, struct wf_worker *home)
{
	wf_peer_move(ctx, link, WF_CONTAINER(home, struct wf_desk, worker));
}

static void sink_merged(void *ctx, struct wf_link *from, struct wf_link *into)
{
	struct wf_desk *desk = ctx;

	wf_peer_stand_for(from->user, into);
	wf_channels_merged(&desk->channels, from, into);
	if (into->state == WF_LINK_UP)
		sink_up(ctx, into);
}

static void sink_dying(void *ctx, struct wf_link *link, const struct wf_error *e)
{
	wf_watch_dying(ctx, link, e);
}

static void sink_down(void *ctx, struct wf_link *link, const struct wf_error *e)
{
	struct wf_desk *desk = ctx;

	wf_transfer_down(link, e);
	wf_channels_down(&desk->channels, link, e);
	wf_sending_down(&desk->attachments, link, e);
	wf_call_down(link, e);
	wf_server_call_down(link, e);
	wf_streams_down(link, e);
	wf_echo_down(link, e);
}

static const struct wf_worker_sink sink = {
	.up = sink_up,
	.paused = sink_paused,
	.lane = sink_lane,
	.quiet = sink_quiet,
	.elsewhere = sink_elsewhere,
	.merged = sink_merged,
	.dying = sink_dying,
	.down = sink_down,
};

static void served_gone(struct wf_server_call *served)
{
	wf_server_hooks_gone(served);
	wf_drain_gone(WF_CONTAINER(served->serving, struct wf_desk, serving));
}

/* Opening. */

int wf_desk_init(struct wf_desk *desk, struct weft_node *node)
{
	struct wf_beside beside = {
		.expect = wf_attachments_expect,
		.drop = wf_attachments_drop,
		.progress = wf_attachments_progress,
		.ctx = desk,
	};
	int err;

	desk->node = node;
	desk->thread = pthread_self();
	err = wf_transfer_init(&desk->transfer, &desk->worker);
	if (err)
		return err;
	wf_unexpected_init(&desk->unexpected_queue, &desk->worker, &desk->transfer);
	wf_channels_init(&desk->channels, &desk->unexpected_queue, wf_steps_relay, desk);
	wf_echo_init(&desk->echoes);
	wf_bundles_init(&desk->bundles, &desk->unexpected_queue);
	wf_sending_init(&desk->attachments, &desk->transfer, WF_RECORD_ATTACHMENT);
	wf_streams_init(&desk->streams, &desk->transfer, &beside);
	wf_call_init(&desk->calls, &desk->streams);
	wf_server_call_init(&desk->serving, &desk->streams, &node->services);
	desk->serving.given_up = wf_server_hooks_given_up;
	desk->serving.gone = served_gone;
	desk->serving.answered = wf_server_hooks_answered;
	if (node->interceptor_count) {
		desk->serving.admit = wf_intercept_admit;
		desk->serving.told = wf_intercept_served;
	}
	set_routes(desk);
	return 0;
}

void wf_desk_fini(struct wf_desk *desk)
{
	wf_channels_fini(&desk->channels);
	wf_server_call_fini(&desk->serving);
	wf_call_fini(&desk->calls);
	wf_streams_fini(&desk->streams);
	wf_bundles_fini(&desk->bundles);
	wf_echo_fini(&desk->echoes);
	wf_transfer_fini(&desk->transfer);
	wf_unexpected_fini(&desk->unexpected_queue);
}

int wf_desk_open(struct wf_desk *desk, struct wf_worker_config *config, struct wf_error *e)
{
	config->routes = &desk->routes;
	config->sink = &sink;
	config->sink_ctx = desk;
	return wf_worker_open(&desk->worker, config, e);
}

/* The desk's thread. */

static void *turn(void *arg)
{
	struct wf_desk *desk = arg;
	struct wf_worker *w = &desk->worker;

	/* A child that was forked in a callback has nothing more to do here. */
	while (!desk->stop && !w->loop.forked)
		wf_loop_wait(&w->loop, wf_clock_now() + WF_NS_PER_S);
	return NULL;
}

int wf_desk_start(struct wf_desk *desk)
{
	return wf_thread_start(&desk->thread, turn, desk);
}

/* A task sets the flag, as only a task ends a wait that runs. */
static void stop(struct wf_task *task)
{
	WF_CONTAINER(task, struct wf_desk, stop_task)->stop = true;
}

void wf_desk_stop(struct wf_desk *desk)
{
	desk->stop_task.run = stop;
	wf_loop_submit(&desk->worker.loop, &desk->stop_task);
	pthread_join(desk->thread, NULL);
}

/* Closing. */

void wf_desk_end(struct wf_desk *desk)
{
	desk->thread = pthread_self();
	desk->polling = true;
	wf_server_call_close(&desk->serving);
	/* Submitted operations begin, so that they can end. */
	wf_loop_poll(&desk->worker.loop);
	wf_channels_cancel(&desk->channels);
	wf_op_starve(desk);
}

bool wf_desk_recall(struct wf_desk *desk)
{
	struct wf_error e;

	wf_error_set(&e, -ECANCELED, "this node has closed");
	return wf_transfer_recall(&desk->transfer, &e);
}

void wf_desk_live_on(struct wf_desk *desk)
{
	struct wf_worker *w = &desk->worker;

	wf_loop_wait(&w->loop, w->loop.now_ns + RECALL_TURN_NS);
}
