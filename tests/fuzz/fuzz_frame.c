/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Input: frames of one link, each after its length as a u16.  They are taken
 * apart and put together as a link does it, up to the content of records.
 */
#include "tests/fuzz/fuzz.h"

#include "tests/fuzz/any_record.h"
#include "wire/pack.h"

#define RECORD_BYTES_MAX 65536

static void take_record(const struct wf_record *whole)
{
	union any_record any;

	must(whole->count == whole->total && whole->total <= RECORD_BYTES_MAX);
	if (!any_record_get(whole->type, whole->bytes, whole->count, &any))
		must(any_record_inside(whole->type, &any, whole->bytes, whole->count));
}

static int take_frame(struct wf_assembly *assembly, const uint8_t *bytes, size_t count)
{
	struct wf_record part, whole;
	struct wf_unpack unpack;
	struct wf_frame frame;
	unsigned parts = 0;
	int rc;

	if (wf_unpack_begin(&unpack, bytes, count, &frame))
		return -1;
	while ((rc = wf_unpack_next(&unpack, &part)) > 0) {
		must(++parts <= frame.record_count);
		must(part.bytes >= bytes + WF_FRAME_HEADER_BYTES &&
		     part.bytes <= bytes + count &&
		     part.count <= (size_t)(bytes + count - part.bytes));
		rc = wf_assembly_add(assembly, &part, RECORD_BYTES_MAX, &whole);
		if (rc < 0)
			return -1;
		if (rc > 0)
			take_record(&whole);
	}
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	struct wf_reader r = wf_reader(bytes, count);
	struct wf_assembly assembly = { 0 };
	int rc = 0;

	while (!rc && wf_reader_left(&r)) {
		size_t length = wf_bytes_get_u16(&r);
		const uint8_t *frame = wf_bytes_view(&r, WF_MIN(length, wf_reader_left(&r)));

		rc = frame ? take_frame(&assembly, frame, (size_t)(r.at - frame)) : -1;
	}
	wf_assembly_fini(&assembly);
	return 0;
}

/* Append a frame with what fits of the record; 1: more is to follow. */
static int put_frame(struct wf_writer *w, uint8_t type, const uint8_t *record, size_t record_bytes,
		     size_t *done)
{
	struct wf_frame header = { .kind = WF_FRAME_DATA, .link = 1, .token = 2, .epoch = 1,
				   .ack = 7, .credit = 8, .room = 9 };
	struct wf_pack pack;
	uint8_t frame[256];
	size_t count;
	int rc;

	wf_pack_begin(&pack, frame, sizeof(frame));
	rc = wf_pack_add(&pack, type, record, record_bytes, NULL, 0, done);
	count = wf_pack_end(&pack, &header);
	wf_bytes_put_u16(w, (uint16_t)count);
	wf_bytes_put(w, frame, count);
	return rc;
}

size_t fuzz_seed(unsigned index, uint8_t *bytes)
{
	struct wf_call_record call = { .call = 3, .left_ns = 1000, .service_bytes = 300,
				       .method_bytes = 2 };
	struct wf_small_record small = { .id = 9 };
	struct wf_writer w = wf_writer(bytes, FUZZ_BYTES_MAX);
	uint8_t record[512], name[300] = { 0 };
	struct wf_writer r = wf_writer(record, sizeof(record));
	uint8_t type = index ? WF_RECORD_CALL : WF_RECORD_ECHO;
	size_t done = 0;

	if (index > 1)
		return 0;
	call.service = call.method = name;
	if (type == WF_RECORD_CALL)
		wf_call_record_put(&r, &call);
	else
		wf_small_record_put(&r, &small);
	while (put_frame(&w, type, record, (size_t)(r.at - record), &done))
		;
	return FUZZ_BYTES_MAX - wf_writer_left(&w);
}
