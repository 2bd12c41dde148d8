/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/composite.h"

#include <errno.h>
#include <stddef.h>

#include "core/op.h"

static void start(struct weft_op *op)
{
	op->composite.functions->start(op->composite.maker);
}

static void stop(struct weft_op *op, const struct wf_error *e)
{
	op->composite.functions->stop(op->composite.maker, e);
}

static void refuse(struct weft_op *op, const struct wf_error *e)
{
	wf_op_begin(op);
	stop(op, e);
}

static void free_composite(struct weft_op *op)
{
	if (op->composite.maker)
		op->composite.functions->free(op->composite.maker);
}

static uint64_t progress(struct weft_op *op)
{
	return op->composite.functions->progress(op->composite.maker);
}

static void describe(const struct weft_op *op, char *text)
{
	op->composite.functions->describe(op->composite.maker, text);
}

static void describe_wait(const struct weft_op *op, char *text, size_t bytes)
{
	op->composite.functions->describe_wait(op->composite.maker, text, bytes);
}

static void late(const struct weft_op *op, const char *who, struct wf_error *e)
{
	char text[200];

	(void)who;
	describe_wait(op, text, sizeof(text));
	wf_error_set(e, -ETIMEDOUT, "the deadline passed: %s", text);
}

#define BYTES (offsetof(struct weft_op, composite) + sizeof(struct wf_op_composite))

const struct wf_op_class wf_composite_class = {
	.kind = WF_OP_COMPOSITE,
	.recorded = WF_RECORDER_COMPOSITE,
	.bytes = BYTES,
	.zero_to = BYTES,
	.start = start,
	.refuse = refuse,
	.stop = stop,
	.free = free_composite,
	.progress = progress,
	.describe = describe,
	.describe_wait = describe_wait,
	.late = late,
};

int wf_composite_new(struct weft_node *node, const struct weft_op_options *options,
		     const struct wf_composite_functions *functions, void *maker,
		     struct weft_op **op)
{
	struct weft_op *fresh;
	int err = wf_op_new(node, NULL, &wf_composite_class, options, &fresh);

	if (err)
		return err;
	fresh->composite = (struct wf_op_composite){ functions, maker };
	*op = fresh;
	return 0;
}
