/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/internal.h"

#include <stdlib.h>

int wf_post_take(struct wf_rail *rail, struct wf_ep *ep, enum wf_post_kind kind, void *cookie,
		 struct wf_post **post)
{
	struct wf_list *node = wf_list_pop(&rail->spare);
	struct wf_post *p = node ? WF_CONTAINER(node, struct wf_post, node) : malloc(sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	*p = (struct wf_post){
		.kind = kind,
		.ep = ep,
		.notice.event = {
			.kind = kind == WF_POST_SEND ? WF_EVENT_SENT : WF_EVENT_READ,
			.ep = ep,
			.cookie = cookie,
		},
	};
	wf_list_init(&p->node);
	wf_list_init(&p->notice.node);
	err = wf_table_add(&rail->posts, p, &p->id);
	if (err) {
		wf_list_append(&rail->spare, &p->node);
		return err;
	}
	wf_list_append(&ep->posts, &p->node);
	ep->busy++;
	rail->busy++;
	*post = p;
	return 0;
}

void wf_post_give(struct wf_rail *rail, struct wf_post *post)
{
	wf_table_remove(&rail->posts, post->id);
	wf_list_remove(&post->notice.node);
	wf_list_remove(&post->node);
	wf_list_prepend(&rail->spare, &post->node);
	post->ep->busy--;
	rail->busy--;
}

void wf_post_tell(struct wf_rail *rail, struct wf_rail_notice *notice)
{
	wf_list_append(&rail->notices, &notice->node);
}

/* Reads made inside the call are told late, so that others have their turn between two. */
void wf_post_delay(struct wf_rail *rail, struct wf_rail_notice *notice)
{
	wf_list_remove(&notice->node);
	wf_list_append(&rail->delayed, &notice->node);
}

void wf_post_late(struct wf_rail *rail)
{
	wf_counters_add(&rail->counters->late_dropped, 1);
}

void wf_post_drop_all(struct wf_ep *ep)
{
	struct wf_list *node;

	while ((node = wf_list_first(&ep->posts))) {
		struct wf_post *post = WF_CONTAINER(node, struct wf_post, node);

		/* The provider drops its posts when the endpoint closes; the helper is asked to. */
		if (ep->rail->own.helper) {
			wf_rail_entered(ep->rail, "wf_helper_drop");
			wf_copy_thread_drop(ep->rail->own.helper, post);
			wf_rail_left(ep->rail, 0);
		}
		wf_post_give(ep->rail, post);
	}
}
