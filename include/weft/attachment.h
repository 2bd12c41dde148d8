/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attachments: tensors that go beside the messages of a call, and never enter them.
 *
 * A request, a reply and each message of a stream may have up to 4096.  Whoever gets the
 * message sees the dtype and shape of each first, and receives those that it wants, each
 * once, into memory of its choice, as it receives any tensor.  Those that it does not are
 * released with the message.
 */
#ifndef WEFT_ATTACHMENT_H
#define WEFT_ATTACHMENT_H

#include <weft/rpc.h>
#include <weft/stream.h>
#include <weft/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_ATTACHMENTS_MAX 4096 /* of one message */

/*
 * Attach @tensor to the request of @call, which is open and not invoked yet; to the reply of
 * a call that is served, before that; or to the next message that is written to @stream.
 * The data is borrowed, as weft_send() borrows it, until @op ends: when the peer has received
 * it, has no use for it (CANCELLED), or a short one is on its way.  @op NULL: nobody waits.
 * Those of a request end no later than @call, which waits for them; those of a reply or of a
 * stream's message at the call's deadline, unless @options has one.
 *
 * -EALREADY: @call is invoked.  -EINVAL: as weft_send(), or no call that can have any: a
 * stream's, or one with a retry.
 * -E2BIG: too many.  Threads: any, one at a time for a message, callback.
 */
WEFT_API int weft_call_attach(struct weft_op *call, const struct weft_tensor *tensor,
			      const struct weft_send_options *options, struct weft_op **op);
WEFT_API int weft_reply_attach(void *closure_data, const struct weft_tensor *tensor,
			       const struct weft_send_options *options, struct weft_op **op);
WEFT_API int weft_stream_attach(struct weft_stream *stream, const struct weft_tensor *tensor,
				const struct weft_send_options *options, struct weft_op **op);

/*
 * What has come beside the request, in a handler and until the reply: how many; what
 * @index is, without data (NULL: there is no such one), with @flags, unless that is NULL, as
 * weft_op_tensor() gives them.  Threads: any, callback.
 */
WEFT_API unsigned weft_call_attachments(void *closure_data);
WEFT_API const struct weft_tensor *weft_call_attachment(void *closure_data, unsigned index,
							unsigned *flags);

/*
 * Receive @index: as weft_recv() from then on.  @op may end after the reply, but a caller
 * that has its reply takes back what is not there yet.  Its deadline, unless @options has
 * one, is the call's.  It ends with CANCELLED if the sender could not send it or took it
 * back, with FAILED_PRECONDITION if it has been received before.  Threads: any, callback.
 */
WEFT_API int weft_call_receive(void *closure_data, unsigned index,
			       const struct weft_tensor *into,
			       const struct weft_recv_options *options, struct weft_op **op);

/*
 * The same of what has come beside the reply of @op, a call, in its closure or after its
 * end, or beside the message of @op, a read that has ended; until weft_op_free(@op).
 * Receives that run then go on.  Threads: any, callback.
 */
WEFT_API unsigned weft_op_attachments(const struct weft_op *op);
WEFT_API const struct weft_tensor *weft_op_attachment(const struct weft_op *op, unsigned index,
						      unsigned *flags);
WEFT_API int weft_op_receive(struct weft_op *op, unsigned index, const struct weft_tensor *into,
			     const struct weft_recv_options *options, struct weft_op **receive);

#ifdef __cplusplus
}
#endif
#endif
