/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attachment: sends that go beside a message, and the set that came beside one.
 */
#ifndef WF_CORE_ATTACHMENT_H
#define WF_CORE_ATTACHMENT_H

#include <weft/weft.h>
#include "rpc/stream.h"
#include "tensor/attachment_set.h"
#include "wire/record.h"
#include "wire/record_call.h"

struct wf_worker;

/* State of a send that is an attachment, which begins when its message is posted. */
struct wf_attachment {
	struct weft_op *op;
	struct wf_list node;      /* in the list of the message; worker only once begun */
	bool dropped;             /* the peer knows that the message is over */
	bool lost;                /* the send ended; a loss notice with a reference goes instead */
	struct weft_op *call;     /* NULL or a call that waits for the send beside its request */
	struct weft_stream *stream; /* NULL or a reference: the send goes with a message of it */
	uint8_t key[WF_RECORD_ATTACHMENT_KEY_BYTES];
};

/* Begin @attached, whose message waits to be posted: they can end.  Threads: owner. */
void wf_attachments_await(struct wf_list *attached, struct wf_worker *worker);

/* Returns a number for the watchdog that changes as sends make progress.  Threads: owner. */
uint64_t wf_attachments_sent_progress(const struct wf_list *attached);

/* Returns how many bytes peers may be reading now, unreported.  Threads: owner. */
uint64_t wf_attachments_offered_bytes(const struct wf_list *attached);

/* Post @attached, beside their message, over @link; @key: the first one's.  Threads: owner. */
void wf_attachments_begin(struct wf_list *attached, struct wf_worker *worker, struct wf_link *link,
			  uint64_t call, struct wf_record_attachment_key key);

/*
 * End @attached, whose message is over, as its peer knows; those that have not begun end at
 * @worker.  @e NULL: the message went well.  Threads: owner.
 */
void wf_attachments_stop(struct wf_list *attached, struct wf_worker *worker,
			 const struct wf_error *e);

/*
 * End @attached, whose message failed after its post and may have arrived: the peer is told of
 * the loss.  Threads: owner.
 */
void wf_attachments_lose(struct wf_list *attached, struct wf_worker *worker,
			 const struct wf_error *e);

/* Undo the begin of @attached, whose message was taken back.  Threads: owner. */
void wf_attachments_take_back(struct wf_list *attached);

/* End @attached, whose message was never posted, and will not be.  Threads: any, callback. */
void wf_attachments_forget(struct wf_list *attached);

/* End @op, which can end by now, early because of @e.  Threads: owner. */
void wf_attachment_stop(struct weft_op *op, const struct wf_error *e);

/* Leave the message of @op, whose send ended with @e, or send a loss notice.  Threads: owner. */
void wf_attachment_ended(struct weft_op *op, const struct wf_error *e);

/* End a loss notice, which has left or is not needed.  Threads: owner. */
void wf_attachment_over(struct weft_op *op);

/* Implement struct wf_attachment_ops, by which the rpc floor reaches a worker's sets. */
int wf_attachments_expect(void *ctx, struct wf_link *link, uint64_t call, bool reply,
			  uint64_t number, uint16_t count, void (*whole)(void *owner),
			  void *owner, void **attachment_set);
void wf_attachments_drop(void *attachment_set);
uint64_t wf_attachments_progress(const void *attachment_set);

/*
 * Close the @attachment_set of @op, which is being freed.  Accepts NULL.  Threads: any, callback.
 */
void wf_attachments_free(struct weft_op *op, struct wf_attachment_set *attachment_set);

#endif
