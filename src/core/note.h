/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Note: the operation that takes the next note of a window.
 */
#ifndef WF_CORE_NOTE_H
#define WF_CORE_NOTE_H

#include <weft/weft.h>
#include "tensor/window.h"

struct wf_worker;

struct wf_op_note {
	struct weft_window *window; /* NULL once the operation has ended */
	struct wf_list taker;       /* in window->takers */
	struct wf_window_note *got; /* NULL: none yet */
	struct weft_note note;      /* @got, as users see it */
};

/* Make an operation that takes a note, and submit it.  Failures are recorded. */
int wf_note_next(struct weft_window *window, const struct weft_op_options *options,
		 struct weft_op **op);

/* Functions of the classes that take a note: @op begins with a struct wf_op_note. */
void wf_note_init(struct weft_op *op, struct weft_window *window,
		  const struct weft_op_options *options); /* maybe NULL */
void wf_note_start(struct weft_op *op);
void wf_note_stop(struct weft_op *op, const struct wf_error *e);
void wf_note_starve(struct weft_op *op, struct wf_worker *worker, const struct wf_error *e);

/* End the operation of @taker with @note, which is taken.  Threads: owner. */
void wf_note_finish(struct wf_list *taker, struct wf_window_note *note);

/* End the operation of @taker with @e.  Threads: owner. */
void wf_note_fail(struct wf_list *taker, const struct wf_error *e);

#endif
