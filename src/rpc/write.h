/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A write: a message of a stream (stream.h) on its way out.
 *
 * Threads: owner.
 */
#ifndef WF_WRITE_H
#define WF_WRITE_H

#include "memory/buffer.h"
#include "transfer/outgoing.h"

struct wf_stream;

struct wf_write {
	/* set by the owner */
	uint16_t flags; /* WF_MESSAGE_* */
	uint16_t attachments;
	/*
	 * The write is posted, as message @number of call @call, and its attachments may be.
	 * NULL: there are none.
	 */
	void (*begun)(struct wf_write *w, struct wf_link *link, uint64_t call, uint64_t number);
	struct wf_buffer buffer; /* taken; the message in it is the outgoing body's body */
	/* The message is on its way, and a long one has been pulled; or @e: it was not. */
	void (*done)(struct wf_write *w, const struct wf_error *e);

	/* private to stream.c */
	struct wf_stream *stream;
	struct wf_list node; /* in stream->out.pending or .posted */
	bool posted;
	struct wf_outgoing outgoing;
};

#endif
