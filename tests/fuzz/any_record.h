/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A record of any type, so that one test asks the same of all types.
 */
#ifndef ANY_RECORD_H
#define ANY_RECORD_H

#include "wire/access.h"
#include "wire/parcel.h"
#include "wire/record.h"
#include "wire/record_call.h"

union any_record {
	struct wf_record_tensor tensor;
	struct wf_record_call call;
	struct wf_record_reply reply;
	struct wf_record_message message;
	struct wf_record_offer offer;
	struct wf_record_abort abort;
	struct wf_record_sums sums;
	struct wf_record_lane lane;
	struct wf_access_push push;
	struct wf_access_ask ask;
	struct wf_access_lend lend;
	struct wf_parcel_ask seal;
	struct wf_parcel_answer sealed;
	struct wf_record_small small; /* all other types */
};

int any_record_get(uint8_t type, const uint8_t *bytes, size_t count, union any_record *any);

/* Put head and eager body.  Returns the count of bytes; 0: more than @room. */
size_t any_record_put(uint8_t type, const union any_record *any, uint8_t *bytes, size_t room);

/* Does every pointer of @any, with its length, lie in the @count bytes? */
bool any_record_inside(uint8_t type, const union any_record *any, const uint8_t *bytes,
		       size_t count);

#endif
