/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attachments: tensors that go beside the messages of a call, and never enter them.
 *
 * A request, a reply and each message of a stream may have up to 4096 attachments.  The receiver
 * of the message sees the dtype and shape of each attachment first, and receives the ones that it
 * wants, each once, into memory of its choice, as it receives any tensor.  Attachments that are
 * not received are released with the message.
 */
#ifndef WEFT_ATTACHMENT_H
#define WEFT_ATTACHMENT_H

#include <weft/rpc.h>
#include <weft/stream.h>
#include <weft/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_ATTACHMENTS_MAX 4096 /* attachments of a message */

/*
 * Attach @tensor to the request of @call, which is open and not invoked yet.  The data is
 * borrowed, as weft_send() borrows it, until @op ends: when the peer has received the tensor or
 * has no use for it, or a short tensor is on its way.  WEFT_OK says no more than it does of
 * weft_send().  @op NULL: nobody waits.  An attachment of a request ends no later than @call,
 * which waits for it.
 *
 * -EALREADY: @call is invoked.  -EINVAL: as weft_send(), or @call can have no attachments: it is a
 * stream's, or has a retry.  -E2BIG: the message has 4096 attachments already.
 * Threads: any, one at a time for a message, callback.
 */
WEFT_API int weft_call_attach(struct weft_op *call, const struct weft_tensor *tensor,
			      const struct weft_send_options *options, struct weft_op **op);

/*
 * Attach @tensor to the reply of a call that is served, before the reply is given; else as
 * weft_call_attach().  The peer may read the data after the call has ended, until the end of the
 * attachment: at the call's deadline at the latest, unless @options has its own.  @op NULL is for
 * a WEFT_SNAPSHOT, or where a done or queue in @options tells the end.
 * -EINVAL: as weft_send(), or the call is a stream's.
 * Threads: any, one at a time for a message, callback.
 */
WEFT_API int weft_served_attach(struct weft_served *call, const struct weft_tensor *tensor,
				const struct weft_send_options *options, struct weft_op **op);

/*
 * Attach @tensor to the next message that is written to @stream, by either side; else as
 * weft_served_attach(), the end of the attachment included.
 * -EPIPE: @stream is half-closed.  Threads: any, one at a time for a message, callback.
 */
WEFT_API int weft_stream_attach(struct weft_stream *stream, const struct weft_tensor *tensor,
				const struct weft_send_options *options, struct weft_op **op);

/*
 * Returns the number of attachments of the request, in a handler and until the reply.
 * Threads: any, callback.
 */
WEFT_API size_t weft_served_attachments(struct weft_served *call);

/*
 * Describe attachment @index of the request, without data, in a handler and until the reply.
 * NULL: there is none.  @flags, unless NULL, gets what weft_op_tensor() gives.  Threads: any,
 * callback.
 */
WEFT_API const struct weft_tensor *weft_served_attachment(struct weft_served *call, size_t index,
							  unsigned *flags);

/*
 * Receive attachment @index of the request, as weft_recv() from then on.  @op may end after the
 * reply, but a caller that has its reply takes back what is not there yet.  The deadline is the
 * call's, unless @options has its own.  @op ends with CANCELLED if the sender could not send the
 * attachment or took it back, with FAILED_PRECONDITION if it has been received before.
 * -EINVAL: there is no such attachment.  Threads: any, callback.
 */
WEFT_API int weft_served_receive(struct weft_served *call, size_t index,
				 const struct weft_tensor *into,
				 const struct weft_recv_options *options, struct weft_op **op);

/*
 * Returns the number of attachments beside the reply of @op, a call, in its closure or after its
 * end, or beside the message of @op, a read that has ended.  Attachments are there until
 * weft_op_free(@op).  Threads: any, callback.
 */
WEFT_API size_t weft_op_attachments(const struct weft_op *op);

/*
 * Describe attachment @index of @op, as weft_served_attachment() does for a request, until
 * weft_op_free(@op).  Threads: any, callback.
 */
WEFT_API const struct weft_tensor *weft_op_attachment(const struct weft_op *op, size_t index,
						      unsigned *flags);

/*
 * Receive attachment @index of @op by the operation @receive, as weft_recv() from then on.  The
 * deadline is the node's, unless @options has its own.  A receive that runs at weft_op_free(@op)
 * goes on.  -EINVAL: there is no such attachment.  Threads: any, callback.
 */
WEFT_API int weft_op_receive(struct weft_op *op, size_t index, const struct weft_tensor *into,
			     const struct weft_recv_options *options, struct weft_op **receive);

#ifdef __cplusplus
}
#endif
#endif
