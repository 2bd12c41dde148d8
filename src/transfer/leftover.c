/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/leftover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct leftover {
	struct wf_message message;
	struct wf_link *link;
	struct wf_recall *recall; /* NULL: the record is no offer */
	uint8_t bytes[];
};

static void sent(struct wf_message *m, const struct wf_error *e)
{
	struct leftover *left = WF_CONTAINER(m, struct leftover, message);

	if (left->recall && !e)
		wf_recall_post(left->recall, left->link);
	else
		wf_recall_close(left->recall);
	wf_link_put(left->link);
	free(left);
}

int wf_leftover_post(struct wf_message *message, struct wf_recall **recall, struct wf_link *link)
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
	copy->message.sent = sent;
	copy->recall = *recall;
	*recall = NULL;
	copy->link = link;
	wf_link_get(link);
	wf_list_insert_before(&message->node, &copy->message.node);
	wf_list_remove(&message->node);
	return 0;
}
