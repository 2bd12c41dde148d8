/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/internal.h"
#include "util/clock.h"

#define BATCH 16

/* Queues in memory of the host grow by themselves; 128 keeps an endpoint small. */
#define OWN_ENTRIES 128

/*
 * Limit of what the time between two looks counts for: all who were inside may have left then.
 * Not tuned.
 */
#define SHUT_PAUSE_NS (30 * WF_NS_PER_MS)

/* Entries of a queue.  That of an adapter never grows, and one that overruns is lost for good. */
static size_t entries(const struct wf_rail *rail, const struct wf_ep *ep)
{
	if (ep && !rail->row->rdma)
		return OWN_ENTRIES;
	return rail->slots.most + rail->info->tx_attr->size;
}

int wf_cq_open(struct wf_rail *rail, struct wf_ep *ep, struct wf_cq *cq, struct wf_error *e)
{
	struct fi_cq_attr attr = {
		.size = entries(rail, ep),
		.format = FI_CQ_FORMAT_MSG,
		.wait_obj = rail->wait.epoll < 0 ? FI_WAIT_NONE :
			    rail->wait.pollfd	 ? FI_WAIT_POLLFD : FI_WAIT_FD,
	};
	int err;

	*cq = (struct wf_cq){ .ep = ep };
	wf_list_init(&cq->node);
	wf_list_init(&cq->warm_node);
	err = WF_RAIL_CALL(rail, fi_cq_open, rail->domain, &attr, &cq->fid, cq);
	if (err)
		return wf_error_set(e, err, "%s opens no completion queue: %s", rail->caps.provider,
				    wf_error_name(err));
	err = wf_wait_add(rail, cq, e);
	if (err) {
		wf_wait_remove(rail, cq);
		WF_RAIL_CALL(rail, fi_close, &cq->fid->fid);
		cq->fid = NULL;
		return err;
	}
	wf_list_append(&rail->queues.all, &cq->node);
	wf_list_append(&rail->queues.warm, &cq->warm_node);
	rail->queues.warm_count++;
	rail->queues.empty = false;
	return 0;
}

void wf_cq_warm(struct wf_rail *rail, struct wf_cq *cq)
{
	cq->empty = 0;
	rail->queues.empty = false;
	if (!wf_list_empty(&cq->warm_node))
		return;
	wf_list_append(&rail->queues.warm, &cq->warm_node);
	rail->queues.warm_count++;
	rail->queues.cold_count--;
}

void wf_cq_cool(struct wf_rail *rail, struct wf_cq *cq)
{
	if (!rail->wait.pollfd || !cq->id)
		return;
	wf_list_remove(&cq->warm_node);
	rail->queues.warm_count--;
	rail->queues.cold_count++;
}

/* A queue is closed after its endpoints: libfabric 1.17 crashes the other way round. */
void wf_cq_close(struct wf_rail *rail, struct wf_cq *cq)
{
	if (!cq->fid)
		return;
	wf_wait_remove(rail, cq);
	wf_cq_warm(rail, cq);
	wf_list_remove(&cq->warm_node);
	rail->queues.warm_count--;
	wf_list_remove(&cq->node);
	WF_RAIL_CALL(rail, fi_close, &cq->fid->fid);
	cq->fid = NULL;
}

/* The post of @context; NULL: the completion came late, twice or out of nowhere. */
static struct wf_post *post_of(struct wf_rail *rail, void *context)
{
	struct wf_post *post = wf_table_get(&rail->posts, (uint64_t)(uintptr_t)context);

	if (!post)
		wf_post_late(rail);
	return post;
}

void wf_cq_end(struct wf_rail *rail, struct wf_post *post, int status)
{
	/* The id of @post dies now, so that a second completion finds nothing. */
	wf_table_remove(&rail->posts, post->id);
	post->id = 0;
	post->notice.event.status = status;
	wf_post_tell(rail, &post->notice);
}

static void completed(struct wf_rail *rail, const struct fi_cq_msg_entry *entry)
{
	struct wf_post *post = post_of(rail, entry->op_context);

	if (!post)
		return;
	if (post->kind != WF_POST_SLOT) {
		wf_cq_end(rail, post, 0);
		return;
	}
	/* A write with data from the peer may use up a slot; weft makes none. */
	if ((entry->flags & FI_RMA) || entry->len > rail->slots.frame_bytes) {
		wf_post_late(rail);
		wf_slots_post(rail, post);
		return;
	}
	post->notice.event.count = entry->len;
	post->held = true;
	wf_cq_end(rail, post, 0);
}

static void failed(struct wf_rail *rail, struct wf_cq *cq, const struct fi_cq_err_entry *entry)
{
	struct wf_post *post = post_of(rail, entry->op_context);
	int status = entry->err < 0 ? entry->err : -entry->err; /* either sign has been seen */

	if (!status)
		status = -EIO;
	if (!post)
		return;
	if (post->kind == WF_POST_SLOT)
		wf_slots_post(rail, post);
	else
		wf_cq_end(rail, post, status);
	/* On a connected rail any error means that the connection is gone. */
	if (rail->caps.connected && (post->ep || cq->ep))
		wf_ep_die(post->ep ? post->ep : cq->ep, status);
}

/* Note that the gate of @shared was found shut. */
static void find_shut(struct wf_rail_shared *shared)
{
	uint64_t now_ns = wf_clock_now();

	if (shared->shut_ns)
		shared->shut_for_ns += WF_MIN(now_ns - shared->shut_ns, SHUT_PAUSE_NS);
	shared->shut_ns = now_ns;
}

int wf_cq_read(struct wf_rail *rail, struct wf_cq *cq)
{
	struct fi_cq_msg_entry entries[BATCH];
	struct fi_cq_err_entry error = { 0 };
	ssize_t n, i;

	if (!wf_gate_enter(&rail->shared.gate)) {
		find_shut(&rail->shared);
		return 0;
	}
	n = WF_RAIL_CALL(rail, fi_cq_read, cq->fid, entries, BATCH);
	/* Knocks are answered by an empty queue alone: after entries there may be more. */
	if (n == -FI_EAGAIN)
		wf_gate_hear(&rail->shared.gate);
	wf_gate_leave(&rail->shared.gate);
	rail->shared.shut_ns = 0;
	rail->shared.shut_for_ns = 0;
	if (n > 0) {
		for (i = 0; i < n; i++)
			completed(rail, &entries[i]);
		return (int)n;
	}
	if (n != -FI_EAVAIL || WF_RAIL_CALL(rail, fi_cq_readerr, cq->fid, &error, 0) <= 0)
		return 0;
	failed(rail, cq, &error);
	return 1;
}

void wf_cq_drain(struct wf_rail *rail, struct wf_cq *cq)
{
	while (wf_cq_read(rail, cq))
		;
}
