/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer/recall.h"

#include <errno.h>
#include <stdlib.h>

int wf_recall_open(uint64_t offer, struct wf_recall **recall)
{
	struct wf_recall *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->control.type = WF_RECORD_WITHDRAW;
	r->control.id = offer;
	*recall = r;
	return 0;
}

/*
 * Free a recall that the peer has got.  Its own WITHDRAWN, not this, says that the offer is
 * over.
 */
static void heard(struct wf_message_control *c, const struct wf_error *e)
{
	(void)e;
	free(WF_CONTAINER(c, struct wf_recall, control));
}

void wf_recall_post(struct wf_recall *recall, struct wf_link *link)
{
	recall->control.sent = heard;
	wf_link_control(link, &recall->control);
}

void wf_recall_close(struct wf_recall *recall)
{
	free(recall);
}
