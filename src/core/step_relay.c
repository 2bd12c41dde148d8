/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/step_relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/last.h"
#include "core/node.h"
#include "core/turn.h"
#include "core/worker.h"
#include "util/clock.h"

/* Endings are allocated before the call returns, so that it can report -ENOMEM. */
struct ending {
	struct wf_loop_task task;
	struct wf_worker *worker;
	struct wf_step *step;
	bool heard; /* by another worker, of a peer */
};

static void run(struct wf_loop_task *task)
{
	struct ending *ending = WF_CONTAINER(task, struct ending, task);
	struct wf_channels *channels = &ending->worker->channels;

	if (ending->step->aborted)
		wf_step_end_abort(channels, ending->step, ending->heard);
	else
		wf_step_end_here(channels, ending->step);
	free(ending);
}

/* Make the ending of a step at @worker.  Takes @step; NULL: there was no memory for it. */
static struct ending *new_ending(struct wf_worker *worker, struct wf_step *step)
{
	struct ending *ending = malloc(sizeof(*ending));

	if (!step || !ending) {
		wf_step_free(step);
		free(ending);
		return NULL;
	}
	*ending = (struct ending){ .task.run = run, .worker = worker, .step = step };
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

/* End @step on every worker but @except.  -ENOMEM: on none. */
static int submit(struct weft_node *node, const struct wf_worker *except,
		  const struct wf_step *step)
{
	struct ending *endings[WF_WORKERS_MAX];
	unsigned count = 0;

	for (unsigned i = 0; i < node->worker_count; i++) {
		struct wf_worker *worker = &node->workers[i];

		if (worker == except)
			continue;
		endings[count] = new_ending(worker, copy_of(step));
		if (!endings[count])
			goto drop_endings;
		endings[count++]->heard = except;
	}
	for (unsigned i = 0; i < count; i++) {
		if (except)
			wf_loop_submit(&endings[i]->worker->engine.loop, &endings[i]->task);
		else
			wf_turn_run(endings[i]->worker, &endings[i]->task, wf_clock_now());
	}
	return 0;

drop_endings:
	while (count--)
		drop(endings[count]);
	return -ENOMEM;
}

int wf_step_relay_tell(void *ctx, const struct wf_step *step)
{
	struct wf_worker *worker = ctx;

	return submit(worker->node, worker, step);
}

/* End @step on all workers.  Takes @step; NULL: there was no memory for it. */
static int end(struct weft_node *node, struct wf_step *step)
{
	int err = step ? submit(node, NULL, step) : -ENOMEM;

	wf_step_free(step);
	return err ? wf_last_set(err, "no memory to end a step") : 0;
}

int wf_step_relay_abort(struct weft_node *node, uint64_t step, enum weft_status status,
			const char *message)
{
	return end(node, wf_step_new_aborted(step, status, message, strlen(message)));
}

int wf_step_relay_end(struct weft_node *node, uint64_t step)
{
	return end(node, wf_step_new_ended(step));
}
