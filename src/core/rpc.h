/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rpc: the operation that calls a method of a peer.
 */
#ifndef WF_CORE_RPC_H
#define WF_CORE_RPC_H

#include <weft/weft.h>
#include "core/intercept.h"
#include "core/notes.h"
#include "core/retry.h"
#include "core/server_hooks.h"
#include "rpc/call.h"
#include "tensor/attachment_set.h"

struct wf_op_call {
	bool packed;              /* the request is in call */
	bool running;             /* call has started, and not ended */
	size_t request_bytes;
	const char *service_name, *method_name; /* borrowed from the descriptor */
	const ProtobufCMessageDescriptor *output;
	ProtobufCClosure closure;
	void *closure_data;
	ProtobufCMessage *reply;  /* NULL: none; any thread reads it once the call has ended */
	enum weft_compression compression; /* for the request */
	bool reply_compressed;    /* the reply was compressed */
	ProtobufCService service; /* for weft_call_open: one invocation */
	bool begun;
	bool detached;            /* the caller has no handle: freed by the invocation, or the queue's */
	struct wf_intercept_call intercepted;
	struct weft_stream *stream; /* NULL: none; the rpc floor's reference keeps it */
	uint8_t *metadata;        /* for the server */
	struct wf_list attached;  /* attachments beside the request */
	bool waits;               /* the outcome is known, to be told once attachments have ended */
	struct wf_attachment_set *attachment_set; /* attachments beside the reply; NULL: none */
	struct wf_server_hooks_child child;
	struct wf_notes *_Atomic notes; /* NULL: the answer had none */
	struct wf_path path;      /* the path of request and reply */
	struct wf_retry *retry;   /* NULL: one attempt; freed by free() */
	struct wf_call call;      /* the last; has a reference while it needs this memory */
};

/* Make an operation for a call without call options.  Failures are recorded. */
int wf_rpc_open(struct weft_peer *peer, const struct weft_op_options *options, struct weft_op **op);
/* Make an operation for a call as @options say.  Failures are recorded. */
int wf_rpc_new(struct weft_peer *peer, const struct weft_call_options *options,
	       struct weft_op **op);

/* Tell @closure that its call has no operation: @err, and the last sentence of this thread. */
void wf_rpc_refuse(ProtobufCClosure closure, void *data, int err);

/* Returns how the call ended whose closure runs here.  *@message lives until it returns. */
enum weft_status wf_rpc_status(const char **message);
/* Does the closure of @op run in this thread?  Its outcome is known then, though it has not ended. */
bool wf_rpc_replies(const struct weft_op *op);

#endif
