/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/kind.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <weft/tensor.h>

const struct wf_kind wf_kind_host = {
	.direct = true,
};

static int cuda_begin(struct wf_kind_copy *copy, struct wf_error *e)
{
	static const enum wf_queue_way ways[] = {
		[WF_KIND_INTO_CHUNK] = WF_QUEUE_TO_HOST,
		[WF_KIND_OUT_OF_CHUNK] = WF_QUEUE_TO_DEVICE,
		[WF_KIND_FROM_DEVICE] = WF_QUEUE_ON_DEVICE,
	};
	bool out = copy->way != WF_KIND_INTO_CHUNK;
	int device = copy->place->device, err;
	struct wf_queue *queue;

	err = wf_kinds_queue(copy->kinds, device, copy->way, &queue, e);
	if (err)
		return err;
	if (copy->pool)
		err = wf_pool_pin(copy->pool, copy->chunk, device, e);
	/* -EEXIST: the program has pinned a tensor of the same slab, and the copy may block. */
	if (!err || err == -EEXIST)
		err = wf_queue_copy(queue, ways[copy->way], out ? copy->body : copy->chunk,
				    out ? copy->chunk : copy->body, copy->bytes, e);
	return err || copy->followed ? err : wf_queue_record(queue, &copy->event, e);
}

static int cuda_poll(struct wf_kind_copy *copy, struct wf_error *e)
{
	return wf_queue_poll(copy->event, e);
}

static void cuda_end(struct wf_kind_copy *copy)
{
	wf_queue_give(copy->event);
	copy->event = NULL;
}

const struct wf_kind wf_kind_cuda = {
	.direct = false,
	.begin = cuda_begin,
	.poll = cuda_poll,
	.end = cuda_end,
};

#define ANY_DEVICE (-1)

/* Ask CUDA itself where the @bytes at @at lie: on device @id, or, with ANY_DEVICE, anywhere. */
static int find_cuda(int id, const void *at, uint64_t bytes, struct wf_kind_place *place,
		     struct wf_error *e)
{
	struct wf_cuda_memory m;
	int err = wf_cuda_find(at, &m, e);

	if (err)
		return err;
	if (m.kind == WF_CUDA_MANAGED || (id == ANY_DEVICE && m.kind != WF_CUDA_DEVICE)) {
		*place = (struct wf_kind_place){ .kind = &wf_kind_host };
		return 0;
	}
	if (m.kind != WF_CUDA_DEVICE)
		return wf_error_set(e, -EINVAL, "%p is memory of the host, not of CUDA device %d",
				    at, id);
	if (m.device != id && id != ANY_DEVICE)
		return wf_error_set(e, -EINVAL, "%p is memory of CUDA device %d, not %d", at,
				    m.device, id);
	if (bytes > m.start + m.bytes - (uintptr_t)at)
		return wf_error_set(e, -EINVAL,
				    "%" PRIu64 " bytes at %p go beyond their allocation on CUDA device %d",
				    bytes, at, m.device);
	*place = (struct wf_kind_place){ &wf_kind_cuda, m.device, m.start, m.start + m.bytes };
	return 0;
}

int wf_kind_find(int type, int id, const void *at, uint64_t bytes, const char *setting,
		 struct wf_kind_place *place, struct wf_error *e)
{
	enum wf_cuda_driver_state state;

	switch (type) {
	case WEFT_CPU:
	case WEFT_CUDA_HOST:
	case WEFT_CUDA_MANAGED:
		*place = (struct wf_kind_place){ .kind = &wf_kind_host };
		return 0;
	case WEFT_CUDA:
		state = wf_cuda_driver_load(setting, e);
		if (state != WF_CUDA_READY)
			return state == WF_CUDA_FORKED ? -EOWNERDEAD : -ENODEV;
		if (id < 0)
			return wf_error_set(e, -EINVAL, "there is no CUDA device %d", id);
		return find_cuda(id, at, bytes, place, e);
	default:
		return wf_error_set(e, -ENOTSUP, "memory of device type %d is not supported", type);
	}
}

/* Describe a body at @at, in @place; *@body stays as it is where the CPU reaches it. */
static int open_body(const struct wf_kind_place *place, void *at, void *stream,
		     struct wf_kind_body **body, struct wf_error *e)
{
	struct wf_kind_body *fresh;
	int err = 0;

	if (place->kind->direct)
		return 0;
	fresh = calloc(1, sizeof(*fresh));
	if (!fresh)
		return wf_error_set(e, -ENOMEM, "no memory for a body on a device");
	fresh->place = *place;
	fresh->at = at;
	if (stream != WEFT_NO_STREAM)
		err = wf_queue_mark(place->device, stream, &fresh->mark, e);
	if (err)
		free(fresh);
	else
		*body = fresh;
	return err;
}

int wf_kind_open(int type, int id, void *at, uint64_t bytes, const char *setting, void *stream,
		 struct wf_kind_body **body, struct wf_error *e)
{
	struct wf_kind_place place;
	int err = wf_kind_find(type, id, at, bytes, setting, &place, e);

	*body = NULL;
	return err ? err : open_body(&place, at, stream, body, e);
}

int wf_kind_discover(void *at, uint64_t bytes, const char *setting, struct wf_kind_body **body,
		     struct wf_error *e)
{
	struct wf_kind_place place;
	int err;

	*body = NULL;
	if (!wf_cuda_driver_is_here(setting) || wf_cuda_driver_load(setting, NULL) != WF_CUDA_READY)
		return 0;
	err = find_cuda(ANY_DEVICE, at, bytes, &place, e);
	return err ? err : open_body(&place, at, WEFT_NO_STREAM, body, e);
}

void wf_kind_close(struct wf_kind_body *body)
{
	if (!body)
		return;
	wf_queue_unmark(&body->mark);
	free(body);
}

int wf_kinds_queue(struct wf_kinds *kinds, int ordinal, enum wf_kind_way way,
		  struct wf_queue **queue, struct wf_error *e)
{
	int err = 0;

	if (!kinds->queues[ordinal][way])
		err = wf_queue_open(ordinal, &kinds->queues[ordinal][way], e);
	if (!err)
		*queue = kinds->queues[ordinal][way];
	return err;
}

void wf_kinds_wait(struct wf_kinds *kinds)
{
	for (size_t i = 0; i < WF_COUNT(kinds->queues); i++)
		for (size_t way = 0; way < WF_COUNT(kinds->queues[i]); way++)
			wf_queue_wait(kinds->queues[i][way]);
}

void wf_kinds_fini(struct wf_kinds *kinds)
{
	for (size_t i = 0; i < WF_COUNT(kinds->queues); i++)
		for (size_t way = 0; way < WF_COUNT(kinds->queues[i]); way++)
			wf_queue_close(kinds->queues[i][way]);
	*kinds = (struct wf_kinds){ 0 };
}
