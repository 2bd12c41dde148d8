/* SPDX-License-Identifier: BSD-2-Clause */
#include "windows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

#define NOTES_AWAITED 16 /* more than puts of a peer under way, so that no note has to wait */
#define OPEN_LEAST_NS (200 * MS)
#define OPEN_MOST_NS (2 * SECOND)
#define SHUT_NS (200 * MS) /* how long the memory of a closed window is watched */

size_t windows_key(char key[WINDOWS_KEY_BYTES], uint32_t peer, bool calm)
{
	return (size_t)snprintf(key, WINDOWS_KEY_BYTES, "%s, for %u", calm ? "calm" : "wild", peer);
}

uint64_t windows_get_place(size_t slot, size_t slot_bytes)
{
	return WINDOWS_MARKS_BYTES + slot * slot_bytes;
}

uint64_t windows_put_place(size_t slot, size_t slot_bytes)
{
	return windows_get_place(WINDOWS_SLOTS + slot, slot_bytes);
}

static size_t bytes_of(const struct window *w)
{
	return windows_put_place(WINDOWS_SLOTS, w->slot_bytes);
}

static void tell(const struct window *w, enum report_fault fault, uint64_t begun_ns,
		 const char *text)
{
	job_tell_owned(w->traffic, REPORT_WINDOW, w->peer, w->calm, fault, begun_ns, text);
}

/* The note's put has ended just now, so no other is in its slot yet. */
static void check_note(struct window *w, const struct weft_note *note)
{
	uint64_t *marks = (uint64_t *)w->memory;
	struct windows_note said;
	struct content got = { 0 };

	if (note->of_get || note->bytes != sizeof(said)) {
		tell(w, REPORT_WRONG, now_ns(), "a note is none of a put's");
		return;
	}
	memcpy(&said, note->data, sizeof(said));
	if (said.what.from != w->peer || said.what.to != w->traffic->config.self ||
	    note->number != (uint32_t)said.what.sequence || said.slot >= WINDOWS_SLOTS ||
	    said.bytes > w->slot_bytes) {
		tell(w, REPORT_WRONG, now_ns(), "a note came wrong");
		return;
	}
	if (!content_is_new(&w->noted, &said.what))
		tell(w, REPORT_TWICE, now_ns(), "a note came again");
	if (said.bytes &&
	    (!content_get(w->memory + windows_put_place(said.slot, w->slot_bytes), said.bytes,
			  &got) ||
	     memcmp(&got, &said.what, sizeof(got))))
		tell(w, REPORT_WRONG, now_ns(), "a note came before its bytes, or for others");
	__atomic_store_n(&marks[said.slot], said.what.sequence + 1, __ATOMIC_RELEASE);
}

static void noted(struct weft_op *op, void *arg);

/* Wait for a note.  Under the lock. */
static void await_note(struct window *w)
{
	const struct weft_op_options options = { .size = sizeof(options),
						 .timeout_ns = WEFT_FOREVER,
						 .done = noted,
						 .arg = w };

	if (weft_window_next(w->window, &options, NULL))
		tell(w, REPORT_FAILED, now_ns(), weft_error());
}

/* A callback of the worker.  A window that closes, or has closed, may tell of notes no more. */
static void noted(struct weft_op *op, void *arg)
{
	const struct weft_note *note = weft_op_note(op);
	struct window *w = arg;

	pthread_mutex_lock(&w->lock);
	if (w->is_open && note) {
		check_note(w, note);
		await_note(w);
	} else if (w->is_open && weft_op_status(op) != WEFT_CANCELLED) {
		tell(w, REPORT_FAILED, now_ns(), weft_op_message(op));
	}
	pthread_mutex_unlock(&w->lock);
}

static void fill(struct window *w)
{
	struct content what = { .from = w->traffic->config.self,
				.to = w->peer,
				.lane = w->calm,
				.life = w->traffic->life };

	memset(w->memory, 0, bytes_of(w));
	for (size_t i = 0; i < WINDOWS_SLOTS; i++) {
		what.sequence = w->openings * WINDOWS_SLOTS + i;
		content_put(w->memory + windows_get_place(i, w->slot_bytes), w->slot_bytes, &what);
	}
}

static int open_one(struct window *w)
{
	char key[WINDOWS_KEY_BYTES];
	size_t length = windows_key(key, w->peer, w->calm);
	int err;

	fill(w);
	w->openings++;
	w->turn_ns = now_ns() + OPEN_LEAST_NS + job_draw(w->traffic, OPEN_MOST_NS);
	err = weft_window_open(w->traffic->node, w->memory, bytes_of(w),
			       WEFT_WINDOW_READ | WEFT_WINDOW_WRITE, &w->window);
	if (err)
		return err;
	pthread_mutex_lock(&w->lock);
	w->is_open = true;
	for (unsigned i = 0; i < NOTES_AWAITED; i++)
		await_note(w);
	pthread_mutex_unlock(&w->lock);
	return weft_window_publish(w->window, key, length);
}

/* From here on the memory is ours alone. */
static void close_one(struct window *w)
{
	uint64_t begun = now_ns();

	pthread_mutex_lock(&w->lock);
	w->is_open = false;
	pthread_mutex_unlock(&w->lock);
	if (weft_window_close(w->window))
		tell(w, REPORT_FAILED, begun, weft_error());
	w->window = NULL;
	if (now_ns() - begun > w->traffic->config.bound_ns + SLACK_NS)
		tell(w, REPORT_LATE, begun, "a window took long to close");
	guarded_mark(w->memory, bytes_of(w));
	w->turn_ns = now_ns() + SHUT_NS;
}

static void check_closed(const struct window *w)
{
	if (!guarded_is_quiet(w->memory, 0, bytes_of(w)))
		tell(w, REPORT_TOUCHED, w->turn_ns - SHUT_NS,
		     "memory was written after its window had closed");
}

static int set_up(struct traffic *t, uint32_t peer, bool calm)
{
	struct window *w = &t->windows[peer][calm];

	w->traffic = t;
	w->peer = peer;
	w->calm = calm;
	w->slot_bytes = calm ? WINDOWS_CALM_BYTES : WINDOWS_WILD_BYTES;
	w->memory = guarded_take(bytes_of(w));
	if (!w->memory)
		return -ENOMEM;
	pthread_mutex_init(&w->lock, NULL);
	return open_one(w);
}

int windows_open(struct traffic *t)
{
	int err = 0;

	for (uint32_t i = 0; i < t->config.count && !err; i++) {
		if (i == t->config.self)
			continue;
		err = set_up(t, i, true);
		if (!err)
			err = set_up(t, i, false);
	}
	return err;
}

void windows_turn(struct traffic *t)
{
	uint64_t now = now_ns();

	for (uint32_t i = 0; i < t->config.count; i++) {
		struct window *w = &t->windows[i][false];

		if (i == t->config.self || now < w->turn_ns || (w->window && t->drains))
			continue;
		if (w->window) {
			close_one(w);
			continue;
		}
		check_closed(w);
		if (open_one(w))
			tell(w, REPORT_FAILED, now, weft_error());
	}
}

void windows_close(struct traffic *t)
{
	for (uint32_t i = 0; i < t->config.count; i++)
		for (unsigned calm = 0; calm < 2 && i != t->config.self; calm++)
			if (t->windows[i][calm].window)
				close_one(&t->windows[i][calm]);
	for (uint32_t i = 0; i < t->config.count; i++)
		for (unsigned calm = 0; calm < 2 && i != t->config.self; calm++)
			check_closed(&t->windows[i][calm]);
}

void windows_fini(struct traffic *t)
{
	for (uint32_t i = 0; i < t->config.count; i++)
		for (unsigned calm = 0; calm < 2 && i != t->config.self; calm++) {
			guarded_give(t->windows[i][calm].memory);
			pthread_mutex_destroy(&t->windows[i][calm].lock);
		}
}
