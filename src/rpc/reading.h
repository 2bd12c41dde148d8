/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A read of a stream: the next message, or the end.
 *
 * Threads: owner.
 */
#ifndef WF_READING_H
#define WF_READING_H

#include <stdint.h>
#include "util/error.h"
#include "util/list.h"

struct wf_stream;

/* A message that is read. */
struct wf_reading_message {
	const uint8_t *bytes; /* gone when done returns */
	size_t count;
	bool compressed;
	void *attachment_set; /* owned by the reader from done on; NULL: none */
};

struct wf_reading {
	/* The next message is @got; NULL: there are no more.  Or @e: why none will come. */
	void (*done)(struct wf_reading *r, const struct wf_error *e,
		     const struct wf_reading_message *got);
	struct wf_stream *stream;
	struct wf_list node; /* in readers */
};

#endif
