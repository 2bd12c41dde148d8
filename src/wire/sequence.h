/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order of a link's data frames: what we have sent and the peer has
 * confirmed, and what we expect next.  Totals that wrap.
 *
 * Pure: no I/O, no allocation, no clock.
 */
#ifndef WF_SEQUENCE_H
#define WF_SEQUENCE_H

#include "util/base.h"

struct wf_sequence {
	uint32_t sent;     /* frames we have ever numbered; the next gets this number */
	uint32_t acked;    /* of those, confirmed by the peer */
	uint32_t received; /* frames of the peer delivered in order */
};

/* The number of the next frame; counts it as sent. */
uint32_t wf_sequence_next(struct wf_sequence *s);

/*
 * The peer says it has received @ack frames.  Returns how many frames that
 * confirms anew (0 if it is old).  -EPROTO: more than we have sent.
 */
int wf_sequence_ack(struct wf_sequence *s, uint32_t ack);

/*
 * Frame @seq of the peer has come.  0: it is the next, and counted.
 * -EALREADY: we have had it.  -ENODATA: one before it is missing.
 */
int wf_sequence_receive(struct wf_sequence *s, uint32_t seq);

#endif
