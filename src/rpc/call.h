/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calling side of calls: bytes out, bytes or a status back; or a stream of both (stream.h),
 * and a status back.
 *
 * A call goes on until both its outcome is told and its buffers are quiet, so an outcome never
 * waits for a buffer: the request belongs to the call, not to the caller.
 *
 * Threads: owner.
 */
#ifndef WF_CALL_H
#define WF_CALL_H

#include "transfer/outgoing.h"
#include "rpc/codec.h"
#include "rpc/stream.h"
#include "transfer/pull.h"
#include "wire/record_call.h"

#define WF_CALL_BYTES_MAX (64 * MIB) /* default limit of a message that is received */
#define WF_CALL_BYTES_MOST GIB /* highest limit, and longest message sent; protobuf-c: 2 GiB */

/* Parts of an answer besides the reply: two blocks of metadata, and bytes about a failure. */
enum wf_call_note { WF_CALL_INITIAL, WF_CALL_TRAILING, WF_CALL_DETAILS };

struct wf_calls {
	struct wf_transfer *transfer;
	struct wf_streams *streams;
	struct wf_table table;
};

/* The reply of a call: OWED --> TOLD --> WHOLE */
enum wf_call_reply {
	WF_CALL_OWED,  /* the server owes the reply */
	WF_CALL_TOLD,  /* the server has ended the call, as the record says */
	WF_CALL_WHOLE, /* the reply lies in the call's own memory */
};

/* A run of a call, from its start until it is quiet. */
struct wf_call_run {
	/* set by the owner, in done: the call will be started again, and keeps its request */
	bool again;

	/* read by the owner, inside done */
	enum wf_call_reply reply;
	void *attachment_set; /* attachments of the reply, for the owner to take; NULL: none */

	/* private to call.c */
	bool ended;
	bool partial; /* attachments of the reply are missing */
	bool request_busy, reply_busy, cancel_busy; /* each keeps the call */
};

struct wf_call {
	/*
	 * set by the owner, whose memory it is, all zero up to the part that an outgoing body sets
	 * up itself
	 */
	const char *service, *method; /* live as long as the call */
	uint64_t deadline_ns;         /* UINT64_MAX: none */
	uint64_t began_ns; /* start of the first attempt; no later than wf_call_start() */
	struct wf_terms terms;        /* terms of request and reply */
	const uint8_t *metadata;      /* metadata, packed; lives as long as the call */
	uint32_t metadata_bytes;
	uint16_t attachments;         /* attachments of the request */
	bool compressed;              /* the request is compressed */
	uint64_t bytes_max;           /* limit of the reply */
	uint64_t request_id;          /* the id of all attempts; 0: it is not made again */
	/* server that may have handled an earlier attempt; NULL: none has */
	const uint8_t *incarnation;
	/*
	 * NULL: the call is unary.  At the call's end the stream is stopped, or over if the
	 * server has ended the call
	 */
	struct wf_stream *stream;
	/* Note a part of the server's answer; called before done.  -ENOMEM.  NULL: not wanted. */
	int (*noted)(struct wf_call *call, enum wf_call_note what, const uint8_t *bytes,
		     uint32_t count);
	/*
	 * The outcome, once: @e NULL with the reply's bytes, which are gone on return.  The call
	 * must not be touched any more afterwards.
	 */
	void (*done)(struct wf_call *call, const struct wf_error *e, enum weft_executed executed,
		     const uint8_t *reply, size_t bytes);
	/* The call's memory is the owner's again; not before done. */
	void (*quiet)(struct wf_call *call);

	/* read by the owner, inside done */
	struct wf_path reply_path;

	/* private to call.c */
	struct wf_calls *calls;
	struct wf_link *link;
	struct wf_list node; /* in link->work, until the end */
	uint64_t id;
	struct wf_call_run run;
	struct wf_message_control cancel; /* control record to the server */
	struct wf_buffer request, reply;
	struct wf_outgoing outgoing; /* carries the request; read by the owner: its path */
	/* Members from here on are not zeroed, see wf_op_init. */
	struct wf_record_reply record;
	struct wf_pull pull;
};

void wf_call_init(struct wf_calls *calls, struct wf_streams *streams);
void wf_call_fini(struct wf_calls *calls);

/* Set the packed request of @call, which is taken. */
void wf_call_request(struct wf_call *call, const struct wf_codec_packed *request);

/* Free the request of a call that will not be started. */
void wf_call_drop(struct wf_call *call);

/* Start @call; or again, after quiet.  Borrows @call until quiet.  -ENOMEM: nothing was done. */
int wf_call_start(struct wf_calls *calls, struct wf_link *link, struct wf_call *call);

/* Undo wf_call_start() before the call had a rail: it may be started again.  -EALREADY. */
int wf_call_take_back(struct wf_call *call);

/* End @call early with @e: done runs inside, and the server is told.  Not after done. */
void wf_call_stop(struct wf_call *call, const struct wf_error *e);

/* Say for people what @call waits for. */
void wf_call_describe(const struct wf_call *call, char *text, size_t bytes);

/* Returns a number that differs once @call has come further. */
uint64_t wf_call_progress(const struct wf_call *call);

/* Returns how many bytes of the request the peer may be reading just now, without a word. */
uint64_t wf_call_offered_bytes(const struct wf_call *call);

/* Take REPLY, RESPONSE and GRANT_REQUESTS records.  Threads: setup. */
void wf_call_route(struct wf_calls *calls, struct wf_routes *routes);

/* End all calls over @link, which is down, with @e. */
void wf_call_down(struct wf_link *link, const struct wf_error *e);

#endif
