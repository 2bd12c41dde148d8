/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft_dump: what a node holds, for people.  It is written by the worker,
 * which alone may look at links, and so shows one moment.
 */
#include "api/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "util/clock.h"

struct dump {
	struct wf_task task;
	struct weft_node *node;
	char *text;
	size_t bytes;
	bool done; /* under the node's lock */
};

static void write_links(FILE *out, struct wf_worker *w)
{
	static const char *const states[] = { "idle", "dialling", "trying", "up", "gone" };

	WF_LIST_EACH(at, &w->link_list) {
		struct wf_link *link = WF_CONTAINER(at, struct wf_link, node);
		unsigned frames = 0, queued = 0;

		WF_LIST_EACH(f, &link->frames)
			frames++;
		WF_LIST_EACH(m, &link->queue)
			queued++;
		fprintf(out,
			"link %s %s: %s on %s, epoch %u, %u frames unconfirmed, %u records queued, %u credits, %u watched\n",
			link->name[0] ? link->name : "-", link->address, states[link->state],
			link->on ? wf_rail_caps(link->on->rail)->provider : "no rail",
			link->epoch, frames, queued, wf_credit_left(&link->credit),
			link->watch_count);
	}
}

static void write_ops(FILE *out, struct weft_node *node)
{
	static const char *const kinds[] = { "ping", "send", "recv", "call" };
	uint64_t now = wf_clock_now();

	WF_LIST_EACH(at, &node->ops) {
		struct weft_op *op = WF_CONTAINER(at, struct weft_op, node);

		if (atomic_load(&op->state) != WF_OP_RUNNING)
			continue;
		fprintf(out, "%s %s %s", kinds[op->kind], op->kind == WF_OP_RECV ? "from" : "to",
			!op->peer	    ? "any"
			: op->peer->name[0] ? op->peer->name
					    : op->peer->address);
		if (op->kind == WF_OP_SEND)
			fprintf(out, ", step %llu, %llu bytes",
				(unsigned long long)op->send.sending.step,
				(unsigned long long)op->send.sending.parcel.body_bytes);
		if (op->kind == WF_OP_RECV)
			fprintf(out, ", step %llu", (unsigned long long)op->recv.receiving.step);
		if (op->deadline_ns != UINT64_MAX)
			fprintf(out, ", %.1f s left",
				((double)op->deadline_ns - (double)now) / WF_NS_PER_S);
		fputc('\n', out);
	}
}

static void write_dump(struct wf_task *task)
{
	struct dump *d = WF_CONTAINER(task, struct dump, task);
	struct weft_node *node = d->node;
	struct wf_pool *pool = &node->worker.pool;
	FILE *out = open_memstream(&d->text, &d->bytes);

	if (out) {
		fprintf(out, "node %s at %s\n", node->worker.name, node->worker.address);
		write_links(out, &node->worker);
	}
	pthread_mutex_lock(&node->lock);
	if (out) {
		write_ops(out, node);
		fprintf(out, "pool: %llu of %llu bytes, %llu used\n",
			(unsigned long long)pool->slab_bytes,
			(unsigned long long)pool->budget_bytes,
			(unsigned long long)pool->used_bytes);
		fclose(out);
	}
	d->done = true;
	pthread_cond_broadcast(&node->ended);
	pthread_mutex_unlock(&node->lock);
}

int weft_dump(struct weft_node *node, FILE *out)
{
	struct dump d = { .node = node, .task.run = write_dump };
	int err = wf_node_check(node);

	if (err)
		return err;
	/* In a callback this is the worker's own thread. */
	if (wf_node_inside(node) ||
	    (node->manual && pthread_equal(node->thread, pthread_self()))) {
		write_dump(&d.task);
	} else {
		wf_worker_submit(&node->worker, &d.task);
		pthread_mutex_lock(&node->lock);
		while (!d.done)
			pthread_cond_wait(&node->ended, &node->lock);
		pthread_mutex_unlock(&node->lock);
	}
	if (!d.text)
		return wf_last_set(-ENOMEM, "no memory for a dump");
	fwrite(d.text, 1, d.bytes, out);
	free(d.text);
	return 0;
}
