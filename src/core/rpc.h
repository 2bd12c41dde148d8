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
#include "core/server_call.h"
#include "rpc/call.h"
#include "tensor/bundle.h"

struct wf_op_call {
	bool packed;              /* the request is in it */
	bool running;             /* until it ends */
	size_t request_bytes;
	const char *service_name, *method_name; /* the descriptor's */
	const ProtobufCMessageDescriptor *output;
	ProtobufCClosure closure;
	void *closure_data;
	ProtobufCMessage *reply;  /* from the end to the closure */
	enum weft_compression compression; /* of the request */
	bool reply_compressed;    /* it was */
	ProtobufCService service; /* of weft_call_open: one invocation */
	bool begun;
	bool detached;            /* opened for nobody who waits for it: freed when it is invoked */
	struct wf_intercept_call intercepted;
	struct weft_stream *stream; /* NULL: it has none; its floor's reference keeps it */
	uint8_t *metadata;        /* for the server */
	struct wf_list attached;  /* beside the request */
	bool waits;               /* its outcome is known, and it is told when those have ended */
	struct wf_bundle *bundle; /* of what has come beside the reply; NULL: nothing */
	struct wf_server_call_child child;
	struct wf_call_notes *_Atomic notes; /* NULL: it had none */
	struct wf_path path;      /* of request and reply */
	struct wf_retry *retry;   /* NULL: it has one attempt; freed by free() */
	struct wf_call call;      /* the last; holds a reference while it needs this memory */
};

/* An operation for a call, without options of its own; which has taken what @options say.  Recorded. */
int wf_rpc_open(struct weft_peer *peer, const struct weft_op_options *options, struct weft_op **op);
int wf_rpc_new(struct weft_peer *peer, const struct weft_call_options *options,
	       struct weft_op **op);

/* Tell @closure that there is no operation for its call: @err, and the last sentence of this thread. */
void wf_rpc_refuse(ProtobufCClosure closure, void *data, int err);

/* How the call ended whose closure runs in this thread.  *@message stays until that returns. */
enum weft_status wf_rpc_status(const char **message);

#endif
