/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The answer to a served call, from the handler's word, or a failure that no
 * handler had a part in, until it has left: after what was written before it,
 * and kept for the next attempt of a call that may be made again.
 *
 * Each of these may be the end of the call: it is not to be touched afterwards.
 *
 * Threads: owner, but for what says otherwise.
 */
#ifndef WF_REPLY_H
#define WF_REPLY_H

#include "rpc/served.h"

/*
 * The handler's word: @reply, which is taken; or, with a @status other than OK and @reply NULL,
 * @text, which is copied.  Only the first counts; -EALREADY: it was not this one, and @reply is
 * given up.  Threads: any, callback.
 */
int wf_reply_submit(struct wf_served *s, enum weft_status status, const char *text,
		    const struct wf_packed *reply);

/* Answer with a failure, unless somebody has answered already. */
void wf_reply_fail(struct wf_served *s, enum weft_status status, const char *text);

/* The same before anything was done for it. */
void wf_reply_refuse(struct wf_served *s, enum weft_status status, const char *text);

/* Its message and its text, if it has any, are given up. */
void wf_reply_drop(struct wf_served *s);

/* Of its stream: all that was written before the answer has been said, or will not be. */
void wf_reply_flushed(struct wf_stream *stream);
void wf_reply_broken(struct wf_stream *stream, const struct wf_error *e);

/* Of what was written before it something did not leave: an answer that is posted is a failure now. */
void wf_reply_unsaid(struct wf_stream *stream, const struct wf_error *e);

#endif
