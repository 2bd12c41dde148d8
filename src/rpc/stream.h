/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream: the messages of a call beyond its record, in order, either way.
 *
 * A write waits until the reader's side grants it, so that who reads slowly
 * stops who writes.  A short message comes with its record and lies here until
 * it is read; of a long one there is an offer, which is pulled a little ahead of
 * the reader.  Both sides' streams are the same but for the records.
 *
 * A stream outlives its call: what was written well goes on its way, and what
 * has come can be read, until whoever has it lets go.
 *
 * Threads: owner.
 */
#ifndef WF_STREAM_H
#define WF_STREAM_H

#include "rpc/beside.h"
#include "rpc/write.h"
#include "transfer/pull.h"
#include "wire/call_record.h"

/* Of a worker. */
struct wf_streams {
	struct wf_transfer *transfer;
	struct wf_beside beside; /* of all calls of the worker */
	struct wf_list all; /* that have begun */
};

/* A message that is read. */
struct wf_heard {
	const uint8_t *bytes; /* gone when it was told */
	size_t count;
	bool compressed;
	void *bundle;         /* of what has come beside it; the reader's from then on; NULL: nothing */
};

struct wf_reading {
	/* @got the next message; NULL: there are no more.  Or @e: why none will come. */
	void (*done)(struct wf_reading *r, const struct wf_error *e, const struct wf_heard *got);
	struct wf_stream *stream;
	struct wf_list node; /* in readers */
};

/* OWNED --> RELEASED --> QUIET */
enum wf_stream_life {
	WF_STREAM_OWNED,
	WF_STREAM_RELEASED, /* by its owner, and something is under way */
	WF_STREAM_QUIET,    /* the owner has been told so */
};

/* What is written. */
struct wf_stream_out {
	struct wf_list pending, posted; /* writes */
	uint64_t written, may_write;    /* messages, ever */
	bool held;                      /* the last posted has no rail, or has failed: none follows it yet */
	bool mute;                      /* no write is taken any more: */
	struct wf_error mute_why;
};

/*
 *   OPEN ----> OVER ----> DEAF
 *     \___________________^
 */
enum wf_stream_in_state {
	WF_STREAM_OPEN,
	WF_STREAM_OVER, /* no messages come any more, and those that have come are read */
	WF_STREAM_DEAF, /* none is taken or read any more */
};

/* What is read. */
struct wf_stream_in {
	enum wf_stream_in_state state;
	struct wf_error why;            /* it is not open; code 0: the peer had no more to say */
	struct wf_list incoming;        /* messages that have come and are not read */
	struct wf_list readers;
	unsigned reader_count;
	uint64_t came, taken;           /* messages, ever */
	uint64_t granted;               /* as the peer was told */
	uint64_t ahead_bytes;           /* pulled, or being pulled, and not read */
	struct wf_message grant;
	bool grant_busy;
	uint8_t grant_bytes[WF_SMALL_RECORD_BYTES];
};

struct wf_stream {
	/* set by the owner, and the rest all zero */
	bool serves; /* this is the server's side */
	struct wf_terms terms;
	uint64_t message_bytes_max; /* that it takes; as wf_stream_init sets it, or less */
	/* It was released, and its memory is the owner's again. */
	void (*quiet)(struct wf_stream *s);

	/* set by its call while that runs */
	void *owner; /* the call; NULL: it has ended */
	/* A message is lost because of @e, and the stream has stopped. */
	void (*broken)(struct wf_stream *s, const struct wf_error *e);
	/* Nothing of a message left, so nothing that was said after it may.  NULL: nobody wants to know. */
	void (*unsaid)(struct wf_stream *s, const struct wf_error *e);
	/* No write waits for a grant or a rail any more.  NULL: nobody wants to know. */
	void (*flushed)(struct wf_stream *s);

	/* of a server: goes with the first message, if there is any; allocated, and freed with the stream */
	uint8_t *initial;
	uint32_t initial_bytes;
	bool initial_sent;

	/* its own */
	enum wf_stream_life life;
	struct wf_streams *streams; /* NULL: not begun */
	struct wf_list node;        /* in streams->all */
	struct wf_list link_node;   /* and in a list of its link */
	struct wf_link *link;       /* a reference */
	uint64_t call;
	struct wf_notice go_on;     /* something is to be done that could not be done at once */
	struct wf_error lost_why;   /* code not 0: a message is lost, so it will stop */
	unsigned busy;              /* parcels, pulls and grants under way */
	struct wf_stream_out out;
	struct wf_stream_in in;
};

void wf_streams_init(struct wf_streams *streams, struct wf_transfer *t,
		     const struct wf_beside *beside);
/* Nothing is under way any more, and each that is left is released. */
void wf_streams_fini(struct wf_streams *streams);

/* The link is down: what lies offered on its other side will never come. */
void wf_streams_down(struct wf_link *link, const struct wf_error *e);

/* @s is all zero but for what its owner has set. */
void wf_stream_init(struct wf_stream *s);

/* Its call goes over @link, with the caller's id @call. */
void wf_stream_begin(struct wf_streams *streams, struct wf_link *link, uint64_t call,
		     struct wf_stream *s);

/* Its call was taken back, and so will be its writes and reads: as if it had not begun. */
void wf_stream_take_back(struct wf_stream *s);

/* Write; half-close by one without a message.  done is never called inside, but if it is too late for writing. */
void wf_stream_write(struct wf_stream *s, struct wf_write *w);

/* As if it had not been written: of a call that was taken back.  -EALREADY. */
int wf_stream_take_write_back(struct wf_write *w);

/* End it with @e; if it is on its way, and is not there before that, the stream breaks. */
void wf_stream_stop_write(struct wf_write *w, const struct wf_error *e);

/* The next message, when it is there: maybe inside. */
void wf_stream_read(struct wf_stream *s, struct wf_reading *r);
int wf_stream_take_read_back(struct wf_reading *r);
void wf_stream_stop_read(struct wf_reading *r, const struct wf_error *e);

/* The peer has nothing more to say: reads end after what has come, with @e; NULL: well. */
void wf_stream_over(struct wf_stream *s, const struct wf_error *e);

/* Nothing more is written: what has not left is taken back, and ends with @e. */
void wf_stream_mute(struct wf_stream *s, const struct wf_error *e);

/* Nothing more is read: what has come is dropped, and reads end with @e. */
void wf_stream_deafen(struct wf_stream *s, const struct wf_error *e);

/* Both of the last. */
void wf_stream_stop(struct wf_stream *s, const struct wf_error *e);

/* Does no write wait for a grant or a rail? */
bool wf_stream_is_flushed(const struct wf_stream *s);

/* The owner wants nothing of it any more: quiet follows once, maybe inside, when what was written has left. */
void wf_stream_release(struct wf_stream *s);

/* What a record says of a message, and who answers its offer. */
struct wf_arrived {
	struct wf_message_record record;
	struct wf_answer *answer;
};

/* A REQUEST or RESPONSE has come.  -EBADMSG.  -ENOMEM: nothing was done. */
int wf_stream_arrive(struct wf_link *link, const struct wf_record *record, struct wf_arrived *a);

/* It counts as not arrived, and comes again. */
void wf_stream_unarrive(struct wf_link *link, struct wf_arrived *a);

/* Its call is over: nobody reads it. */
void wf_stream_refuse(struct wf_link *link, struct wf_arrived *a);

/* It is for @s.  -EBADMSG: beyond the grant, or after the last.  -ENOMEM: nothing was done. */
int wf_stream_take(struct wf_stream *s, struct wf_link *link, struct wf_arrived *a);

/* A GRANT record, of @total messages. */
void wf_stream_granted(struct wf_stream *s, uint64_t total);

/* For people: what its next read or write waits for. */
void wf_stream_describe_read(const struct wf_reading *r, char *text, size_t bytes);
void wf_stream_describe_write(const struct wf_write *w, char *text, size_t bytes);
uint64_t wf_stream_progress(const struct wf_stream *s);

/* Bytes of its messages that the peer may be reading just now, without a word. */
uint64_t wf_stream_offered_bytes(const struct wf_stream *s);

#endif
