/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Credits: how many receive slots the peer has promised us.
 *
 * Both counters are running totals that wrap, so a grant that arrives twice
 * is harmless.  Pure: no I/O, no allocation, no clock.
 */
#ifndef WF_CREDIT_H
#define WF_CREDIT_H

#include "util/base.h"

struct wf_credit {
	uint32_t granted; /* slots the peer has ever granted */
	uint32_t spent;   /* slots we have ever used or given back */
};

static inline uint32_t wf_credit_left(const struct wf_credit *c)
{
	return c->granted - c->spent;
}

/* Use @count slots.  -EAGAIN: too few left, nothing changed. */
int wf_credit_spend(struct wf_credit *c, uint32_t count);

/*
 * Accept the peer's running total.  -ESTALE: the total is older than ours, of a
 * frame overtaken on the way: nothing changed.  -EPROTO: the peer grants more than
 * @window slots at once.
 */
int wf_credit_update(struct wf_credit *c, uint32_t granted, uint32_t window);

/* Give up to @count unused slots back; returns how many. */
uint32_t wf_credit_return(struct wf_credit *c, uint32_t count);

#endif
