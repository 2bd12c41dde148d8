/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/note.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/describe.h"
#include "core/node.h"
#include "core/node_window.h"
#include "core/op.h"

static struct weft_op *op_of(struct wf_list *taker)
{
	return WF_CONTAINER(taker, struct weft_op, note.taker);
}

void wf_note_finish(struct wf_list *taker, struct wf_window_note *note)
{
	struct weft_op *op = op_of(taker);

	op->note.window = NULL;
	op->peer = note->from;
	op->note.got = note;
	op->note.note = (struct weft_note){
		.number = note->number,
		.of_get = note->of_get,
		.data = note->bytes,
		.bytes = note->count,
	};
	wf_op_finish(op, NULL, WEFT_EXECUTED_NO);
}

void wf_note_fail(struct wf_list *taker, const struct wf_error *e)
{
	struct weft_op *op = op_of(taker);

	wf_list_remove(taker);
	op->note.window = NULL;
	wf_op_finish(op, e, WEFT_EXECUTED_NO);
}

void wf_note_start(struct weft_op *op)
{
	wf_node_window_take(op->note.window, op);
}

void wf_note_stop(struct weft_op *op, const struct wf_error *e)
{
	wf_note_fail(&op->note.taker, e);
}

/* A closing node brings no note any more. */
void wf_note_starve(struct weft_op *op, struct wf_worker *worker, const struct wf_error *e)
{
	if (op->worker == worker)
		wf_op_stop(op, e);
}

static void free_note(struct weft_op *op)
{
	free(op->note.got);
}

static void describe(const struct weft_op *op, char *text)
{
	(void)op;
	wf_describe_add(text, "take a note of a window");
}

static void describe_wait(const struct weft_op *op, char *text, size_t bytes)
{
	(void)op;
	(void)snprintf(text, bytes, "no note has come");
}

static void late(const struct weft_op *op, const char *who, struct wf_error *e)
{
	(void)op;
	(void)who;
	wf_error_set(e, -ETIMEDOUT, "the deadline passed before a note came");
}

#define BYTES (offsetof(struct weft_op, note) + sizeof(struct wf_op_note))

const struct wf_op_class wf_note_class = {
	.kind = WF_OP_NOTE,
	.recorded = WF_RECORDER_NOTE,
	.bytes = BYTES,
	.zero_to = BYTES,
	.start = wf_note_start,
	.stop = wf_note_stop,
	.starve = wf_note_starve,
	.free = free_note,
	.describe = describe,
	.describe_wait = describe_wait,
	.late = late,
};

void wf_note_init(struct weft_op *op, struct weft_window *window,
		  const struct weft_op_options *options)
{
	wf_list_init(&op->note.taker);
	op->note.window = window;
	/* A note that may come at any time is not late. */
	op->patient = options && options->timeout_ns == WEFT_FOREVER;
}

int wf_note_next(struct weft_window *window, const struct weft_op_options *options,
		 struct weft_op **op)
{
	struct weft_op *fresh;
	int err = wf_op_new(window->owner, NULL, &wf_note_class, options, &fresh);

	if (err)
		return err;
	wf_note_init(fresh, window, options);
	wf_op_launch(fresh, fresh->time.made_ns, op);
	return 0;
}
