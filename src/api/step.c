/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "core/check.h"
#include "core/step_relay.h"

int weft_step_abort(struct weft_node *node, uint64_t step, enum weft_status status,
		    const char *message)
{
	int err = wf_check_node(node);

	if (err)
		return err;
	if ((int)status <= WEFT_OK || status > WEFT_UNAUTHENTICATED)
		return wf_last_set(-EINVAL, "status %d is none to abort a step with", (int)status);
	return wf_step_relay_abort(node, step, status, message ? message : "");
}

int weft_step_end(struct weft_node *node, uint64_t step)
{
	int err = wf_check_node(node);

	return err ? err : wf_step_relay_end(node, step);
}
