/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order of a link's data frames: those that we have sent, those that the peer has
 * confirmed, and the one that we expect next.  All are totals that wrap.
 *
 * Pure: no I/O, no allocation, no clock.
 */
#ifndef WF_SEQUENCE_H
#define WF_SEQUENCE_H

#include "util/base.h"

struct wf_sequence {
	uint32_t sent;     /* frames we have ever numbered; the next gets this number */
	uint32_t acked;    /* frames that the peer has confirmed */
	uint32_t received; /* frames of the peer delivered in order */
};

/* Take the number of the next frame, and count the frame as sent. */
uint32_t wf_sequence_next(struct wf_sequence *s);

/*
 * Note that the peer has received @ack frames.  Returns how many frames that
 * confirms anew (0: @ack is old).  -EPROTO: more than we have sent.
 */
int wf_sequence_ack(struct wf_sequence *s, uint32_t ack);

/*
 * Note that frame @seq of the peer has come.  0: the frame is the next, and counted.
 * -EALREADY: we have had the frame.  -ENODATA: an earlier frame is missing.
 */
int wf_sequence_receive(struct wf_sequence *s, uint32_t seq);

#endif
