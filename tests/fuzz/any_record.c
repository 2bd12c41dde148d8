/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/any_record.h"

int any_record_get(uint8_t type, const uint8_t *bytes, size_t count, union any_record *any)
{
	switch (type) {
	case WF_RECORD_TENSOR:
	case WF_RECORD_ATTACHMENT:
		return wf_record_tensor_get(bytes, count, &any->tensor);
	case WF_RECORD_CALL:
		return wf_record_call_get(bytes, count, &any->call);
	case WF_RECORD_REPLY:
		return wf_record_reply_get(bytes, count, &any->reply);
	case WF_RECORD_REQUEST:
	case WF_RECORD_RESPONSE:
		return wf_record_message_get(bytes, count, &any->message);
	case WF_RECORD_OFFER:
		return wf_record_offer_get(bytes, count, &any->offer);
	case WF_RECORD_ABORT:
		return wf_record_abort_get(bytes, count, &any->abort);
	case WF_RECORD_SUMS:
		return wf_record_sums_get(bytes, count, &any->sums);
	case WF_RECORD_LANE:
		return wf_record_lane_get(bytes, count, &any->lane);
	case WF_RECORD_PUSH:
		return wf_access_push_get(bytes, count, &any->push);
	case WF_RECORD_ASK:
		return wf_access_ask_get(bytes, count, &any->ask);
	case WF_RECORD_LEND:
		return wf_access_lend_get(bytes, count, &any->lend);
	case WF_RECORD_SEAL:
		return wf_parcel_ask_get(bytes, count, &any->seal);
	case WF_RECORD_SEALED:
		return wf_parcel_answer_get(bytes, count, &any->sealed);
	default:
		return wf_record_small_get(bytes, count, &any->small);
	}
}

static void put_tensor(struct wf_bytes_writer *w, const struct wf_record_tensor *t)
{
	int64_t shape[UINT8_MAX];

	for (unsigned i = 0; i < t->rank; i++)
		shape[i] = wf_record_tensor_dim(t, i);
	wf_record_tensor_put(w, t, shape);
}

static void put_eager(struct wf_bytes_writer *w, const struct wf_body *body, const uint8_t *eager)
{
	if (body->way == WF_BODY_EAGER)
		wf_bytes_put(w, eager, body->bytes);
}

size_t any_record_put(uint8_t type, const union any_record *any, uint8_t *bytes, size_t room)
{
	struct wf_bytes_writer w = wf_bytes_writer(bytes, room);

	switch (type) {
	case WF_RECORD_TENSOR:
	case WF_RECORD_ATTACHMENT:
		put_tensor(&w, &any->tensor);
		put_eager(&w, &any->tensor.body, any->tensor.eager);
		break;
	case WF_RECORD_CALL:
		wf_record_call_put(&w, &any->call);
		put_eager(&w, &any->call.body, any->call.eager);
		break;
	case WF_RECORD_REPLY:
		wf_record_reply_put(&w, &any->reply);
		put_eager(&w, &any->reply.body, any->reply.eager);
		break;
	case WF_RECORD_REQUEST:
	case WF_RECORD_RESPONSE:
		wf_record_message_put(&w, &any->message);
		put_eager(&w, &any->message.body, any->message.eager);
		break;
	case WF_RECORD_OFFER:
		wf_record_offer_put(&w, &any->offer);
		break;
	case WF_RECORD_ABORT:
		wf_record_abort_put(&w, &any->abort);
		break;
	case WF_RECORD_SUMS:
		wf_record_sums_put(&w, &any->sums);
		break;
	case WF_RECORD_LANE:
		wf_record_lane_put(&w, &any->lane);
		break;
	case WF_RECORD_PUSH:
		wf_access_push_put(&w, &any->push);
		wf_bytes_put(&w, any->push.list, any->push.list_bytes);
		break;
	case WF_RECORD_ASK:
		wf_access_ask_put(&w, &any->ask);
		break;
	case WF_RECORD_LEND:
		wf_access_lend_put(&w, &any->lend);
		break;
	case WF_RECORD_SEAL:
		wf_parcel_ask_put(&w, &any->seal);
		break;
	case WF_RECORD_SEALED:
		wf_parcel_answer_put(&w, &any->sealed);
		break;
	default:
		wf_record_small_put(&w, &any->small);
		break;
	}
	return w.bad ? 0 : room - wf_bytes_writer_left(&w);
}

struct span {
	const uint8_t *from, *to;
};

static bool inside(struct span s, const uint8_t *at, uint64_t count)
{
	return at >= s.from && at <= s.to && count <= (uint64_t)(s.to - at);
}

static bool eager_inside(struct span s, const struct wf_body *body, const uint8_t *eager)
{
	return body->way == WF_BODY_EAGER ? inside(s, eager, body->bytes) : !eager;
}

bool any_record_inside(uint8_t type, const union any_record *any, const uint8_t *bytes,
		       size_t count)
{
	struct span s = { bytes, bytes + count };

	switch (type) {
	case WF_RECORD_TENSOR:
	case WF_RECORD_ATTACHMENT:
		return inside(s, any->tensor.key, any->tensor.key_bytes) &&
		       inside(s, any->tensor.shape, any->tensor.rank * sizeof(int64_t)) &&
		       eager_inside(s, &any->tensor.body, any->tensor.eager);
	case WF_RECORD_CALL:
		return inside(s, any->call.service, any->call.service_bytes) &&
		       inside(s, any->call.method, any->call.method_bytes) &&
		       inside(s, any->call.metadata, any->call.metadata_bytes) &&
		       (!any->call.incarnation ||
			inside(s, any->call.incarnation, WF_CALL_INCARNATION_BYTES)) &&
		       eager_inside(s, &any->call.body, any->call.eager);
	case WF_RECORD_REPLY:
		return inside(s, any->reply.text, any->reply.text_bytes) &&
		       inside(s, any->reply.initial, any->reply.initial_bytes) &&
		       inside(s, any->reply.trailing, any->reply.trailing_bytes) &&
		       inside(s, any->reply.details, any->reply.details_bytes) &&
		       eager_inside(s, &any->reply.body, any->reply.eager);
	case WF_RECORD_REQUEST:
	case WF_RECORD_RESPONSE:
		return inside(s, any->message.metadata, any->message.metadata_bytes) &&
		       eager_inside(s, &any->message.body, any->message.eager);
	case WF_RECORD_ABORT:
		return inside(s, any->abort.text, any->abort.text_bytes);
	case WF_RECORD_PUSH:
		return inside(s, any->push.note, any->push.note_bytes) &&
		       inside(s, any->push.list, any->push.list_bytes);
	default:
		return true; /* numbers only */
	}
}
