/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tensors of DLPack, sent and viewed by DLPack's own types.  Optional: this header needs
 * <dlpack/dlpack.h>, and <weft/weft.h> does not include it.
 *
 * A DLTensor has the layout of a struct weft_tensor, so nothing is converted.
 */
#ifndef WEFT_DLPACK_H
#define WEFT_DLPACK_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <dlpack/dlpack.h>
#include <weft/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* View a DLTensor as a tensor of weft, without a copy.  Threads: any, callback. */
static inline const struct weft_tensor *weft_dlpack_tensor(const DLTensor *tensor)
{
	return (const struct weft_tensor *)(const void *)tensor;
}

/* View a tensor of weft as a DLTensor, without a copy.  Threads: any, callback. */
static inline const DLTensor *weft_dlpack_view(const struct weft_tensor *tensor)
{
	return (const DLTensor *)(const void *)tensor;
}

/* State of a weft_dlpack_send() until its operation has ended. */
struct weft_dlpack_sending {
	DLManagedTensor *tensor;
	void (*done)(struct weft_op *op, void *arg);
	void *arg;
};

/* Completion callback of weft_dlpack_send(); not for callers. */
static inline void weft_dlpack_sent(struct weft_op *op, void *arg)
{
	struct weft_dlpack_sending s = *(struct weft_dlpack_sending *)arg;

	free(arg);
	if (s.tensor->deleter)
		s.tensor->deleter(s.tensor);
	if (s.done)
		s.done(op, s.arg);
}

/*
 * Send a managed tensor as weft_send() does.  Takes @tensor: its deleter runs on the worker when
 * the operation ends, before the options' done.  On failure @tensor stays the caller's.
 * -EINVAL: the options have a queue.  -ENOMEM, or as weft_send().  Threads: any, callback.
 */
static inline int weft_dlpack_send(struct weft_peer *peer, uint64_t step, const void *key,
				   size_t key_bytes, DLManagedTensor *tensor,
				   const struct weft_send_options *options, struct weft_op **op)
{
	struct weft_dlpack_sending *s = (struct weft_dlpack_sending *)malloc(sizeof(*s));
	struct weft_send_options o;
	int err;

	if (!s)
		return -ENOMEM;
	memset(&o, 0, sizeof(o));
	o.size = sizeof(o);
	if (options)
		o = *options;
	s->tensor = tensor;
	s->done = o.op.done;
	s->arg = o.op.arg;
	o.op.size = sizeof(o.op);
	o.op.done = weft_dlpack_sent;
	o.op.arg = s;
	err = weft_send(peer, step, key, key_bytes, weft_dlpack_tensor(&tensor->dl_tensor), &o, op);
	if (err)
		free(s);
	return err;
}

#ifdef __cplusplus
}
#endif
#endif
