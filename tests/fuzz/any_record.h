/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A record of any type, so that one test asks the same of all types.
 */
#ifndef ANY_RECORD_H
#define ANY_RECORD_H

#include "wire/call_record.h"
#include "wire/record.h"

union any_record {
	struct wf_tensor_record tensor;
	struct wf_call_record call;
	struct wf_reply_record reply;
	struct wf_message_record message;
	struct wf_offer_record offer;
	struct wf_abort_record abort;
	struct wf_sums_record sums;
	struct wf_lane_record lane;
	struct wf_small_record small; /* all other types */
};

int any_record_get(uint8_t type, const uint8_t *bytes, size_t count, union any_record *any);

/* Put head and eager body.  Returns the count of bytes; 0: more than @room. */
size_t any_record_put(uint8_t type, const union any_record *any, uint8_t *bytes, size_t room);

/* Does every pointer of @any, with its length, lie in the @count bytes? */
bool any_record_inside(uint8_t type, const union any_record *any, const uint8_t *bytes,
		       size_t count);

#endif
