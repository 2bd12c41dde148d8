/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/credit.h"

#include <errno.h>

int wf_credit_spend(struct wf_credit *c, uint32_t count)
{
	if (count > wf_credit_left(c))
		return -EAGAIN;
	c->spent += count;
	return 0;
}

int wf_credit_update(struct wf_credit *c, uint32_t granted, uint32_t window)
{
	/* Totals wrap: a total in the half circle behind ours is older. */
	if (granted - c->granted > INT32_MAX)
		return -ESTALE;
	if (granted - c->spent > window)
		return -EPROTO;
	c->granted = granted;
	return 0;
}

uint32_t wf_credit_return(struct wf_credit *c, uint32_t count)
{
	uint32_t back = WF_MIN(count, wf_credit_left(c));

	c->spent += back;
	return back;
}
