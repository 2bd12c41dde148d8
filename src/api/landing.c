/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/landing.h"

#include <errno.h>
#include <stdint.h>

#include "core/check.h"
#include "core/landing_next.h"
#include "core/node.h"
#include "core/op.h"
#include "core/push.h"
#include "core/rma.h"

static int check(const struct weft_landing *landing)
{
	return WF_NEED(landing) ? -EINVAL : wf_check_node(landing->owner);
}

int weft_landing_open(struct weft_node *node, void *memory, size_t slot_bytes, size_t slots,
		      struct weft_landing **landing)
{
	int err = wf_check_node(node);

	if (err || WF_NEED(memory) || WF_NEED(landing))
		return err ? err : -EINVAL;
	if (!slots || slots > WEFT_LANDING_SLOTS_MAX)
		return wf_last_set(-EINVAL, "a landing of %zu slots: 1 to %d", slots,
				   WEFT_LANDING_SLOTS_MAX);
	if (!slot_bytes || slot_bytes > (UINTPTR_MAX - (uintptr_t)memory) / slots)
		return wf_last_set(-EINVAL, "a landing of %zu slots of %zu bytes", slots, slot_bytes);
	err = wf_check_host(node, memory, "a landing");
	return err ? err : wf_landing_open(node, memory, slot_bytes, slots, landing);
}

int weft_landing_describe(const struct weft_landing *landing, void *descriptor, size_t *bytes)
{
	int err = check(landing);

	return err ? err : weft_window_describe(landing->window, descriptor, bytes);
}

int weft_landing_publish(struct weft_landing *landing, const void *key, size_t key_bytes)
{
	int err = check(landing);

	return err ? err : weft_window_publish(landing->window, key, key_bytes);
}

int weft_landing_next(struct weft_landing *landing, const struct weft_op_options *options,
		      struct weft_op **op)
{
	int err = check(landing);

	return err ? err : wf_landing_next(landing, options, op);
}

int weft_op_landed(const struct weft_op *op, uint64_t *number)
{
	const struct wf_op_landed *got;

	if (WF_NEED(op) || WF_NEED(number))
		return -EINVAL;
	got = wf_landing_next_got(op);
	if (!got)
		return wf_last_set(-EINVAL, "the operation has taken no tensor of a landing");
	*number = got->number;
	return 0;
}

int weft_landing_close(struct weft_landing *landing)
{
	int err;

	if (!landing)
		return 0;
	err = check(landing);
	if (!err && wf_node_inside(landing->owner))
		err = wf_last_set(-EDEADLK, "inside a callback nobody waits");
	return err ? err : wf_landing_close(landing);
}

int weft_push(struct weft_remote *remote, const struct weft_tensor *tensor,
	      const struct weft_push_options *options, struct weft_op **op)
{
	int err = WF_NEED(remote) ? -EINVAL : wf_check_node(remote->peer->owner);

	return err ? err : wf_push(remote, tensor, options, op);
}
