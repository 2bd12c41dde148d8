/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/reader_sums.h"

#include <errno.h>
#include <stdlib.h>

#include "transfer/plan.h"
#include "util/checksum.h"

#define AHEAD 2 /* pieces; not tuned */

/* Length of piece @index. */
static uint64_t length(const struct wf_reader_sums *s, uint32_t index)
{
	return WF_MIN(s->piece_bytes, s->bytes - index * s->piece_bytes);
}

int wf_reader_sums_open(struct wf_reader_sums *s, const struct wf_body *body)
{
	*s = (struct wf_reader_sums){ 0 };
	if (body->sum_kind == WF_BODY_SUM_NONE || !body->bytes)
		return 0;
	s->bytes = body->bytes;
	s->piece_bytes = wf_body_piece_bytes(body->bytes);
	s->count = s->wrong = wf_body_piece_count(body->bytes);
	s->pieces = calloc(s->count, sizeof(*s->pieces));
	if (!s->pieces)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->count; i++)
		s->pieces[i].left = length(s, i);
	if (s->count == 1 && body->way != WF_BODY_STAGED) {
		s->pieces[0].theirs = body->sum;
		s->asked = s->told = 1;
	}
	return 0;
}

void wf_reader_sums_close(struct wf_reader_sums *s)
{
	free(s->pieces);
	*s = (struct wf_reader_sums){ 0 };
}

bool wf_reader_sums_ask(const struct wf_reader_sums *s, uint64_t end)
{
	return s->asked < s->count && s->asked * s->piece_bytes < end + AHEAD * s->piece_bytes;
}

void wf_reader_sums_asked(struct wf_reader_sums *s)
{
	s->asked = WF_MIN(s->asked + WF_RECORD_SUMS_MAX, s->count);
}

/* Compare, once both sums are there. */
static void compare(struct wf_reader_sums *s, uint32_t index)
{
	const struct wf_reader_sums_piece *piece = &s->pieces[index];

	if (piece->left || index >= s->told)
		return;
	if (piece->ours == piece->theirs)
		s->right++;
	else
		s->wrong = WF_MIN(s->wrong, index);
}

void wf_reader_sums_arrived(struct wf_reader_sums *s, const uint8_t *buffer, uint64_t buffer_bytes,
			    uint64_t offset, uint64_t count)
{
	uint64_t end = offset + count;

	while (s->count && offset < end) {
		uint32_t index = (uint32_t)(offset / s->piece_bytes);
		uint64_t begin = index * s->piece_bytes;
		uint64_t next = WF_MIN(end, begin + length(s, index));

		s->pieces[index].left -= next - offset;
		if (!s->pieces[index].left) {
			s->pieces[index].ours =
				wf_checksum(buffer + begin % buffer_bytes, length(s, index));
			compare(s, index);
		}
		offset = next;
	}
}

int wf_reader_sums_told(struct wf_reader_sums *s, const struct wf_record_sums *told)
{
	if (told->first != s->told || told->count > s->asked - s->told)
		return -EBADMSG;
	s->told += told->count;
	for (uint32_t i = 0; i < told->count; i++) {
		s->pieces[told->first + i].theirs = told->sums[i];
		compare(s, told->first + i);
	}
	return 0;
}

uint64_t wf_reader_sums_sure(struct wf_reader_sums *s)
{
	while (s->sure < s->told && !s->pieces[s->sure].left &&
	       s->pieces[s->sure].ours == s->pieces[s->sure].theirs)
		s->sure++;
	return WF_MIN(s->sure * s->piece_bytes, s->bytes);
}

static int damaged(uint64_t first, uint64_t last, const struct wf_link *link,
		   const struct wf_rail_caps *caps, enum wf_body_way way, struct wf_error *e)
{
	return wf_error_set(e, -EIO,
			    "bytes %llu to %llu came damaged from %s (%s over %s on %s): their "
			    "checksum is not the sender's", (unsigned long long)first,
			    (unsigned long long)last, wf_link_label(link), wf_plan_way(way),
			    caps ? caps->provider : "a rail", caps ? caps->domain : "a device");
}

bool wf_reader_sums_wrong(const struct wf_reader_sums *s, const struct wf_link *link,
			  const struct wf_rail_caps *caps, enum wf_body_way way, struct wf_error *e)
{
	uint64_t begin = s->wrong * s->piece_bytes;

	if (s->wrong == s->count)
		return false;
	damaged(begin, begin + length(s, s->wrong) - 1, link, caps, way, e);
	return true;
}

int wf_reader_sums_check(const struct wf_body *body, const void *bytes, const struct wf_link *link,
			 const struct wf_rail_caps *caps, struct wf_error *e)
{
	if (body->sum_kind == WF_BODY_SUM_NONE || !body->bytes ||
	    wf_checksum(bytes, body->bytes) == body->sum)
		return 0;
	return damaged(0, body->bytes - 1, link, caps, (enum wf_body_way)body->way, e);
}
