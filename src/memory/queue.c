/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/list.h"

struct wf_queue_event {
	struct wf_list node; /* member of spare or used */
	struct wf_queue *queue;
	wf_cu_event event;
};

struct wf_queue {
	int ordinal;
	wf_cu_stream copies;
	struct wf_list spare, used;
};

/* The driver, which was ready when a queue was made; a forked child has none. */
static const struct wf_cuda_driver *cu(void)
{
	return wf_cuda_driver();
}

int wf_queue_open(int ordinal, struct wf_queue **queue, struct wf_error *e)
{
	struct wf_queue *fresh;
	int code, err;

	err = wf_cuda_enter(ordinal, e);
	if (err)
		return err;
	fresh = calloc(1, sizeof(*fresh));
	if (!fresh) {
		err = wf_error_set(e, -ENOMEM, "no memory for a queue");
		goto leave;
	}
	fresh->ordinal = ordinal;
	wf_list_init(&fresh->spare);
	wf_list_init(&fresh->used);
	/* The stream must not wait for the default stream, whose kernels may run for long. */
	code = cu()->cuStreamCreate(&fresh->copies, WF_CU_STREAM_NON_BLOCKING);
	if (code) {
		err = wf_cuda_driver_error(e, code, "a stream of CUDA device %d", ordinal);
		free(fresh);
		goto leave;
	}
	*queue = fresh;

leave:
	wf_cuda_leave();
	return err;
}

static void free_events(struct wf_list *events, bool destroy)
{
	struct wf_list *node;

	while ((node = wf_list_pop(events))) {
		struct wf_queue_event *event = WF_CONTAINER(node, struct wf_queue_event, node);

		if (destroy)
			(void)cu()->cuEventDestroy(event->event);
		free(event);
	}
}

void wf_queue_wait(struct wf_queue *queue)
{
	/* wf_cuda_enter() fails in a forked child, where everything of CUDA's is the parent's. */
	if (!queue || wf_cuda_enter(queue->ordinal, NULL))
		return;
	(void)cu()->cuStreamSynchronize(queue->copies);
	wf_cuda_leave();
}

void wf_queue_close(struct wf_queue *queue)
{
	bool ours;

	if (!queue)
		return;
	ours = !wf_cuda_enter(queue->ordinal, NULL);
	if (ours) {
		(void)cu()->cuStreamSynchronize(queue->copies);
		(void)cu()->cuStreamDestroy(queue->copies);
	}
	free_events(&queue->spare, ours);
	free_events(&queue->used, ours);
	if (ours)
		wf_cuda_leave();
	free(queue);
}

int wf_queue_copy(struct wf_queue *queue, enum wf_queue_way way, void *to, const void *from,
		 size_t bytes, struct wf_error *e)
{
	int code = 0, err = wf_cuda_enter(queue->ordinal, e);

	if (err)
		return err;
	switch (way) {
	case WF_QUEUE_TO_HOST:
		code = cu()->cuMemcpyDtoHAsync(to, (uintptr_t)from, bytes, queue->copies);
		break;
	case WF_QUEUE_TO_DEVICE:
		code = cu()->cuMemcpyHtoDAsync((uintptr_t)to, from, bytes, queue->copies);
		break;
	case WF_QUEUE_ON_DEVICE:
		code = cu()->cuMemcpyDtoDAsync((uintptr_t)to, (uintptr_t)from, bytes,
					       queue->copies);
		break;
	}
	wf_cuda_leave();
	if (!code)
		return 0;
	return wf_cuda_driver_error(e, code, "a copy of %zu bytes %s CUDA device %d", bytes,
				    way == WF_QUEUE_TO_HOST ? "from" : "to", queue->ordinal);
}

/* Take an unused event, or make one. */
static int take_event(struct wf_queue *queue, struct wf_queue_event **event, struct wf_error *e)
{
	struct wf_list *node = wf_list_pop(&queue->spare);
	struct wf_queue_event *fresh;
	int code;

	if (node) {
		*event = WF_CONTAINER(node, struct wf_queue_event, node);
		return 0;
	}
	fresh = calloc(1, sizeof(*fresh));
	if (!fresh)
		return wf_error_set(e, -ENOMEM, "no memory for an event");
	code = cu()->cuEventCreate(&fresh->event, WF_CU_EVENT_DISABLE_TIMING);
	if (code) {
		free(fresh);
		return wf_cuda_driver_error(e, code, "an event of CUDA device %d", queue->ordinal);
	}
	wf_list_init(&fresh->node);
	fresh->queue = queue;
	*event = fresh;
	return 0;
}

int wf_queue_record(struct wf_queue *queue, struct wf_queue_event **event, struct wf_error *e)
{
	struct wf_queue_event *taken = NULL;
	int code, err = wf_cuda_enter(queue->ordinal, e);

	if (err)
		return err;
	err = take_event(queue, &taken, e);
	if (err)
		goto wait;
	code = cu()->cuEventRecord(taken->event, queue->copies);
	if (code) {
		err = wf_cuda_driver_error(e, code, "recording an event of CUDA device %d",
					   queue->ordinal);
		wf_list_append(&queue->spare, &taken->node);
		goto wait;
	}
	wf_list_append(&queue->used, &taken->node);
	wf_cuda_leave();
	*event = taken;
	return 0;

wait:
	(void)cu()->cuStreamSynchronize(queue->copies);
	wf_cuda_leave();
	return err;
}

/* Ask for @event; no context need be current, and every turn of the loop asks. */
static int query(wf_cu_event event, struct wf_error *e, const char *what)
{
	const struct wf_cuda_driver *driver;
	int code, err = wf_cuda_driver_need(&driver, e);

	if (err)
		return err;
	wf_cuda_relax();
	code = driver->cuEventQuery(event);
	wf_cuda_unrelax();
	if (code == WF_CU_NOT_READY)
		return -EAGAIN;
	return code ? wf_cuda_driver_error(e, code, "%s", what) : 0;
}

int wf_queue_poll(struct wf_queue_event *event, struct wf_error *e)
{
	char what[48];

	(void)snprintf(what, sizeof(what), "copies of CUDA device %d", event->queue->ordinal);
	return query(event->event, e, what);
}

void wf_queue_give(struct wf_queue_event *event)
{
	if (!event)
		return;
	wf_list_remove(&event->node);
	wf_list_append(&event->queue->spare, &event->node);
}

/* The default streams, of a context and of a thread, are small numbers. */
static bool is_default(const void *stream)
{
	return (uintptr_t)stream <= 2;
}

/* Make the context of @stream current, until wf_cuda_leave(). */
static int enter_stream(const struct wf_cuda_driver *driver, int ordinal, void *stream,
			struct wf_error *e)
{
	wf_cu_context context = NULL;
	int code;

	if (is_default(stream))
		code = driver->cuCtxGetCurrent(&context);
	else
		code = driver->cuStreamGetCtx(stream, &context);
	if (!code && !context)
		return wf_cuda_enter(ordinal, e);
	return code ? wf_cuda_driver_error(e, code, "the context of a stream")
		    : wf_cuda_enter_context(context, ordinal, e);
}

/* Refuse a stream under capture: captured work is no work yet, so no wait for it could end. */
static int refuse_capture(const struct wf_cuda_driver *driver, void *stream, struct wf_error *e)
{
	int status, code = driver->cuStreamIsCapturing(stream, &status);

	if (code)
		return wf_cuda_driver_error(e, code, "a stream beside one that is being captured");
	if (status == WF_CU_CAPTURE_NONE)
		return 0;
	return wf_error_set(e, -EINVAL, "the stream is being captured into a graph: "
			    "nothing can be waited for on it");
}

int wf_queue_mark(int ordinal, void *stream, struct wf_queue_mark *mark, struct wf_error *e)
{
	const struct wf_cuda_driver *driver;
	wf_cu_event event = NULL;
	int code, err;

	err = wf_cuda_driver_need(&driver, e);
	if (!err)
		err = enter_stream(driver, ordinal, stream, e);
	if (err)
		return err;
	err = refuse_capture(driver, stream, e);
	if (err)
		goto leave;
	/* An event is of the same context as the stream it is recorded on. */
	code = driver->cuEventCreate(&event, WF_CU_EVENT_DISABLE_TIMING);
	if (!code) {
		code = driver->cuEventRecord(event, stream);
		if (code)
			(void)driver->cuEventDestroy(event);
	}
	if (code)
		err = wf_cuda_driver_error(e, code, "marking a stream");
	else
		*mark = (struct wf_queue_mark){ event };

leave:
	wf_cuda_leave();
	return err;
}

int wf_queue_passed(const struct wf_queue_mark *mark, struct wf_error *e)
{
	return mark->event ? query(mark->event, e, "a stream of the program's") : 0;
}

void wf_queue_unmark(struct wf_queue_mark *mark)
{
	const struct wf_cuda_driver *driver = wf_cuda_driver();

	if (mark->event && driver) {
		wf_cuda_relax();
		(void)driver->cuEventDestroy(mark->event);
		wf_cuda_unrelax();
	}
	*mark = (struct wf_queue_mark){ 0 };
}
