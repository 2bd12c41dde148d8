/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calling side of calls: bytes out, bytes or a status back; or a stream of
 * both (stream.h), and a status back.
 *
 * A call goes on until both its outcome is told and its buffers are quiet, so
 * an outcome never waits for a buffer: the request belongs to the call, not to
 * the caller.
 *
 * Threads: owner.
 */
#ifndef WF_CALL_H
#define WF_CALL_H

#include "transfer/parcel.h"
#include "rpc/message.h"
#include "rpc/stream.h"
#include "transfer/pull.h"
#include "wire/call_record.h"

#define WF_CALL_BYTES_MAX (64 * MIB) /* of a message that is received, unless something else is set */
#define WF_CALL_BYTES_MOST GIB       /* that can be set, and sent; protobuf-c ends at 2 GiB */

/* What an answer may have besides: two blocks of metadata, and bytes about a failure. */
enum wf_call_note { WF_CALL_INITIAL, WF_CALL_TRAILING, WF_CALL_DETAILS };

struct wf_calls {
	struct wf_transfer *transfer;
	struct wf_streams *streams;
	struct wf_table table;
};

/* OWED --> TOLD --> WHOLE */
enum wf_call_reply {
	WF_CALL_OWED,  /* by the server */
	WF_CALL_TOLD,  /* the server has ended the call, as the record says */
	WF_CALL_WHOLE, /* the reply lies in the call's own memory */
};

/* One run of a call, from its start until it is quiet. */
struct wf_call_run {
	/* set by the owner, in done: the call will be started again, and keeps its request */
	bool again;

	/* read by the owner, inside done */
	enum wf_call_reply reply;
	void *bundle; /* of what has come beside the reply, for the owner to take; NULL: nothing */

	/* its own */
	bool ended;
	bool partial; /* not all that goes beside the reply has come */
	bool request_busy, reply_busy, cancel_busy; /* keep the call until they are done */
};

struct wf_call {
	/* set by the owner, whose memory it is and was all zero up to what a parcel sets up by itself */
	const char *service, *method; /* live as long as the call */
	uint64_t deadline_ns;         /* UINT64_MAX: none */
	uint64_t began_ns;            /* no later than it is started */
	struct wf_terms terms;        /* of request and reply */
	const uint8_t *metadata;      /* as it goes out; lives as long as the call */
	uint32_t metadata_bytes;
	uint16_t attachments;         /* that follow the request */
	bool compressed;              /* the request is */
	uint64_t bytes_max;           /* of the reply */
	uint64_t request_id;          /* the id of all attempts; 0: it is not made again */
	const uint8_t *incarnation;   /* of the server that may have handled an earlier one; NULL: none has */
	struct wf_stream *stream;     /* NULL: the call is unary.  Is stopped at the call's end, or over if the server has ended it */
	/* What the server adds to its answer; before done.  -ENOMEM.  NULL: it is not wanted. */
	int (*noted)(struct wf_call *call, enum wf_call_note what, const uint8_t *bytes,
		     uint32_t count);
	/*
	 * The outcome, once: @e NULL with the reply's bytes, which are gone on
	 * return.  The call is not to be touched any more afterwards.
	 */
	void (*done)(struct wf_call *call, const struct wf_error *e, enum weft_executed executed,
		     const uint8_t *reply, size_t bytes);
	/* Its memory is the owner's again; not before done. */
	void (*quiet)(struct wf_call *call);

	/* read by the owner, inside done */
	struct wf_path reply_path;

	/* its own */
	struct wf_calls *calls;
	struct wf_link *link;
	struct wf_list node; /* in a list of it, until the end */
	uint64_t id;
	struct wf_call_run run;
	struct wf_control cancel; /* to the server */
	struct wf_buffer request, reply;
	struct wf_parcel parcel; /* of the request; read by the owner: its path */
	/* From here on nothing is zero, see wf_op_init. */
	struct wf_reply_record record;
	struct wf_pull pull;
};

void wf_call_init(struct wf_calls *calls, struct wf_streams *streams);
void wf_call_fini(struct wf_calls *calls);

/* Its request, which is taken. */
void wf_call_request(struct wf_call *call, const struct wf_packed *request);

/* It will not be started. */
void wf_call_drop(struct wf_call *call);

/* Start it; or again, after quiet.  Borrows @call until quiet.  -ENOMEM: nothing was done. */
int wf_call_start(struct wf_calls *calls, struct wf_link *link, struct wf_call *call);

/* As if it had not been started, before it had a rail: it may be started again.  -EALREADY. */
int wf_call_take_back(struct wf_call *call);

/* End it early with @e: done runs inside, and the server is told.  Not after done. */
void wf_call_stop(struct wf_call *call, const struct wf_error *e);

/* For people: what it waits for.  And a number that differs once it has come further. */
void wf_call_describe(const struct wf_call *call, char *text, size_t bytes);
uint64_t wf_call_progress(const struct wf_call *call);

/* Bytes of its request that the peer may be reading just now, without a word. */
uint64_t wf_call_offered_bytes(const struct wf_call *call);

/* Calls take REPLY, RESPONSE and GRANT_REQUESTS records.  Threads: setup. */
void wf_call_route(struct wf_calls *calls, struct wf_routes *routes);
void wf_call_down(struct wf_link *link, const struct wf_error *e);

#endif
