/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Input: the type of a record, then its bytes.  What is accepted lies inside
 * the input, and written again it is the same bytes: there is one way to say
 * a thing.
 */
#include "tests/fuzz/fuzz.h"

#include "tests/fuzz/any_record.h"

/* The key of an attachment, which is looked at where its call is known. */
static void check_key(const struct wf_record_tensor *t)
{
	uint8_t again[WF_RECORD_ATTACHMENT_KEY_BYTES];
	struct wf_record_attachment_key key;

	if (wf_record_attachment_key_get(t->key, t->key_bytes, &key))
		return;
	wf_record_attachment_key_put(again, &key);
	must(t->key_bytes == sizeof(again) && !memcmp(again, t->key, sizeof(again)));
}

/* The blocks of a list, which are looked at where the window is known. */
static void check_list(const struct wf_access_push *p)
{
	struct wf_bytes_reader r = wf_bytes_reader(p->list, p->list_bytes);
	struct wf_access_block block = { 0 };

	while (wf_bytes_reader_left(&r)) {
		uint8_t again[WF_ACCESS_BLOCK_BYTES_MAX];
		struct wf_bytes_writer w = wf_bytes_writer(again, sizeof(again));
		struct wf_access_block before = block, last = block, got = block;
		struct wf_bytes_reader s;

		if (wf_access_block_get(&r, &block)) {
			must(!memcmp(&block, &before, sizeof(block)));
			return;
		}
		wf_access_block_put(&w, &last, &block);
		must(!w.bad);
		s = wf_bytes_reader(again, (size_t)(w.at - again));
		must(!wf_access_block_get(&s, &got) && !wf_bytes_reader_left(&s));
		must(!memcmp(&got, &block, sizeof(got)));
	}
}

/* The ranges of a parcel, for which memory is taken. */
static void check_ranges(const struct wf_parcel_ask *a)
{
	uint64_t bytes = 0;

	must(a->count && a->count <= WF_PARCEL_RANGES_MAX);
	for (unsigned i = 0; i < a->count; i++) {
		must(a->ranges[i].bytes && a->ranges[i].bytes <= WF_PARCEL_BYTES_MAX);
		must(a->ranges[i].at + a->ranges[i].bytes > a->ranges[i].at);
		bytes += a->ranges[i].bytes;
	}
	must(bytes <= WF_PARCEL_BYTES_MAX && bytes == wf_parcel_ask_bytes(a));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	union any_record any;
	uint8_t *again;

	if (!count || any_record_get(bytes[0], bytes + 1, count - 1, &any))
		return 0;
	must(any_record_inside(bytes[0], &any, bytes + 1, count - 1));
	if (bytes[0] == WF_RECORD_ATTACHMENT)
		check_key(&any.tensor);
	if (bytes[0] == WF_RECORD_PUSH)
		check_list(&any.push);
	if (bytes[0] == WF_RECORD_SEAL)
		check_ranges(&any.seal);
	if (bytes[0] == WF_RECORD_SEALED)
		must(!any.sealed.parcel == !!any.sealed.status);
	again = malloc(count);
	must(again != NULL);
	must(any_record_put(bytes[0], &any, again, count) == count - 1);
	must(memcmp(again, bytes + 1, count - 1) == 0);
	free(again);
	return 0;
}

size_t fuzz_seed(unsigned index, uint8_t *bytes)
{
	static const int64_t shape[] = { 2, 3 };
	struct wf_bytes_writer w = wf_bytes_writer(bytes, FUZZ_BYTES_MAX);
	const uint8_t *text = (const uint8_t *)"edge_7_grad/weights:0";
	const uint8_t *metadata = (const uint8_t *)"\5\0\3\0\0\0" "k-bin" "\0\xff\n";
	struct wf_body pull = { .way = WF_BODY_PULL, .bytes = 24, .offer = 9, .epoch = 1,
				.address = 4096, .key = 77, .sum_kind = WF_BODY_SUM_XXH3,
				.sum = 5 };
	struct wf_record_tensor tensor = { .step = 5, .dtype = { WEFT_FLOAT, 32, 1 }, .rank = 2,
					   .key_bytes = 21, .key = text, .body = pull };
	struct wf_record_call call = { .call = 3, .left_ns = 1000, .service_bytes = 9,
				       .method_bytes = 7, .service = text, .method = text,
				       .metadata_bytes = 14, .metadata = metadata,
				       .body = { .way = WF_BODY_EAGER, .bytes = 21 } };
	struct wf_record_reply reply = { .call = 3, .status = WEFT_INTERNAL,
					 .executed = WEFT_EXECUTED_YES, .text_bytes = 21,
					 .text = text, .initial_bytes = 14, .initial = metadata,
					 .trailing_bytes = 14, .trailing = metadata,
					 .details_bytes = 5, .details = text };
	struct wf_record_message message = { .call = 3, .flags = WF_MESSAGE_INITIAL,
					     .metadata_bytes = 14, .metadata = metadata,
					     .body = { .way = WF_BODY_EAGER, .bytes = 21 } };
	struct wf_record_offer offer = { .pull = 8, .body = pull };
	struct wf_record_abort aborted = { .step = 5, .status = WEFT_ABORTED, .text_bytes = 21,
					   .text = text };
	struct wf_record_sums sums = { .pull = 8, .first = 3, .count = 2, .sums = { 7, 8 } };
	struct wf_record_lane lane = { .pull = 8, .lane = 2, .address = 4096, .key = 5 };
	struct wf_access_push push = { .window = { 7, { 1, 2, 3 } }, .at = 4096, .number = 5,
				       .flags = WF_ACCESS_PUSH_LAST | WF_ACCESS_PUSH_NOTED,
				       .note_bytes = 21, .note = text, .body = pull };
	struct wf_access_ask ask = { .id = 8, .window = { 7, { 1, 2, 3 } }, .at = 4096, .bytes = 24,
				     .flags = WF_ACCESS_ASK_STAY };
	struct wf_access_lend lend = { .id = 8, .body = pull };
	struct wf_parcel_ask seal = { .offer = 9, .pull = 8, .read = 3, .round = 1, .opened = 6,
				      .priority = 2, .count = 3,
				      .ranges = { { 4096, 4096 }, { 0, 1 }, { 65536, 1000000 } } };
	struct wf_parcel_answer sealed = { .pull = 8, .read = 3, .round = 1, .parcel = 7,
					   .epoch = 1, .address = 4096, .key = 77,
					   .secret = { 1, 2, 3 }, .tag = { 4, 5, 6 } };
	struct wf_access_block last = { 0 };
	uint8_t key[WF_RECORD_ATTACHMENT_KEY_BYTES];
	struct wf_record_small small = { .id = 9, .other = 8, .status = WEFT_OK };

	switch (index) {
	case 0:
		wf_bytes_put_u8(&w, WF_RECORD_TENSOR);
		wf_record_tensor_put(&w, &tensor, shape);
		break;
	case 1:
		tensor.body = (struct wf_body){ .way = WF_BODY_EAGER, .bytes = 24 };
		wf_bytes_put_u8(&w, WF_RECORD_TENSOR);
		wf_record_tensor_put(&w, &tensor, shape);
		wf_bytes_put(&w, "content of the tensor...", 24);
		break;
	case 2:
		wf_bytes_put_u8(&w, WF_RECORD_CALL);
		wf_record_call_put(&w, &call);
		wf_bytes_put(&w, text, 21);
		break;
	case 3:
		wf_bytes_put_u8(&w, WF_RECORD_REPLY);
		wf_record_reply_put(&w, &reply);
		break;
	case 4:
		wf_bytes_put_u8(&w, WF_RECORD_OFFER);
		wf_record_offer_put(&w, &offer);
		break;
	case 5:
		wf_bytes_put_u8(&w, WF_RECORD_PULLED);
		wf_record_small_put(&w, &small);
		break;
	case 6:
		wf_bytes_put_u8(&w, WF_RECORD_ABORT);
		wf_record_abort_put(&w, &aborted);
		break;
	case 7:
		wf_bytes_put_u8(&w, WF_RECORD_SUMS);
		wf_record_sums_put(&w, &sums);
		break;
	case 8:
		tensor.body.way = WF_BODY_VIEW;
		tensor.body.file = 1234;
		tensor.body.offset = 4096;
		tensor.body.place = 1022;
		wf_bytes_put_u8(&w, WF_RECORD_TENSOR);
		wf_record_tensor_put(&w, &tensor, shape);
		break;
	case 9:
		call.flags = WF_CALL_STREAM;
		call.body = (struct wf_body){ .way = WF_BODY_NONE };
		wf_bytes_put_u8(&w, WF_RECORD_CALL);
		wf_record_call_put(&w, &call);
		break;
	case 10:
		wf_bytes_put_u8(&w, WF_RECORD_RESPONSE);
		wf_record_message_put(&w, &message);
		wf_bytes_put(&w, text, 21);
		break;
	case 11:
		message = (struct wf_record_message){ .call = 3, .flags = WF_MESSAGE_LAST,
						      .body = pull };
		message.body.parcel = (struct wf_body_parcel){ .id = 6, .bytes = 20 };
		wf_bytes_put_u8(&w, WF_RECORD_REQUEST);
		wf_record_message_put(&w, &message);
		break;
	case 12:
		wf_bytes_put_u8(&w, WF_RECORD_GRANT_RESPONSES);
		wf_record_small_put(&w, &small);
		break;
	case 13:
		call.flags = WF_CALL_REQUEST | WF_CALL_AGAIN;
		call.request = 77;
		call.incarnation = text;
		wf_bytes_put_u8(&w, WF_RECORD_CALL);
		wf_record_call_put(&w, &call);
		wf_bytes_put(&w, text, 21);
		break;
	case 14:
		wf_record_attachment_key_put(
			key, &(struct wf_record_attachment_key){ .reply = 1, .index = 2 });
		tensor.key = key;
		tensor.key_bytes = sizeof(key);
		wf_bytes_put_u8(&w, WF_RECORD_ATTACHMENT);
		wf_record_tensor_put(&w, &tensor, shape);
		break;
	case 15:
		call.attachments = 2;
		call.flags = WF_CALL_COMPRESSED;
		wf_bytes_put_u8(&w, WF_RECORD_CALL);
		wf_record_call_put(&w, &call);
		wf_bytes_put(&w, text, 21);
		break;
	case 16:
		wf_bytes_put_u8(&w, WF_RECORD_LANE);
		wf_record_lane_put(&w, &lane);
		break;
	case 17:
		offer.body.way = WF_BODY_STAGED;
		offer.body.bounce_bytes = 16;
		wf_bytes_put_u8(&w, WF_RECORD_OFFER);
		wf_record_offer_put(&w, &offer);
		break;
	case 18:
		wf_bytes_put_u8(&w, WF_RECORD_PUSH);
		wf_access_push_put(&w, &push);
		break;
	case 19:
		push.flags = WF_ACCESS_PUSH_LIST;
		push.at = push.number = 0;
		push.note_bytes = 0;
		push.block_count = 2;
		push.block_bytes = 300;
		push.body.bytes = 100000;
		push.body.sum_kind = WF_BODY_SUM_NONE;
		wf_bytes_put_u8(&w, WF_RECORD_PUSH);
		wf_access_push_put(&w, &push);
		wf_access_block_put(&w, &last, &(struct wf_access_block){ 70000, 1, 200 });
		wf_access_block_put(&w, &last, &(struct wf_access_block){ 5, 99000, 100 });
		break;
	case 20:
		wf_bytes_put_u8(&w, WF_RECORD_ASK);
		wf_access_ask_put(&w, &ask);
		break;
	case 21:
		wf_bytes_put_u8(&w, WF_RECORD_LEND);
		wf_access_lend_put(&w, &lend);
		break;
	case 22:
		wf_bytes_put_u8(&w, WF_RECORD_SEAL);
		wf_parcel_ask_put(&w, &seal);
		break;
	case 23:
		wf_bytes_put_u8(&w, WF_RECORD_SEALED);
		wf_parcel_answer_put(&w, &sealed);
		break;
	case 24:
		sealed = (struct wf_parcel_answer){ .pull = 8, .read = 3, .round = 1,
						    .status = WEFT_RESOURCE_EXHAUSTED };
		wf_bytes_put_u8(&w, WF_RECORD_SEALED);
		wf_parcel_answer_put(&w, &sealed);
		break;
	default:
		return 0;
	}
	return FUZZ_BYTES_MAX - wf_bytes_writer_left(&w);
}
