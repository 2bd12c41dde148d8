/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/internal.h"

#include <stdlib.h>
#include <string.h>

/* More than any provider's connect data (tcp carries 256 bytes). */
#define DATA_BYTES 512

/* A look that finds nothing may have taken a connection in, whose request the next look reads. */
#define EMPTY_LOOKS 3

/* Find an endpoint by the pointer's value alone: the event may be about a closed one. */
static struct wf_ep *ep_of(struct wf_rail *rail, const struct fid *fid)
{
	WF_LIST_EACH(node, &rail->eps) {
		struct wf_ep *ep = WF_CONTAINER(node, struct wf_ep, node);

		if (&ep->fid->fid == fid)
			return ep;
	}
	return NULL;
}

static void asked(struct wf_rail *rail, struct fi_info *info, const uint8_t *data, size_t count)
{
	struct wf_rail_request *request = calloc(1, sizeof(*request));

	if (!request) {
		WF_RAIL_CALL(rail, fi_reject, rail->conns.pep, info->handle, NULL, 0);
		fi_freeinfo(info);
		return;
	}
	/* Some providers pad connect data; bytes beyond our length are not ours. */
	count = WF_MIN(count, sizeof(request->data));
	memcpy(request->data, data, count);
	request->info = info;
	request->notice.event = (struct wf_rail_event){
		.kind = WF_EVENT_REQUEST,
		.request = request,
		.bytes = request->data,
		.count = count,
	};
	wf_list_append(&rail->conns.requests, &request->node);
	wf_post_tell(rail, &request->notice);
}

static void happened(struct wf_rail *rail, uint32_t kind, const struct fi_eq_cm_entry *entry,
		     size_t data_bytes)
{
	struct wf_ep *ep;

	if (kind == FI_CONNREQ) {
		asked(rail, entry->info, entry->data, data_bytes);
		return;
	}
	ep = ep_of(rail, entry->fid);
	if (!ep || ep->dead) {
		wf_post_late(rail);
	} else if (kind == FI_SHUTDOWN) {
		wf_ep_die(ep, 0);
	} else if (kind == FI_CONNECTED && !ep->up) {
		ep->up = true;
		rail->conns.connecting--;
		if (ep->cq.fid)
			wf_cq_warm(rail, &ep->cq); /* the queue has one more descriptor */
		wf_post_tell(rail, &ep->connected);
	}
}

int wf_eq_read(struct wf_rail *rail)
{
	_Alignas(struct fi_eq_cm_entry) uint8_t buffer[sizeof(struct fi_eq_cm_entry) + DATA_BYTES];
	struct fi_eq_err_entry error = { 0 };
	struct wf_ep *ep;
	uint32_t kind;
	ssize_t n = WF_RAIL_CALL(rail, fi_eq_read, rail->conns.eq, &kind, buffer,
				 sizeof(buffer), 0);

	if (n >= (ssize_t)sizeof(struct fi_eq_cm_entry)) {
		happened(rail, kind, (const void *)buffer, (size_t)n - sizeof(struct fi_eq_cm_entry));
		return 1;
	}
	if (n != -FI_EAVAIL || WF_RAIL_CALL(rail, fi_eq_readerr, rail->conns.eq, &error, 0) <= 0)
		return 0;
	ep = ep_of(rail, error.fid);
	if (ep)
		wf_ep_die(ep, error.err > 0 ? -error.err : -EIO);
	else
		wf_post_late(rail);
	return 1;
}

void wf_eq_drain(struct wf_rail *rail)
{
	for (int empty = 0; empty < EMPTY_LOOKS;)
		empty = wf_eq_read(rail) ? 0 : empty + 1;
}
