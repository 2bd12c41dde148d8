/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attachment: sends that go beside a message, and what has come beside one.
 */
#ifndef WF_CORE_ATTACHMENT_H
#define WF_CORE_ATTACHMENT_H

#include <weft/weft.h>
#include "rpc/stream.h"
#include "tensor/bundle.h"
#include "wire/call_record.h"
#include "wire/record.h"

struct wf_desk;

/* What a send has besides that is an attachment: it begins with its message. */
struct wf_attached {
	struct weft_op *op;
	struct wf_list node;      /* in the list of its message; worker only from the beginning */
	bool dropped;             /* the peer knows that the message is over */
	bool lost;                /* it has ended, and that is what is sent in its place, by a reference */
	struct weft_op *call;     /* it goes with the request of this one, which waits for it; NULL: not */
	struct weft_stream *stream; /* it goes with a message of this one; a reference; NULL: not */
	uint8_t key[WF_ATTACHMENT_KEY_BYTES];
};

/* It is to be posted: from now on they can end.  Threads: owner, as the next ones. */
void wf_attachments_await(struct wf_list *attached, struct wf_desk *desk);

/* For the watchdog: how far those on their way are, and how much of them is offered.  Threads: owner. */
uint64_t wf_attachments_sent_progress(const struct wf_list *attached);
uint64_t wf_attachments_offered_bytes(const struct wf_list *attached);

/* It is posted, as what @key says: so are they. */
void wf_attachments_begin(struct wf_list *attached, struct wf_desk *desk, struct wf_link *link,
			  uint64_t call, struct wf_attachment_key key);

/* It is over, and its peer knows: they end, those that have not begun at @desk.  @e NULL: well. */
void wf_attachments_stop(struct wf_list *attached, struct wf_desk *desk, const struct wf_error *e);

/* It failed after it was posted, and may have come all the same: whoever has it is told. */
void wf_attachments_lose(struct wf_list *attached, struct wf_desk *desk, const struct wf_error *e);

/* It was taken back: as if they had not begun. */
void wf_attachments_take_back(struct wf_list *attached);

/* It was never posted, and will not be.  Threads: any, callback. */
void wf_attachments_forget(struct wf_list *attached);

/* End one that can, early; one of them has ended; what went in place of one has left, or is not needed. */
void wf_attachment_stop(struct weft_op *op, const struct wf_error *e);
void wf_attachment_ended(struct weft_op *op, const struct wf_error *e);
void wf_attachment_over(struct weft_op *op);

/* What the rpc floor asks of a desk: see struct wf_beside. */
int wf_attachments_expect(void *ctx, struct wf_link *link, uint64_t call, bool reply,
			  uint64_t number, uint16_t count, void (*whole)(void *owner),
			  void *owner, void **bundle);
void wf_attachments_drop(void *bundle);
uint64_t wf_attachments_progress(const void *bundle);

/* @op, which had @bundle, maybe NULL, goes.  Threads: any, callback. */
void wf_attachments_free(struct weft_op *op, struct wf_bundle *bundle);

#endif
