/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/desk.h"
#include "core/last.h"
#include "core/node.h"
#include "core/turn.h"
#include "util/clock.h"

/* Endings are allocated before the call returns, so that it can report -ENOMEM. */
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
		wf_step_end_abort(channels, ending->step);
	else
		wf_step_end_here(channels, ending->step);
	free(ending);
}

/* Make the ending of a step at @desk.  Takes @step; NULL: there was no memory for it. */
static struct ending *new_ending(struct wf_desk *desk, struct wf_step *step)
{
	struct ending *ending = malloc(sizeof(*ending));

	if (!step || !ending) {
		wf_step_free(step);
		free(ending);
		return NULL;
	}
	*ending = (struct ending){ .task.run = run, .desk = desk, .step = step };
	return ending;
}

static struct wf_step *copy_of(const struct wf_step *s)
{
	return s->aborted ? wf_step_new_aborted(s->number, s->status, s->text, strlen(s->text))
			  : wf_step_new_ended(s->number);
}

static void drop(struct ending *ending)
{
	if (ending)
		wf_step_free(ending->step);
	free(ending);
}

/* End @step on every desk but @except.  -ENOMEM: on none. */
static int submit(struct weft_node *node, const struct wf_desk *except, const struct wf_step *step)
{
	struct ending *endings[WF_WORKERS_MAX];
	unsigned count = 0;

	for (unsigned i = 0; i < node->desk_count; i++) {
		struct wf_desk *desk = &node->desks[i];

		if (desk == except)
			continue;
		endings[count] = new_ending(desk, copy_of(step));
		if (!endings[count])
			goto drop_endings;
		count++;
	}
	for (unsigned i = 0; i < count; i++) {
		if (except)
			wf_loop_submit(&endings[i]->desk->worker.loop, &endings[i]->task);
		else
			wf_turn_run(endings[i]->desk, &endings[i]->task, wf_clock_now());
	}
	return 0;

drop_endings:
	while (count--)
		drop(endings[count]);
	return -ENOMEM;
}

int wf_steps_relay(void *ctx, const struct wf_step *step)
{
	struct wf_desk *desk = ctx;

	return submit(desk->node, desk, step);
}

/* End @step on all desks.  Takes @step; NULL: there was no memory for it. */
static int end(struct weft_node *node, struct wf_step *step)
{
	int err = step ? submit(node, NULL, step) : -ENOMEM;

	wf_step_free(step);
	return err ? wf_last_set(err, "no memory to end a step") : 0;
}

int wf_steps_abort(struct weft_node *node, uint64_t step, enum weft_status status,
		   const char *message)
{
	return end(node, wf_step_new_aborted(step, status, message, strlen(message)));
}

int wf_steps_end(struct weft_node *node, uint64_t step)
{
	return end(node, wf_step_new_ended(step));
}
