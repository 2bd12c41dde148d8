/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"

/* Memory is found before the call returns, so that it can say that there is none. */
struct ending {
	struct wf_task task;
	struct wf_desk *desk;
	struct wf_step *step;
};

static void run(struct wf_task *task)
{
	struct ending *ending = WF_CONTAINER(task, struct ending, task);
	struct wf_channels *channels = &ending->desk->channels;

	if (ending->step->aborted)
		wf_ending_abort(channels, ending->step);
	else
		wf_ending_end(channels, ending->step);
	free(ending);
}

/* Takes @step, NULL: there was no memory for it. */
static int submit(struct wf_desk *desk, struct wf_step *step)
{
	struct ending *ending = malloc(sizeof(*ending));

	if (!step || !ending) {
		wf_step_free(step);
		free(ending);
		return wf_last_set(-ENOMEM, "no memory to end a step");
	}
	*ending = (struct ending){ .task.run = run, .desk = desk, .step = step };
	wf_desk_run(desk, &ending->task, wf_clock_now());
	return 0;
}

int weft_step_abort(struct weft_node *node, uint64_t step, enum weft_status status,
		    const char *message)
{
	int err = wf_node_check(node);

	if (err)
		return err;
	if ((int)status <= WEFT_OK || status > WEFT_UNAUTHENTICATED)
		return wf_last_set(-EINVAL, "status %d is none to abort a step with", (int)status);
	if (!message)
		message = "";
	return submit(&node->desk, wf_step_new_aborted(step, status, message, strlen(message)));
}

int weft_step_end(struct weft_node *node, uint64_t step)
{
	int err = wf_node_check(node);

	return err ? err : submit(&node->desk, wf_step_new_ended(step));
}
