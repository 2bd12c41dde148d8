/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/recall.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int wf_recall_open(uint64_t offer, struct wf_recall **recall)
{
	struct wf_recall *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->control.type = WF_RECORD_WITHDRAW;
	r->control.id = offer;
	*recall = r;
	return 0;
}

/*
 * Free a recall that the peer has got.  Its own WITHDRAWN, not this, says that the offer is
 * over.
 */
static void heard(struct wf_message_control *c, const struct wf_error *e)
{
	(void)e;
	free(WF_CONTAINER(c, struct wf_recall, control));
}

void wf_recall_post(struct wf_recall *recall, struct wf_link *link)
{
	recall->control.sent = heard;
	wf_link_control(link, &recall->control);
}

void wf_recall_close(struct wf_recall *recall)
{
	free(recall);
}

/* The rest of a record of which a part has left: a copy, so that its owner may end. */
struct leftover {
	struct wf_message message;
	struct wf_link *link;
	struct wf_recall *recall; /* NULL: the record is no offer */
	uint8_t bytes[];
};

static void leftover_sent(struct wf_message *m, const struct wf_error *e)
{
	struct leftover *left = WF_CONTAINER(m, struct leftover, message);

	if (left->recall && !e)
		wf_recall_post(left->recall, left->link);
	else
		wf_recall_close(left->recall);
	wf_link_put(left->link);
	free(left);
}

int wf_recall_finish(struct wf_message *message, struct wf_recall **recall, struct wf_link *link)
{
	size_t head = message->head_bytes, body = message->body_bytes;
	struct leftover *copy = malloc(sizeof(*copy) + head + body);

	if (!copy)
		return -ENOMEM;
	memcpy(copy->bytes, message->head, head);
	if (body)
		memcpy(copy->bytes + head, message->body, body);
	copy->message = *message;
	copy->message.head = copy->bytes;
	copy->message.head_bytes = head + body;
	copy->message.body = NULL;
	copy->message.body_bytes = 0;
	copy->message.sent = leftover_sent;
	copy->message.follows = NULL; /* a record that has begun is not overtaken */
	copy->recall = *recall;
	*recall = NULL;
	copy->link = link;
	wf_link_get(link);
	wf_list_insert_before(&message->node, &copy->message.node);
	wf_list_remove(&message->node);
	return 0;
}
