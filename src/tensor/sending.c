/* SPDX-License-Identifier: BSD-2-Clause */
#include "tensor/sending.h"

static struct wf_tensor_record record_of(const struct wf_sending *s, const struct wf_body *body)
{
	return (struct wf_tensor_record){
		.step = s->step,
		.flags = s->flags,
		.dtype = s->dtype,
		.rank = s->rank,
		.key_bytes = s->key_bytes,
		.key = s->key,
		.body = *body,
	};
}

static size_t head_bytes(const struct wf_parcel *p, const struct wf_body *body)
{
	const struct wf_sending *s = WF_CONTAINER(p, struct wf_sending, parcel);
	struct wf_tensor_record t = record_of(s, body);

	return wf_tensor_record_bytes(&t);
}

static void put_head(const struct wf_parcel *p, struct wf_writer *w, const struct wf_body *body)
{
	const struct wf_sending *s = WF_CONTAINER(p, struct wf_sending, parcel);
	struct wf_tensor_record t = record_of(s, body);

	wf_tensor_record_put(w, &t, s->shape);
}

static void sent(struct wf_parcel *p, const struct wf_error *e)
{
	struct wf_sending *s = WF_CONTAINER(p, struct wf_sending, parcel);

	wf_list_remove(&s->node);
	s->done(s, e);
}

void wf_sending_init(struct wf_sendings *all, struct wf_transfer *t)
{
	all->transfer = t;
	wf_list_init(&all->all);
}

void wf_sending_start(struct wf_sendings *all, struct wf_link *link, struct wf_sending *s)
{
	wf_list_append(&all->all, &s->node);
	s->parcel.type = WF_RECORD_TENSOR;
	s->parcel.needs_room = true;
	s->parcel.head_bytes = head_bytes;
	s->parcel.put_head = put_head;
	s->parcel.done = sent;
	wf_parcel_post(all->transfer, link, &s->parcel);
}

void wf_sending_stop(struct wf_sending *s, const struct wf_error *e)
{
	wf_parcel_stop(&s->parcel, e);
}
