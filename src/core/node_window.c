/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/node_window.h"

#include <errno.h>
#include <stdlib.h>

#include "core/await.h"
#include "core/last.h"
#include "core/node.h"
#include "core/op.h"
#include "core/peer.h"
#include "core/turn.h"
#include "core/worker.h"
#include "util/clock.h"

/* The task that stops a window's uses at one worker. */
struct wf_node_window_stop {
	struct wf_loop_task task;
	struct weft_window *window;
	struct wf_worker *worker;
};

static struct weft_window *handle_of(struct wf_window *window)
{
	return WF_CONTAINER(window, struct weft_window, window);
}

static struct wf_worker *first_worker(const struct weft_window *window)
{
	return &window->owner->workers[0];
}

/* Notes */

static enum weft_status admits(struct wf_window *window, struct wf_windows *at,
			       struct wf_link *link, const struct wf_access_push *push)
{
	struct weft_window *handle = handle_of(window);
	const struct wf_node_window_filter *filter = &handle->filter;
	bool room;

	if (filter->admits && !filter->admits(filter->ctx, at, link, push))
		return WEFT_ABORTED;
	if (!(push->flags & WF_ACCESS_PUSH_NOTED))
		return WEFT_OK;
	pthread_mutex_lock(&handle->lock);
	room = handle->note_count < WEFT_NOTES_MAX;
	handle->note_count += room;
	pthread_mutex_unlock(&handle->lock);
	return room ? WEFT_OK : WEFT_RESOURCE_EXHAUSTED;
}

static void not_told(struct wf_window *window, struct wf_window_note *note)
{
	struct weft_window *handle = handle_of(window);

	if (handle->filter.lost)
		handle->filter.lost(handle->filter.ctx, note);
	free(note);
	pthread_mutex_lock(&handle->lock);
	handle->note_count--;
	pthread_mutex_unlock(&handle->lock);
}

static struct wf_window_note *pop_note(struct weft_window *window)
{
	struct wf_list *node;

	pthread_mutex_lock(&window->lock);
	node = wf_list_pop(&window->notes);
	window->note_count -= node != NULL;
	pthread_mutex_unlock(&window->lock);
	return node ? WF_CONTAINER(node, struct wf_window_note, node) : NULL;
}

/* Give notes to the operations that wait, each the first.  Threads: owner, the first worker. */
static void pass_notes(struct weft_window *window)
{
	struct wf_window_note *note;
	struct wf_list *taker;

	while ((taker = wf_list_first(&window->takers)) && (note = pop_note(window))) {
		wf_list_remove(taker);
		wf_note_finish(taker, note);
	}
}

static void pass(struct wf_loop_task *task)
{
	struct weft_window *window = WF_CONTAINER(task, struct weft_window, pass_task);

	atomic_store(&window->passing, false);
	pass_notes(window);
}

static void told(struct wf_window *window, struct wf_windows *at, struct wf_link *link,
		 bool counts, struct wf_window_note *note)
{
	struct wf_worker *worker = WF_CONTAINER(at, struct wf_worker, windows);
	struct weft_window *handle = handle_of(window);

	if (counts) {
		atomic_fetch_add(&handle->puts, 1);
		wf_await_wake(handle->owner);
	}
	if (!note)
		return;
	note->from = wf_peer_of(worker, link);
	pthread_mutex_lock(&handle->lock);
	wf_list_append(&handle->notes, &note->node);
	pthread_mutex_unlock(&handle->lock);
	if (worker == first_worker(handle))
		pass_notes(handle);
	else if (!atomic_exchange(&handle->passing, true))
		wf_loop_submit(&first_worker(handle)->engine.loop, &handle->pass_task);
}

void wf_node_window_take(struct weft_window *window, struct weft_op *op)
{
	wf_list_append(&window->takers, &op->note.taker);
	pass_notes(window);
}

/* Opening and closing */

int wf_node_window_open(struct weft_node *node, void *memory, size_t bytes, unsigned rights,
			struct wf_kind_body *device, struct weft_window **window)
{
	size_t shares = node->worker_count;
	struct weft_window *fresh = calloc(1, sizeof(*fresh) + shares * sizeof(fresh->shares[0]));
	int err = -ENOMEM;

	if (!fresh)
		goto record;
	fresh->stops = calloc(shares, sizeof(fresh->stops[0]));
	if (!fresh->stops)
		goto free_window;
	err = -pthread_mutex_init(&fresh->lock, NULL);
	if (err)
		goto free_window;
	fresh->owner = node;
	fresh->device = device;
	fresh->window = (struct wf_window){
		.at = memory,
		.bytes = bytes,
		.rights = rights,
		.device = device,
		.admits = admits,
		.told = told,
		.not_told = not_told,
		.shares = fresh->shares,
	};
	fresh->pass_task.run = pass;
	wf_list_init(&fresh->notes);
	wf_list_init(&fresh->takers);
	wf_list_init(&fresh->over_notice.node);
	for (size_t i = 0; i < shares; i++)
		wf_list_init(&fresh->shares[i].uses);
	err = wf_window_add(&node->window_table, &fresh->window);
	if (err)
		goto destroy_lock;
	pthread_mutex_lock(&node->lock);
	wf_list_append(&node->windows, &fresh->node);
	pthread_mutex_unlock(&node->lock);
	*window = fresh;
	return 0;

destroy_lock:
	pthread_mutex_destroy(&fresh->lock);
free_window:
	free(fresh->stops);
	free(fresh);
record:
	wf_kind_close(device);
	return wf_last_set(err, err == -ENOSPC ? "the node has too many windows"
					       : "no memory for a window");
}

void wf_node_window_free(struct weft_window *window)
{
	struct wf_window_note *note;

	while ((note = pop_note(window)))
		free(note);
	pthread_mutex_destroy(&window->lock);
	wf_kind_close(window->device);
	free(window->stops);
	free(window);
}

/* Let the thread go on that closes the window: the callbacks of its takers have returned. */
static void tell_over(struct wf_loop_notice *notice)
{
	struct weft_window *window = WF_CONTAINER(notice, struct weft_window, over_notice);
	struct weft_node *node = window->owner;

	atomic_store(&window->over, true);
	wf_await_wake(node); /* the window may be gone */
}

/* Runs at the first worker, after all that others have told it of the window. */
static void end(struct wf_loop_task *task)
{
	struct weft_window *window = WF_CONTAINER(task, struct weft_window, end_task);
	struct wf_list *taker;
	struct wf_error e;

	wf_error_set(&e, -ECANCELED, "the window was closed");
	while ((taker = wf_list_pop(&window->takers)))
		wf_note_fail(taker, &e);
	if (window->ended) {
		window->ended(window->ended_ctx);
		return;
	}
	window->over_notice.run = tell_over;
	wf_loop_defer(&first_worker(window)->engine.loop, &window->over_notice);
}

static void quiet(struct wf_window_share *share)
{
	struct weft_window *window = share->ctx;

	if (atomic_fetch_sub(&window->busy, 1) == 1)
		wf_loop_submit(&first_worker(window)->engine.loop, &window->end_task);
}

static void stop(struct wf_loop_task *task)
{
	struct wf_node_window_stop *s = WF_CONTAINER(task, struct wf_node_window_stop, task);

	wf_window_stop(&s->worker->windows, &s->window->window);
}

static bool is_over(void *ctx)
{
	const struct weft_window *window = ctx;

	return atomic_load(&window->over);
}

void wf_node_window_shut(struct weft_window *window, void (*ended)(void *ctx), void *ctx)
{
	struct weft_node *node = window->owner;
	unsigned count = node->worker_count;

	window->ended = ended;
	window->ended_ctx = ctx;
	wf_publish_forget(node, window);
	wf_window_remove(&node->window_table, &window->window);
	window->end_task.run = end;
	atomic_store(&window->busy, count);
	for (unsigned i = 0; i < count; i++) {
		window->shares[i].quiet = quiet;
		window->shares[i].ctx = window;
		window->stops[i] = (struct wf_node_window_stop){
			.task.run = stop, .window = window, .worker = &node->workers[i],
		};
		wf_turn_run(&node->workers[i], &window->stops[i].task, wf_clock_now());
	}
}

void wf_node_window_drop(struct weft_window *window)
{
	struct weft_node *node = window->owner;

	pthread_mutex_lock(&node->lock);
	wf_list_remove(&window->node);
	pthread_mutex_unlock(&node->lock);
	wf_node_window_free(window);
}

int wf_node_window_close(struct weft_window *window)
{
	int err;

	wf_node_window_shut(window, NULL, NULL);
	err = wf_await_that(first_worker(window), is_over, window, UINT64_MAX);
	if (!err)
		wf_node_window_drop(window);
	return err;
}

void wf_node_window_describe(const struct weft_window *window, void *descriptor)
{
	struct wf_bytes_writer w = wf_bytes_writer(descriptor, WF_ACCESS_DESCRIPTOR_BYTES);
	unsigned rights = window->window.rights;

	/* A landing is written by pushes alone. */
	if (rights & WEFT_WINDOW_LAND)
		rights = WEFT_WINDOW_LAND;
	wf_access_descriptor_put(&w, &(struct wf_access_descriptor){
					     .window = window->window.name,
					     .bytes = window->window.bytes,
					     .rights = (uint8_t)rights,
				     });
}

/* Waiting */

struct wait {
	const struct weft_window *window;
	uint64_t count;
};

static bool has_puts(void *ctx)
{
	const struct wait *wait = ctx;

	return atomic_load(&wait->window->puts) >= wait->count;
}

int wf_node_window_wait(struct weft_window *window, uint64_t count, uint64_t until_ns)
{
	struct wait wait = { window, count };
	int err = wf_await_that(first_worker(window), has_puts, &wait, until_ns);

	return err == -ETIMEDOUT
		       ? wf_last_set(err, "%llu puts have ended in the window, not %llu",
				     (unsigned long long)atomic_load(&window->puts),
				     (unsigned long long)count)
		       : err;
}
