/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/eager_credit.h"
#include "link/link.h"
#include "link/internal.h"

/* Returns the credit beside tensors that are held, which may be of an earlier life. */
static uint64_t left(const struct wf_link *link)
{
	uint64_t most = link->engine->options.unexpected_bytes;

	return most - WF_MIN(link->eager_credit.held, most);
}

void wf_eager_credit_begin(struct wf_link *link)
{
	link->eager_credit.total = left(link);
}

bool wf_eager_credit_take(struct wf_link *link, uint64_t bytes)
{
	link = wf_link_real(link);
	if (link->eager_credit.granted - link->eager_credit.spent < bytes)
		return false;
	link->eager_credit.spent += bytes;
	return true;
}

void wf_eager_credit_untake(struct wf_link *link, uint64_t bytes)
{
	wf_link_real(link)->eager_credit.spent -= bytes;
}

bool wf_eager_credit_use(struct wf_link *link, uint64_t bytes)
{
	if (link->eager_credit.total - link->eager_credit.used < bytes)
		return false;
	link->eager_credit.used += bytes;
	link->eager_credit.held += bytes;
	return true;
}

void wf_eager_credit_unuse(struct wf_link *link, uint64_t bytes)
{
	link->eager_credit.used -= bytes;
	link->eager_credit.held -= bytes;
}

void wf_eager_credit_give(struct wf_link *link, uint64_t bytes)
{
	struct wf_engine *engine = link->engine;

	link = wf_link_real(link);
	link->eager_credit.held -= bytes;
	link->eager_credit.total =
		WF_MAX(link->eager_credit.total, link->eager_credit.used + left(link));
	/*
	 * The next frame tells the total; a frame of its own only when half of it would be unknown
	 * to the peer.
	 */
	if (link->state == WF_LINK_UP && link->eager_credit.total - link->eager_credit.told >
						 engine->options.unexpected_bytes / 2)
		wf_link_mark(link);
}
