/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/server_hooks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/attachment.h"
#include "core/node.h"
#include "core/op.h"
#include "core/streaming.h"
#include "core/worker.h"

/* Take a reference to a child that is not being freed; NULL: there is none. */
static struct weft_op *take_child(struct wf_server_call *served)
{
	struct weft_node *node = wf_worker_of(served)->node;
	struct weft_op *child = NULL;
	struct wf_list *at;

	pthread_mutex_lock(&node->lock);
	while (!child && (at = wf_list_pop(&served->children))) {
		unsigned refs;

		child = WF_CONTAINER(at, struct weft_op, call.child.node);
		child->call.child.parent = NULL;
		refs = atomic_load(&child->refs);
		while (refs && !atomic_compare_exchange_weak(&child->refs, &refs, refs + 1))
			;
		if (!refs)
			child = NULL;
	}
	pthread_mutex_unlock(&node->lock);
	return child;
}

void wf_server_hooks_given_up(struct wf_server_call *served)
{
	struct weft_op *child;

	if (served->stream)
		wf_streaming_given_up(served->stream, wf_worker_of(served));
	while ((child = take_child(served))) {
		wf_op_cancel(child);
		wf_op_put(child);
	}
}

void wf_server_hooks_answered(struct wf_server_call *served)
{
	struct wf_worker *worker = wf_worker_of(served);
	struct wf_record_attachment_key key = { .reply = 1 };

	wf_attachments_begin(&served->reply.attached, worker, served->link, served->call, key);
	/* Attachments of the reply outlive the call from now on. */
	while (wf_list_pop(&served->reply.attached))
		;
}

void wf_server_hooks_gone(struct wf_server_call *served)
{
	struct weft_node *node;
	struct wf_list *at;

	wf_attachments_stop(&served->reply.attached, wf_worker_of(served), NULL);
	if (served->stream)
		wf_streaming_gone(served->stream, wf_worker_of(served));
	/* The list itself is for who has the lock: a child may be leaving it. */
	if (!served->adopted)
		return;
	node = wf_worker_of(served)->node;
	pthread_mutex_lock(&node->lock);
	while ((at = wf_list_pop(&served->children)))
		WF_CONTAINER(at, struct weft_op, call.child.node)->call.child.parent = NULL;
	pthread_mutex_unlock(&node->lock);
}
