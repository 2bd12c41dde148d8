/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream: the messages of a call beyond its record, in order, either way.
 *
 * A write waits until the reader's side grants it, so that a slow reader stops the writer.  A
 * short message comes with its record and lies here until it is read; a long one is offered, and
 * pulled a little ahead of the reader.  Both sides' streams are the same but for the records.
 *
 * A stream outlives its call: messages written well go on their way, and those that have come
 * can be read, until the owner lets go.
 *
 * Threads: owner.
 */
#ifndef WF_STREAM_H
#define WF_STREAM_H

#include "rpc/attachment_ops.h"
#include "rpc/reading.h"
#include "rpc/write.h"
#include "transfer/pull.h"
#include "wire/record_call.h"

/* Streams of a worker. */
struct wf_streams {
	struct wf_transfer *transfer;
	struct wf_attachment_ops attachments; /* attachments of all calls of the worker */
	struct wf_list all; /* streams that have begun */
};

/* The life of a stream: OWNED --> RELEASED --> QUIET */
enum wf_stream_life {
	WF_STREAM_OWNED,
	WF_STREAM_RELEASED, /* released by the owner, with something under way */
	WF_STREAM_QUIET,    /* the owner has had quiet */
};

/* The half of a stream that is written. */
struct wf_stream_out {
	struct wf_list pending, posted; /* struct wf_write */
	uint64_t written, may_write;    /* messages ever written, and granted by the peer */
	bool held; /* the last posted write has no rail, or has failed: none follows it yet */
	bool mute;                      /* no write is taken any more, because of @mute_why */
	struct wf_error mute_why;
};

/*
 * States of the half that is read:
 *
 *   OPEN ----> OVER ----> DEAF
 *     \___________________^
 */
enum wf_stream_in_state {
	WF_STREAM_OPEN,
	WF_STREAM_OVER, /* no more messages come, and those that have come are read */
	WF_STREAM_DEAF, /* no message is taken or read any more */
};

/* The half of a stream that is read. */
struct wf_stream_in {
	enum wf_stream_in_state state;
	struct wf_error why; /* why the stream is not open; code 0: the peer has ended it well */
	struct wf_list incoming;        /* messages that have come and are not read */
	struct wf_list readers;
	unsigned reader_count;
	uint64_t came, taken;           /* messages ever come, and read */
	uint64_t granted;               /* messages that the peer was granted */
	uint64_t ahead_bytes;           /* bytes pulled, or being pulled, and not read */
	struct wf_message grant;
	bool grant_busy;
	uint8_t grant_bytes[WF_RECORD_SMALL_BYTES];
};

struct wf_stream {
	/* set by the owner, and the rest all zero */
	bool serves; /* the server's side, not the caller's */
	struct wf_terms terms;
	uint64_t message_bytes_max; /* limit for incoming; set by wf_stream_init(), or lower */
	/* The released stream's memory is the owner's again. */
	void (*quiet)(struct wf_stream *s);

	/* set by the call while it runs */
	void *owner; /* the call; NULL: the call has ended */
	/* A message is lost because of @e, and the stream has stopped. */
	void (*broken)(struct wf_stream *s, const struct wf_error *e);
	/* No byte of a message left, so nothing posted after it may leave.  NULL: not wanted. */
	void (*unsaid)(struct wf_stream *s, const struct wf_error *e);
	/* No write waits for a grant or a rail any more.  NULL: not wanted. */
	void (*flushed)(struct wf_stream *s);

	/* The server's metadata for the first message, if any; allocated, freed with the stream. */
	uint8_t *initial;
	uint32_t initial_bytes;
	bool initial_sent;

	/* private to stream.c */
	enum wf_stream_life life;
	struct wf_streams *streams; /* NULL: not begun */
	struct wf_list node;        /* in streams->all */
	struct wf_list link_node;   /* in link->work */
	struct wf_link *link;       /* a reference */
	uint64_t call;
	struct wf_loop_notice go_on; /* runs when something could not be done at once */
	struct wf_error lost_why;   /* code not 0: a message is lost, and the stream will stop */
	unsigned busy;              /* outgoing bodies, pulls and grants under way */
	struct wf_stream_out out;
	struct wf_stream_in in;
};

void wf_streams_init(struct wf_streams *streams, struct wf_transfer *t,
		     const struct wf_attachment_ops *attachments);
/* Stop and release the streams that are left; nothing is under way any more. */
void wf_streams_fini(struct wf_streams *streams);

/* Break streams of @link, which is down, that lack bytes offered on its other side. */
void wf_streams_down(struct wf_link *link, const struct wf_error *e);

/* Set @s up, all zero but for members that its owner has set. */
void wf_stream_init(struct wf_stream *s);

/* Begin @s, whose call goes over @link, with the caller's id @call. */
void wf_stream_begin(struct wf_streams *streams, struct wf_link *link, uint64_t call,
		     struct wf_stream *s);

/* Undo wf_stream_begin(), for the call was taken back, and so will be its writes and reads. */
void wf_stream_take_back(struct wf_stream *s);

/* Write; without a message, half-close.  done runs inside only if it is too late for writing. */
void wf_stream_write(struct wf_stream *s, struct wf_write *w);

/* Undo wf_stream_write(), of a call that was taken back.  -EALREADY. */
int wf_stream_take_write_back(struct wf_write *w);

/* End @w with @e; if it is on its way, and is not there before that, the stream breaks. */
void wf_stream_stop_write(struct wf_write *w, const struct wf_error *e);

/* Read the next message, when it is there: done may run inside. */
void wf_stream_read(struct wf_stream *s, struct wf_reading *r);

/* Undo wf_stream_read(), of a call that was taken back.  -EALREADY. */
int wf_stream_take_read_back(struct wf_reading *r);

/* End @r with @e. */
void wf_stream_stop_read(struct wf_reading *r, const struct wf_error *e);

/* End reads after the messages that have come, with @e; NULL: well.  The peer sends no more. */
void wf_stream_over(struct wf_stream *s, const struct wf_error *e);

/* End writing: writes that have not left are taken back, and end with @e. */
void wf_stream_mute(struct wf_stream *s, const struct wf_error *e);

/* End reading: messages that have come are dropped, and reads end with @e. */
void wf_stream_deafen(struct wf_stream *s, const struct wf_error *e);

/* End both reading and writing with @e. */
void wf_stream_stop(struct wf_stream *s, const struct wf_error *e);

/* Returns whether no write waits for a grant or a rail. */
bool wf_stream_is_flushed(const struct wf_stream *s);

/* Let go of @s: quiet follows once, maybe inside, when all writes have left. */
void wf_stream_release(struct wf_stream *s);

/* A message that arrives, and the answer to its offer. */
struct wf_stream_arrived {
	struct wf_record_message record;
	struct wf_answer *answer;
};

/* Parse a REQUEST or RESPONSE record that has come.  -EBADMSG.  -ENOMEM: nothing was done. */
int wf_stream_arrive(struct wf_link *link, const struct wf_record *record,
		     struct wf_stream_arrived *a);

/* Undo wf_stream_arrive(): the message comes again. */
void wf_stream_unarrive(struct wf_link *link, struct wf_stream_arrived *a);

/* Refuse a message that nobody reads, for its call is over. */
void wf_stream_refuse(struct wf_link *link, struct wf_stream_arrived *a);

/* Take a message for @s.  -EBADMSG: beyond the grant, or after the last.  -ENOMEM: not taken. */
int wf_stream_take(struct wf_stream *s, struct wf_link *link, struct wf_stream_arrived *a);

/* Take a grant by the peer, of @total messages ever. */
void wf_stream_granted(struct wf_stream *s, uint64_t total);

/* Say for people what a read waits for. */
void wf_stream_describe_read(const struct wf_reading *r, char *text, size_t bytes);

/* Say for people what a write waits for. */
void wf_stream_describe_write(const struct wf_write *w, char *text, size_t bytes);

/* Returns a number that differs once @s has come further. */
uint64_t wf_stream_progress(const struct wf_stream *s);

/* Returns how many bytes of the messages the peer may be reading just now, without a word. */
uint64_t wf_stream_offered_bytes(const struct wf_stream *s);

#endif
