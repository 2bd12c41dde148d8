/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <limits.h>

#include "core/check.h"
#include "core/completion_queue.h"
#include "util/clock.h"

static int check(const struct weft_queue *queue)
{
	return WF_NEED(queue) ? -EINVAL : wf_completion_queue_check(queue);
}

int weft_queue_open(struct weft_node *node, struct weft_queue **queue)
{
	int err = wf_check_node(node);

	if (err || WF_NEED(queue))
		return err ? err : -EINVAL;
	return wf_completion_queue_open(node, queue);
}

void weft_queue_close(struct weft_queue *queue)
{
	if (queue && !check(queue))
		wf_completion_queue_close(queue);
}

int weft_queue_next(struct weft_queue *queue, struct weft_op **ops, size_t max,
		    uint64_t timeout_ns)
{
	int err = check(queue);

	if (err || WF_NEED(ops))
		return err ? err : -EINVAL;
	if (!max)
		return wf_last_set(-EINVAL, "no place for an operation: max is 0");
	return wf_completion_queue_next(queue, ops, max < INT_MAX ? max : INT_MAX,
					wf_clock_after(wf_clock_now(), timeout_ns));
}

int weft_queue_fd(struct weft_queue *queue)
{
	int err = check(queue);

	return err ? err : wf_completion_queue_fd(queue);
}
