/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/answer.h"

#include <errno.h>
#include <stdlib.h>

int wf_answer_open(uint64_t offer, struct wf_answer **answer)
{
	struct wf_answer *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->offer = offer;
	*answer = a;
	return 0;
}

int wf_answer_meet(struct wf_link *link, const struct wf_body *body, struct wf_answer **answer)
{
	*answer = NULL;
	if (body->way == WF_BODY_EAGER && !wf_link_use_room(link, body->bytes))
		return -EBADMSG;
	return wf_body_is_offer(body) ? wf_answer_open(body->offer, answer) : 0;
}

void wf_answer_unmeet(struct wf_link *link, const struct wf_body *body, struct wf_answer *answer)
{
	wf_answer_close(answer);
	if (body->way == WF_BODY_EAGER)
		wf_link_unuse_room(link, body->bytes);
}

void wf_answer_refuse(struct wf_link *link, const struct wf_body *body, struct wf_answer *answer,
		      enum weft_status status)
{
	if (answer)
		wf_answer_pulled(answer, link, status);
	else if (body->way == WF_BODY_EAGER)
		wf_link_give_room(link, body->bytes);
}

static void pulled_sent(struct wf_message *m, const struct wf_error *e)
{
	(void)e;
	wf_answer_close(WF_CONTAINER(m, struct wf_answer, message));
}

void wf_answer_pulled(struct wf_answer *a, struct wf_link *link, enum weft_status status)
{
	struct wf_writer w = wf_writer(a->bytes, sizeof(a->bytes));

	wf_small_record_put(&w, &(struct wf_small_record){ .id = a->offer, .other = a->chunks,
							    .status = (uint8_t)status });
	a->message = (struct wf_message){
		.type = WF_RECORD_PULLED,
		.head = a->bytes,
		.head_bytes = sizeof(a->bytes),
		.sent = pulled_sent,
	};
	wf_link_post(link, &a->message);
}

static void withdrawn_sent(struct wf_control *c, const struct wf_error *e)
{
	(void)e;
	wf_answer_close(WF_CONTAINER(c, struct wf_answer, control));
}

void wf_answer_withdrawn(struct wf_answer *a, struct wf_link *link)
{
	a->control = (struct wf_control){
		.type = WF_RECORD_WITHDRAWN,
		.id = a->offer,
		.sent = withdrawn_sent,
	};
	wf_link_control(link, &a->control);
}

void wf_answer_close(struct wf_answer *answer)
{
	free(answer);
}
