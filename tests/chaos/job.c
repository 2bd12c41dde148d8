/* SPDX-License-Identifier: BSD-2-Clause */
#include "job.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WILD_LEAST_NS (50 * MS)
#define WILD_MOST_NS (8 * SECOND)
#define CANCEL_ONE_IN 24          /* of wild operations */
#define CANCEL_MOST_NS (200 * MS) /* after its begin */

uint64_t job_draw(struct traffic *t, uint64_t count)
{
	t->random ^= t->random << 13;
	t->random ^= t->random >> 7;
	t->random ^= t->random << 17;
	return (t->random >> 11) % count;
}

uint64_t job_draw_scaled(struct traffic *t, uint64_t least, uint64_t most)
{
	unsigned doublings = 0;
	uint64_t top;

	while (least << (doublings + 1) < most)
		doublings++;
	top = least << job_draw(t, doublings + 1);
	return top + job_draw(t, (2 * top < most ? 2 * top : most) - top + 1);
}

void job_tell(struct traffic *t, const struct report *report)
{
	if (write(t->config.reports_fd, report, sizeof(*report)) != (ssize_t)sizeof(*report))
		abort(); /* a promise that nobody would know to be broken */
}

void job_tell_of(struct job *j, enum report_fault fault, const char *text)
{
	struct report report = {
		.member = j->traffic->config.self,
		.peer = j->lane->peer,
		.kind = j->lane->is->kind,
		.fault = fault,
		.status = j->op ? weft_op_status(j->op) : WEFT_UNKNOWN,
		.is_calm = j->lane->is->calm,
		.begun_ns = j->begun_ns,
		.due_ns = j->due_ns,
		.cancelled_ns = j->cancelled_ns,
		.ended_ns = atomic_load(&j->ended_ns),
	};

	if (j->cancelled_ns && j->cancelled_ns < j->due_ns)
		report.due_ns = j->cancelled_ns;
	if (!report.ended_ns)
		report.ended_ns = now_ns();
	snprintf(report.text, sizeof(report.text), "%s", text);
	job_tell(j->traffic, &report);
}

void job_tell_owned(struct traffic *t, enum report_kind kind, uint32_t peer, bool calm,
		    enum report_fault fault, uint64_t begun_ns, const char *text)
{
	struct report report = { .member = t->config.self,
				 .peer = peer,
				 .kind = kind,
				 .fault = fault,
				 .is_calm = calm,
				 .begun_ns = begun_ns,
				 .due_ns = begun_ns,
				 .ended_ns = now_ns() };

	snprintf(report.text, sizeof(report.text), "%s", text);
	job_tell(t, &report);
}

/* A callback of the worker. */
static void ended(struct weft_op *op, void *arg)
{
	struct job *j = arg;

	(void)op;
	atomic_store(&j->ended_ns, now_ns());
	atomic_fetch_add(&j->ends, 1);
}

struct weft_op_options job_options(struct traffic *t, struct job *j)
{
	uint64_t timeout_ns = j->lane->is->calm ? JOB_CALM_NS :
						  job_draw_scaled(t, WILD_LEAST_NS, WILD_MOST_NS);

	if (!j->lane->is->calm && !job_draw(t, CANCEL_ONE_IN))
		j->cancel_ns = j->begun_ns + job_draw(t, CANCEL_MOST_NS);
	j->due_ns = j->begun_ns + timeout_ns;
	return (struct weft_op_options){ .size = sizeof(struct weft_op_options),
					 .timeout_ns = timeout_ns,
					 .done = ended,
					 .arg = j };
}

size_t job_draw_bytes(struct traffic *t, size_t most)
{
	return job_draw(t, 16) ? job_draw_scaled(t, CONTENT_BYTES_MIN, most) : 0;
}

size_t job_key(char key[JOB_KEY_BYTES], uint32_t from, uint32_t to)
{
	return (size_t)snprintf(key, JOB_KEY_BYTES, "from %u to %u", from, to);
}

struct weft_tensor job_tensor(void *bytes, int64_t *count)
{
	return (struct weft_tensor){ .data = bytes,
				     .device = { WEFT_CPU, 0 },
				     .ndim = 1,
				     .dtype = { WEFT_UINT, 8, 1 },
				     .shape = count };
}

bool job_fill(struct traffic *t, struct job *j)
{
	j->what = (struct content){ .from = t->config.self,
				    .to = j->lane->peer,
				    .lane = j->lane->step,
				    .life = t->life,
				    .sequence = j->lane->next_sequence };
	j->count = job_draw_bytes(t, j->lane->is->bytes_most);
	j->bytes = guarded_take(j->count);
	if (!j->bytes)
		return false;
	content_put(j->bytes, j->count, &j->what);
	return true;
}

void job_free(struct job *j)
{
	guarded_give(j->bytes);
	free(j);
}
