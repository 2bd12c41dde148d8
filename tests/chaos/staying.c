/* SPDX-License-Identifier: BSD-2-Clause */
#include "staying.h"

#include <stdlib.h>

#include "job.h"

#define OUT_MAX 8 /* few, so that tensors wait for their turn now and then */

int staying_open(struct traffic *t)
{
	int err = weft_queue_open(t->node, &t->staying.queue);

	if (!err)
		pthread_mutex_init(&t->staying.lock, NULL);
	return err;
}

void staying_close(struct traffic *t)
{
	weft_queue_close(t->staying.queue);
	pthread_mutex_destroy(&t->staying.lock);
}

static struct job *new_part(struct job *stay)
{
	struct job *part = calloc(1, sizeof(*part));

	if (!part)
		return NULL;
	part->traffic = stay->traffic;
	part->lane = stay->lane;
	part->place = stay->place;
	part->due_ns = JOB_NO_DEADLINE_NS;
	atomic_init(&part->ends, 1);
	return part;
}

/* A callback of the worker: each tensor gets guarded memory of its own. */
static void *asked(void *arg, const struct weft_tensor *want, uint64_t bytes)
{
	struct job *stay = arg, *part = new_part(stay);

	(void)want;
	if (!part)
		return NULL;
	part->bytes = guarded_take(bytes);
	part->count = bytes;
	if (!part->bytes) {
		free(part);
		return NULL;
	}
	guarded_mark(part->bytes, bytes);
	pthread_mutex_lock(&stay->traffic->staying.lock);
	part->next = stay->parts;
	stay->parts = part;
	pthread_mutex_unlock(&stay->traffic->staying.lock);
	return part->bytes;
}

int staying_begin(struct traffic *t, struct job *j)
{
	struct weft_recv_options options = { .size = sizeof(options), .op = job_options(t, j) };
	char key[JOB_KEY_BYTES];
	size_t length = job_key(key, j->lane->peer, t->config.self);

	options.op.done = NULL;
	options.op.queue = t->staying.queue;
	if (j->lane->is->calm) {
		options.op.timeout_ns = 0;
		j->due_ns = JOB_NO_DEADLINE_NS;
	}
	options.flags = WEFT_RECV_MANY;
	options.many_max = 1 + (unsigned)job_draw(t, OUT_MAX);
	j->place = job_draw(t, 2) ? PLACE_POOL : PLACE_ASKED;
	if (j->place == PLACE_ASKED) {
		options.alloc = asked;
		options.alloc_arg = j;
	}
	return weft_recv(t->node, t->peers[j->lane->peer], j->lane->step, key, length, NULL,
			 &options, &j->op);
}

/* Take the part of @stay whose memory is at @data, or any with NULL.  NULL: there is none. */
static struct job *take_part(struct job *stay, const void *data)
{
	struct job **at, *part;

	pthread_mutex_lock(&stay->traffic->staying.lock);
	for (at = &stay->parts; *at && data && (*at)->bytes != data;)
		at = &(*at)->next;
	part = *at;
	if (part)
		*at = part->next;
	pthread_mutex_unlock(&stay->traffic->staying.lock);
	return part;
}

/* The tensor of @stay that @op got.  NULL: no memory. */
static struct job *part_of(struct job *stay, struct weft_op *op)
{
	const struct weft_tensor *got = weft_op_tensor(op, NULL);
	struct weft_path path = { .size = sizeof(path) };
	struct job *part = got && got->data ? take_part(stay, got->data) : NULL;

	if (!part)
		part = new_part(stay);
	if (!part)
		return NULL;
	part->op = op;
	part->cancelled_ns = stay->cancelled_ns;
	part->begun_ns = now_ns();
	atomic_store(&part->ended_ns, part->begun_ns);
	if (!weft_op_path(op, &path))
		part->begun_ns -= path.done_ns;
	part->lane->under_way++;
	return part;
}

struct job *staying_next(struct traffic *t)
{
	struct weft_op *op;
	struct job *stay, *part;

	while (weft_queue_next(t->staying.queue, &op, 1, 0) == 1) {
		stay = weft_op_arg(op);
		if (op == stay->op) {
			atomic_store(&stay->ended_ns, now_ns());
			atomic_fetch_add(&stay->ends, 1);
			continue;
		}
		if (atomic_load(&stay->ends))
			job_tell_of(stay, REPORT_TWICE, "a tensor came after the receive's end");
		part = part_of(stay, op);
		if (part)
			return part;
		weft_op_free(op);
	}
	return NULL;
}

struct job *staying_rest(struct job *j)
{
	return take_part(j, NULL);
}
