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

/* What is accepted and put again is the same bytes. */
static void check_header(const struct wf_frame *frame, const uint8_t *bytes)
{
	uint8_t again[WF_FRAME_HEADER_BYTES];

	wf_frame_put(again, frame);
	must(!memcmp(again, bytes, sizeof(again)));
}

/* The part that made it whole can be taken back, and then makes it whole again. */
static void check_undo(struct wf_assembly *assembly, const struct wf_record *part,
		       const struct wf_record *whole)
{
	struct wf_record again;

	must(!memcmp(whole->bytes + whole->count - part->count, part->bytes, part->count));
	wf_assembly_undo(assembly, part);
	must(wf_assembly_add(assembly, part, RECORD_BYTES_MAX, &again) == 1);
	must(again.bytes == whole->bytes && again.count == whole->count);
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
	check_header(&frame, bytes);
	while ((rc = wf_unpack_next(&unpack, &part)) > 0) {
		must(++parts <= frame.record_count);
		must(part.bytes >= bytes + WF_FRAME_HEADER_BYTES &&
		     part.bytes <= bytes + count &&
		     part.count <= (size_t)(bytes + count - part.bytes));
		rc = wf_assembly_add(assembly, &part, RECORD_BYTES_MAX, &whole);
		if (rc < 0)
			return -1;
		if (rc > 0) {
			check_undo(assembly, &part, &whole);
			take_record(&whole);
		}
	}
	return rc;
}

/* The next frame of an input, which may be cut; NULL: there is no more. */
static const uint8_t *next_frame(struct wf_bytes_reader *r, size_t *count)
{
	size_t length = wf_bytes_get_u16(r);

	*count = WF_MIN(length, wf_bytes_reader_left(r));
	return wf_bytes_view(r, *count);
}

static void take_frames(const uint8_t *bytes, size_t count)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	struct wf_assembly assembly = { 0 };
	const uint8_t *frame;
	size_t frame_bytes;
	int rc = 0;

	while (!rc && (frame = next_frame(&r, &frame_bytes)))
		rc = take_frame(&assembly, frame, frame_bytes);
	wf_assembly_fini(&assembly);
}

/* Every frame of the right version and length, or few would be read any further. */
static void mend(uint8_t *bytes, size_t count)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	const uint8_t *frame;
	size_t frame_bytes;

	while ((frame = next_frame(&r, &frame_bytes))) {
		struct wf_bytes_writer w = wf_bytes_writer(bytes + (frame - bytes), frame_bytes);

		if (frame_bytes < WF_FRAME_HEADER_BYTES)
			continue;
		wf_bytes_put_u8(&w, WF_WIRE_VERSION);
		w.at += 3;
		wf_bytes_put_u32(&w, (uint32_t)(frame_bytes - WF_FRAME_HEADER_BYTES));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	uint8_t *mended = malloc(count + !count);

	must(mended != NULL);
	take_frames(bytes, count);
	if (count)
		memcpy(mended, bytes, count);
	mend(mended, count);
	take_frames(mended, count);
	free(mended);
	return 0;
}

/* Append a frame with what fits of the record; 1: more is to follow. */
static int put_frame(struct wf_bytes_writer *w, uint8_t type, const uint8_t *record,
		     size_t record_bytes, size_t *done)
{
	struct wf_frame header = { .kind = WF_FRAME_DATA, .link = 1, .token = 2, .epoch = 1,
				   .ack = 7, .credit = 8, .eager_credit = 9 };
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
	struct wf_record_call call = { .call = 3, .left_ns = 1000, .service_bytes = 300,
				       .method_bytes = 2 };
	struct wf_record_small small = { .id = 9 };
	struct wf_bytes_writer w = wf_bytes_writer(bytes, FUZZ_BYTES_MAX);
	uint8_t record[512], name[300] = { 0 };
	struct wf_bytes_writer r = wf_bytes_writer(record, sizeof(record));
	uint8_t type = index ? WF_RECORD_CALL : WF_RECORD_ECHO;
	size_t done = 0;

	if (index > 1)
		return 0;
	call.service = call.method = name;
	if (type == WF_RECORD_CALL)
		wf_record_call_put(&r, &call);
	else
		wf_record_small_put(&r, &small);
	while (put_frame(&w, type, record, (size_t)(r.at - record), &done))
		;
	return FUZZ_BYTES_MAX - wf_bytes_writer_left(&w);
}
