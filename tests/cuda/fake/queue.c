/* SPDX-License-Identifier: BSD-2-Clause */
/* The software driver's streams, events and copies, and how time passes for them. */
#include "tests/cuda/fake/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUBBISH 0xee
#define PAUSE_US 20 /* of the thread, between its questions */

struct fake_event {
	struct fake_event *next;
	CUcontext context;
	uint64_t recorded, done; /* how often */
	unsigned users;		 /* in streams */
	bool gone;		 /* the program has destroyed it */
};

/* Something on a stream. */
struct item {
	struct item *next;
	enum { COPY, RECORD, CALL } kind;
	enum fake_cuda_what what;
	uintptr_t to, from;
	size_t bytes;
	char *read; /* what a copy has read since it began */
	unsigned questions;
	CUevent event;
	uint64_t which; /* of the event's recordings */
	void (*run)(void *arg);
	void *arg;
	bool running;
};

struct fake_stream {
	struct fake_stream *next;
	CUcontext context;
	unsigned number;
	bool is_default, asked;
	bool beside; /* it and the default stream do not wait for each other */
	bool gone; /* the program has destroyed it: what is on it goes on */
	struct item *first, **end;
};

static struct fake_stream *streams;
static struct fake_event *events;
static unsigned stream_count, call_count;
static bool has_thread;
static pthread_cond_t called = PTHREAD_COND_INITIALIZER;

CUstream fake_new_stream(CUcontext context)
{
	CUstream fresh = calloc(1, sizeof(*fresh)), *at = &streams;

	fresh->context = context;
	fresh->is_default = true;
	fresh->end = &fresh->first;
	/* In the order in which they were made: that is the order in which they are asked. */
	while (*at)
		at = &(*at)->next;
	*at = fresh;
	return fresh;
}

/* 0, 1 and 2 are what each context has. */
CUstream fake_stream_of(CUstream stream)
{
	CUcontext current = fake_current();

	if ((uintptr_t)stream > 2)
		return stream;
	return current ? current->stream : NULL;
}

static void log_item(const struct fake_stream *stream, const struct item *item, bool ended)
{
	fake_write_log(&(struct fake_cuda_entry){
		.what = item->what,
		.ended = ended,
		.stream = stream->number,
		.device = stream->context->device,
		.to = item->to,
		.from = item->from,
		.bytes = item->bytes,
	});
}

static void begin_copy(const struct fake_stream *stream, struct item *item)
{
	item->read = malloc(item->bytes);
	if (item->what == FAKE_SET)
		memset(item->read, (int)item->from, item->bytes);
	else
		memcpy(item->read, fake_reach(item->from, item->bytes), item->bytes);
	memset(fake_reach(item->to, item->bytes), RUBBISH, item->bytes);
	log_item(stream, item, false);
}

static void end_copy(const struct fake_stream *stream, struct item *item)
{
	/* Who has written to the source meanwhile gets neither what was there nor what is. */
	if (item->what != FAKE_SET &&
	    memcmp(item->read, fake_reach(item->from, item->bytes), item->bytes))
		memset(item->read, RUBBISH, item->bytes);
	memcpy(fake_reach(item->to, item->bytes), item->read, item->bytes);
	log_item(stream, item, true);
	free(item->read);
}

static void let_event(CUevent event)
{
	struct fake_event **at = &events;

	if (event->users || !event->gone)
		return;
	while (*at != event)
		at = &(*at)->next;
	*at = event->next;
	free(event);
}

/* Is the first of @stream over?  Asked once, a copy comes nearer to its end. */
static bool is_over(struct fake_stream *stream, struct item *item)
{
	switch (item->kind) {
	case COPY:
		if (stream->asked)
			return false;
		stream->asked = true;
		if (!item->read)
			begin_copy(stream, item);
		else
			item->questions++;
		if (item->questions < fake_settings.delay)
			return false;
		end_copy(stream, item);
		/* The next one begins with this question. */
		stream->asked = false;
		return true;
	case RECORD:
		if (item->event->done < item->which)
			item->event->done = item->which;
		return true;
	case CALL:
		return false; /* until the thread has made it */
	}
	abort();
}

static void pop(struct fake_stream *stream)
{
	struct item *item = stream->first;

	stream->first = item->next;
	if (!stream->first)
		stream->end = &stream->first;
	if (item->event) {
		item->event->users--;
		let_event(item->event);
	}
	free(item);
}

/* Streams that the program has destroyed, and that have run dry. */
static void free_gone(void)
{
	struct fake_stream **at = &streams;

	while (*at) {
		struct fake_stream *s = *at;

		if (s->gone && !s->first) {
			*at = s->next;
			free(s);
		} else {
			at = &s->next;
		}
	}
}

static void ask_all(void)
{
	bool again;

	for (struct fake_stream *s = streams; s; s = s->next)
		s->asked = false;
	do {
		again = false;
		for (struct fake_stream *s = streams; s; s = s->next)
			while (s->first && is_over(s, s->first)) {
				pop(s);
				again = true;
			}
	} while (again);
	free_gone();
}

void fake_question(void)
{
	if (!fake_settings.hold)
		ask_all();
}

static bool is_dry(CUstream stream)
{
	if (stream)
		return !stream->first;
	for (struct fake_stream *s = streams; s; s = s->next)
		if (s->first)
			return false;
	return true;
}

void fake_drain(CUstream stream)
{
	for (ask_all(); !is_dry(stream); ask_all()) {
		if (!call_count)
			continue;
		/* The thread has to make a call. */
		pthread_mutex_unlock(&fake_lock);
		usleep(PAUSE_US);
		pthread_mutex_lock(&fake_lock);
	}
}

unsigned fake_queues_left(void)
{
	unsigned count = 0;

	for (struct fake_stream *s = streams; s; s = s->next)
		count += !s->is_default;
	for (struct fake_event *event = events; event; event = event->next)
		count++;
	return count;
}

/* A stream whose first is a call that nobody makes yet. */
bool fake_is_copied(uintptr_t at, size_t bytes)
{
	for (struct fake_stream *s = streams; s; s = s->next)
		for (struct item *i = s->first; i; i = i->next)
			if (i->kind == COPY && ((i->to < at + bytes && at < i->to + i->bytes) ||
						(i->from < at + bytes && at < i->from + i->bytes)))
				return true;
	return false;
}

static struct fake_stream *find_call(void)
{
	for (struct fake_stream *s = streams; s; s = s->next)
		if (s->first && s->first->kind == CALL && !s->first->running)
			return s;
	return NULL;
}

static void make_call(struct fake_stream *stream)
{
	struct item *item = stream->first;

	item->running = true;
	log_item(stream, item, false);
	pthread_mutex_unlock(&fake_lock);
	item->run(item->arg);
	pthread_mutex_lock(&fake_lock);
	log_item(stream, item, true);
	pop(stream);
	call_count--;
	if (!fake_settings.hold)
		ask_all();
}

/* Calls are made here, and here alone; as long as one waits, time passes by itself. */
static void *make_calls(void *arg)
{
	struct fake_stream *stream;

	(void)arg;
	pthread_mutex_lock(&fake_lock);
	for (;;) {
		while (!call_count)
			pthread_cond_wait(&called, &fake_lock);
		fake_question();
		stream = find_call();
		if (stream) {
			make_call(stream);
			continue;
		}
		pthread_mutex_unlock(&fake_lock);
		usleep(PAUSE_US);
		pthread_mutex_lock(&fake_lock);
	}
	return NULL;
}

static struct item *push(CUstream stream, const struct item *item)
{
	struct item *fresh = malloc(sizeof(*fresh));

	*fresh = *item;
	fresh->next = NULL;
	*stream->end = fresh;
	stream->end = &fresh->next;
	if (fresh->event)
		fresh->event->users++;
	return fresh;
}

int cuStreamCreate(CUstream *stream, unsigned flags)
{
	int code = fake_begin("cuStreamCreate");

	if (!code && !fake_current())
		code = CU_INVALID_CONTEXT;
	if (!code) {
		*stream = fake_new_stream(fake_current());
		(*stream)->is_default = false;
		(*stream)->beside = flags & CU_STREAM_NON_BLOCKING;
		(*stream)->number = ++stream_count;
	}
	return fake_end(code);
}

bool fake_is_beside(const struct fake_stream *stream)
{
	return stream->beside;
}

int cuStreamDestroy_v2(CUstream stream)
{
	int code = fake_begin("cuStreamDestroy");

	/* It does not wait. */
	if (!code) {
		stream->gone = true;
		free_gone();
	}
	return fake_end(code);
}

int cuStreamQuery(CUstream stream)
{
	int code = fake_begin("cuStreamQuery");
	CUstream meant = fake_stream_of(stream);

	if (!code && !meant)
		code = CU_INVALID_CONTEXT;
	if (!code) {
		fake_question();
		code = is_dry(meant) ? CU_OK : CU_NOT_READY;
	}
	return fake_end(code);
}

int cuStreamSynchronize(CUstream stream)
{
	int code = fake_begin("cuStreamSynchronize");
	CUstream meant = fake_stream_of(stream);

	if (!code && !meant)
		code = CU_INVALID_CONTEXT;
	if (!code)
		fake_drain(meant);
	return fake_end(code);
}

int cuCtxSynchronize(void)
{
	int code = fake_begin("cuCtxSynchronize");

	if (!code)
		fake_drain(NULL);
	return fake_end(code);
}

int cuStreamGetCtx(CUstream stream, CUcontext *context)
{
	int code = fake_begin("cuStreamGetCtx");
	CUstream meant = fake_stream_of(stream);

	if (!code && !meant)
		code = CU_INVALID_CONTEXT;
	if (!code)
		*context = meant->context;
	return fake_end(code);
}

int cuEventCreate(CUevent *event, unsigned flags)
{
	int code = fake_begin("cuEventCreate");

	(void)flags;
	if (!code && !fake_current())
		code = CU_INVALID_CONTEXT;
	if (!code) {
		*event = calloc(1, sizeof(**event));
		(*event)->context = fake_current();
		(*event)->next = events;
		events = *event;
	}
	return fake_end(code);
}

int cuEventDestroy_v2(CUevent event)
{
	int code = fake_begin("cuEventDestroy");

	if (!code) {
		event->gone = true;
		let_event(event);
	}
	return fake_end(code);
}

int cuEventRecord(CUevent event, CUstream stream)
{
	int code = fake_begin("cuEventRecord");
	CUstream meant = fake_stream_of(stream);

	if (!code && !meant)
		code = CU_INVALID_CONTEXT;
	if (!code && meant->context != event->context)
		code = CU_INVALID_HANDLE;
	if (!code)
		push(meant, &(struct item){ .kind = RECORD, .event = event,
					    .which = ++event->recorded });
	return fake_end(code);
}

int cuEventQuery(CUevent event)
{
	int code = fake_begin("cuEventQuery");

	if (!code) {
		fake_question();
		code = event->done == event->recorded ? CU_OK : CU_NOT_READY;
	}
	return fake_end(code);
}

int cuEventSynchronize(CUevent event)
{
	int code = fake_begin("cuEventSynchronize");

	while (!code && event->done != event->recorded) {
		ask_all();
		pthread_mutex_unlock(&fake_lock);
		usleep(PAUSE_US);
		pthread_mutex_lock(&fake_lock);
	}
	return fake_end(code);
}

int cuLaunchHostFunc(CUstream stream, void (*run)(void *arg), void *arg)
{
	int code = fake_begin("cuLaunchHostFunc");
	CUstream meant = fake_stream_of(stream);
	pthread_t thread;

	if (!code && !meant)
		code = CU_INVALID_CONTEXT;
	if (!code && !has_thread) {
		if (pthread_create(&thread, NULL, make_calls, NULL))
			abort();
		pthread_detach(thread);
		has_thread = true;
	}
	if (!code) {
		push(meant, &(struct item){ .kind = CALL, .what = FAKE_CALL, .run = run,
					    .arg = arg });
		call_count++;
		pthread_cond_signal(&called);
	}
	return fake_end(code);
}

static bool is_device(uintptr_t at, size_t bytes)
{
	const struct fake_memory *m = fake_find(at, bytes);

	return m && (m->kind == FAKE_DEVICE || m->kind == FAKE_MANAGED || m->kind == FAKE_IMPORTED);
}

int fake_push_copy(enum fake_cuda_what what, uintptr_t to, uintptr_t from, size_t bytes,
		   CUstream stream)
{
	CUstream meant = fake_stream_of(stream);
	bool paged;

	if (!meant || !fake_current())
		return CU_INVALID_CONTEXT;
	if (what != FAKE_TO_HOST && !is_device(to, bytes))
		return CU_INVALID_VALUE;
	if ((what == FAKE_TO_HOST || what == FAKE_ON_DEVICE) && !is_device(from, bytes))
		return CU_INVALID_VALUE;
	if (!bytes)
		return CU_OK;
	push(meant, &(struct item){ .kind = COPY, .what = what, .to = to, .from = from,
				    .bytes = bytes });
	/* What is not pinned is copied before the call returns, and overlaps with nothing. */
	paged = (what == FAKE_TO_HOST && !fake_find(to, bytes)) ||
		(what == FAKE_TO_DEVICE && !fake_find(from, bytes));
	if (paged)
		fake_drain(meant);
	return CU_OK;
}

int cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	int code = fake_begin("cuMemcpyHtoDAsync");

	if (!code)
		code = fake_push_copy(FAKE_TO_DEVICE, to, (uintptr_t)from, bytes, stream);
	return fake_end(code);
}

int cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	int code = fake_begin("cuMemcpyDtoHAsync");

	if (!code)
		code = fake_push_copy(FAKE_TO_HOST, (uintptr_t)to, from, bytes, stream);
	return fake_end(code);
}

int cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	int code = fake_begin("cuMemcpyDtoDAsync");

	if (!code)
		code = fake_push_copy(FAKE_ON_DEVICE, to, from, bytes, stream);
	return fake_end(code);
}

int cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream)
{
	int code = fake_begin("cuMemsetD8Async");

	if (!code)
		code = fake_push_copy(FAKE_SET, at, value, bytes, stream);
	return fake_end(code);
}

/* On the default stream, and over when they return. */
static int copy_now(int code, enum fake_cuda_what what, uintptr_t to, uintptr_t from, size_t bytes)
{
	if (!code)
		code = fake_push_copy(what, to, from, bytes, NULL);
	if (!code)
		fake_drain(fake_stream_of(NULL));
	return fake_end(code);
}

int cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
	return copy_now(fake_begin("cuMemcpyHtoD"), FAKE_TO_DEVICE, to, (uintptr_t)from, bytes);
}

int cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
	return copy_now(fake_begin("cuMemcpyDtoH"), FAKE_TO_HOST, (uintptr_t)to, from, bytes);
}
