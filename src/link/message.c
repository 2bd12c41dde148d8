/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/message.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "link/ledger.h"
#include "link/link.h"

_Static_assert(WF_RECORD_SUMS_BYTES_MAX <= WF_MESSAGE_COPY_BYTES_MAX, "sums are longer");

struct wf_message_copy {
	struct wf_message message;
	struct wf_link *link; /* a reference, once posted */
	bool charged;         /* the peer's account pays for the copy */
	uint8_t bytes[WF_MESSAGE_COPY_BYTES_MAX];
};

static void sent(struct wf_message *m, const struct wf_error *e)
{
	struct wf_message_copy *copy = WF_CONTAINER(m, struct wf_message_copy, message);

	(void)e;
	if (copy->charged) {
		wf_ledger_answer_left(copy->link, sizeof(*copy));
		wf_ledger_discharge(copy->link, WF_LEDGER_OWED, sizeof(*copy));
	}
	wf_link_put(copy->link);
	free(copy);
}

struct wf_message_copy *wf_message_copy_new(void)
{
	return calloc(1, sizeof(struct wf_message_copy));
}

void wf_message_copy_free(struct wf_message_copy *copy)
{
	free(copy);
}

static void post(struct wf_message_copy *copy, struct wf_link *link, uint8_t priority, uint8_t type,
		 const uint8_t *bytes, size_t count)
{
	assert(count <= sizeof(copy->bytes));
	copy->link = link;
	wf_link_get(link);
	memcpy(copy->bytes, bytes, count);
	copy->message.type = type;
	copy->message.priority = priority;
	copy->message.head = copy->bytes;
	copy->message.head_bytes = count;
	copy->message.sent = sent;
	wf_link_post(link, &copy->message);
}

void wf_message_copy_post(struct wf_message_copy *copy, struct wf_link *link, uint8_t priority,
			  uint8_t type, const uint8_t *bytes, size_t count)
{
	copy->charged = true;
	wf_ledger_charge(link, WF_LEDGER_OWED, sizeof(*copy));
	wf_ledger_answer_waits(link, sizeof(*copy));
	post(copy, link, priority, type, bytes, count);
}

int wf_message_post_copy(struct wf_link *link, uint8_t priority, uint8_t type,
			 const uint8_t *bytes, size_t count)
{
	struct wf_message_copy *copy = wf_message_copy_new();

	if (!copy)
		return -ENOMEM;
	wf_message_copy_post(copy, link, priority, type, bytes, count);
	return 0;
}

int wf_message_post_own(struct wf_link *link, uint8_t priority, uint8_t type, const uint8_t *bytes,
			size_t count)
{
	struct wf_message_copy *copy = wf_message_copy_new();

	if (!copy)
		return -ENOMEM;
	post(copy, link, priority, type, bytes, count);
	return 0;
}

int wf_message_post_small(struct wf_link *link, uint8_t priority, uint8_t type, uint64_t id,
			  uint64_t other, uint8_t status)
{
	uint8_t bytes[WF_RECORD_SMALL_BYTES];
	struct wf_bytes_writer w = wf_bytes_writer(bytes, sizeof(bytes));

	wf_record_small_put(&w, &(struct wf_record_small){ id, other, status });
	return wf_message_post_copy(link, priority, type, bytes, sizeof(bytes));
}

/* The rest of a message. */
struct rest {
	struct wf_message message;
	struct wf_link *link; /* a reference */
	uint8_t bytes[];
};

static void rest_sent(struct wf_message *m, const struct wf_error *e)
{
	struct rest *rest = WF_CONTAINER(m, struct rest, message);

	(void)e;
	wf_link_put(rest->link);
	free(rest);
}

int wf_message_finish_copy(struct wf_message *m, struct wf_link *link)
{
	struct rest *rest = malloc(sizeof(*rest) + m->head_bytes + m->body_bytes);

	if (!rest)
		return -ENOMEM;
	memcpy(rest->bytes, m->head, m->head_bytes);
	if (m->body_bytes)
		memcpy(rest->bytes + m->head_bytes, m->body, m->body_bytes);
	rest->message = *m;
	rest->message.head = rest->bytes;
	rest->message.head_bytes = m->head_bytes + m->body_bytes;
	rest->message.body = NULL;
	rest->message.body_bytes = 0;
	rest->message.sent = rest_sent;
	rest->message.follows = NULL; /* a record that has begun is not overtaken */
	rest->link = link;
	wf_link_get(link);
	wf_list_insert_before(&m->node, &rest->message.node);
	wf_list_remove(&m->node);
	return 0;
}
