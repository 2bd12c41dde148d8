/* SPDX-License-Identifier: BSD-2-Clause */
#include "pushes.h"

#include <errno.h>
#include <string.h>

#include "job.h"

#define CHECKSUM_ONE_IN 4

static struct pushed *pushed_of(const struct traffic *t, const struct lane *lane)
{
	return (struct pushed *)&t->pushed[lane->peer][lane->is->calm];
}

bool pushes_may_begin(const struct traffic *t, const struct lane *lane)
{
	return !t->drains &&
	       (lane->is->kind == REPORT_SEEK) == !pushed_of(t, lane)->remote;
}

static int begin_seek(struct traffic *t, struct job *j)
{
	struct weft_op_options options = job_options(t, j);
	const char *key = landings_key(j->lane->is->calm);

	return weft_window_find(t->peers[j->lane->peer], key, strlen(key), &options, &j->op);
}

int pushes_begin(struct traffic *t, struct job *j)
{
	struct weft_push_options options = { .size = sizeof(options), .op = job_options(t, j) };
	struct pushed *p = pushed_of(t, j->lane);
	struct weft_tensor tensor;
	int64_t count;

	j->access.found = p->found;
	if (j->lane->is->kind == REPORT_SEEK)
		return begin_seek(t, j);
	if (!job_fill(t, j))
		return -ENOMEM;
	count = (int64_t)j->count;
	tensor = job_tensor(j->bytes, &count);
	options.number = j->what.sequence;
	if (!job_draw(t, CHECKSUM_ONE_IN))
		options.op.flags = WEFT_CHECKSUM;
	return weft_push(p->remote, &tensor, &options, &j->op);
}

void pushes_check(struct traffic *t, struct job *j)
{
	struct pushed *p = pushed_of(t, j->lane);
	enum weft_status status = weft_op_status(j->op);

	if (status == WEFT_NOT_FOUND && j->access.found == p->found) {
		weft_remote_close(p->remote);
		p->remote = NULL;
	}
	if (status != WEFT_OK)
		return;
	t->totals.bytes += j->count;
	if (j->lane->is->kind != REPORT_SEEK)
		return;
	if (weft_op_remote(j->op, &p->remote))
		job_tell_of(j, REPORT_WRONG, weft_error());
	else
		p->found++;
}

void pushes_close(struct traffic *t)
{
	for (uint32_t i = 0; i < t->config.count; i++)
		for (unsigned calm = 0; calm < 2; calm++)
			weft_remote_close(t->pushed[i][calm].remote);
}
