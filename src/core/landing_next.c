/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/landing_next.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/describe.h"
#include "core/landing.h"
#include "core/node.h"
#include "core/node_window.h"
#include "core/op.h"
#include "wire/landed.h"

/* Make the view before anybody can ask for it.  The note was looked at when it came. */
static void tell(struct weft_op *op)
{
	struct wf_op_landed *landed = &op->landed;
	const struct wf_window_note *note = landed->note.got;
	const struct weft_landing *landing = landed->landing;
	struct wf_landed got;

	if (!note || wf_landed_get(note->bytes, note->count, &got))
		return;
	for (unsigned i = 0; i < got.rank; i++)
		landed->shape[i] = wf_landed_dim(&got, i);
	landed->number = got.number;
	landed->tensor = (struct weft_tensor){
		.data = (char *)landing->memory + note->number * landing->slot_bytes,
		.device = { .type = WEFT_CPU },
		.ndim = got.rank,
		.dtype = got.dtype,
		.shape = landed->shape,
	};
}

static void free_landed(struct weft_op *op)
{
	struct weft_landing *landing = op->landed.landing;
	struct wf_window_note *got = op->landed.note.got;

	if (landing && got)
		wf_shares_give(&landing->shares, got->number);
	if (landing)
		wf_landing_put(landing);
	free(got);
}

static void let_go(struct weft_op *op)
{
	if (op->landed.landing)
		wf_landing_put(op->landed.landing);
	op->landed.landing = NULL;
}

static void describe(const struct weft_op *op, char *text)
{
	(void)op;
	wf_describe_add(text, "take a tensor of a landing");
}

static void describe_wait(const struct weft_op *op, char *text, size_t bytes)
{
	(void)op;
	(void)snprintf(text, bytes, "no tensor has landed");
}

static void late(const struct weft_op *op, const char *who, struct wf_error *e)
{
	(void)op;
	(void)who;
	wf_error_set(e, -ETIMEDOUT, "the deadline passed before a tensor landed");
}

const struct wf_op_class wf_landing_next_class = {
	.kind = WF_OP_LANDED,
	.recorded = WF_RECORDER_LANDED,
	.bytes = offsetof(struct weft_op, landed) + sizeof(struct wf_op_landed),
	.zero_to = offsetof(struct weft_op, landed.shape),
	.start = wf_note_start,
	.stop = wf_note_stop,
	.starve = wf_note_starve,
	.tell = tell,
	.free = free_landed,
	.let_go = let_go,
	.describe = describe,
	.describe_wait = describe_wait,
	.late = late,
};

int wf_landing_next(struct weft_landing *landing, const struct weft_op_options *options,
		    struct weft_op **op)
{
	struct weft_op *fresh;
	int err = wf_op_new(landing->owner, NULL, &wf_landing_next_class, options, &fresh);

	if (err)
		return err;
	wf_note_init(fresh, landing->window, options);
	fresh->landed.landing = landing;
	wf_landing_get(landing);
	wf_op_launch(fresh, fresh->time.made_ns, op);
	return 0;
}

const struct wf_op_landed *wf_landing_next_got(const struct weft_op *op)
{
	if (op->class->kind != WF_OP_LANDED || wf_op_status(op) != WEFT_OK)
		return NULL;
	return &op->landed;
}
