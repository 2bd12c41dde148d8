/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/tell.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "link/ledger.h"

_Static_assert(WF_RECORD_SUMS_BYTES_MAX <= WF_TELL_BYTES_MAX, "sums are longer");

struct told {
	struct wf_message message;
	struct wf_link *link; /* a reference */
	uint8_t bytes[WF_TELL_BYTES_MAX];
};

static void sent(struct wf_message *m, const struct wf_error *e)
{
	struct told *t = WF_CONTAINER(m, struct told, message);

	(void)e;
	wf_ledger_discharge(t->link, WF_LEDGER_OWED, sizeof(*t));
	wf_link_put(t->link);
	free(t);
}

int wf_tell_record(struct wf_link *link, uint8_t type, const uint8_t *bytes, size_t count)
{
	struct told *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	assert(count <= sizeof(t->bytes));
	t->link = link;
	wf_link_get(link);
	wf_ledger_charge(link, WF_LEDGER_OWED, sizeof(*t));
	memcpy(t->bytes, bytes, count);
	t->message.type = type;
	t->message.head = t->bytes;
	t->message.head_bytes = count;
	t->message.sent = sent;
	wf_link_post(link, &t->message);
	return 0;
}

int wf_tell(struct wf_link *link, uint8_t type, uint64_t id, uint64_t other, uint8_t status)
{
	uint8_t bytes[WF_RECORD_SMALL_BYTES];
	struct wf_bytes_writer w = wf_bytes_writer(bytes, sizeof(bytes));

	wf_record_small_put(&w, &(struct wf_record_small){ id, other, status });
	return wf_tell_record(link, type, bytes, sizeof(bytes));
}
