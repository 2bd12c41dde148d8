/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/record.h"

#include <errno.h>

void wf_offer_record_put(struct wf_bytes_writer *w, const struct wf_offer_record *o)
{
	wf_bytes_put_u64(w, o->pull);
	wf_body_put(w, &o->body);
}

int wf_offer_record_get(const uint8_t *bytes, size_t count, struct wf_offer_record *o)
{
	struct wf_bytes_reader r = wf_bytes_reader(bytes, count);
	struct wf_offer_record got;

	got.pull = wf_bytes_get_u64(&r);
	if (wf_body_get(&r, &got.body) || got.body.way == WF_BODY_EAGER ||
	    got.body.way == WF_BODY_VIEW || wf_bytes_reader_left(&r))
		return -EBADMSG;
	*o = got;
	return 0;
}
