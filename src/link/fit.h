/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fit: which of our rails can meet which of a peer's, which of these pairs is better, and why a
 * rail is not used.
 *
 * Threads: owner.
 */
#ifndef WF_FIT_H
#define WF_FIT_H

#include "link/link.h"

/*
 * Can our rail of @caps meet the peer's @rail?  -EPROTONOSUPPORT, -EHOSTUNREACH: no, and @e says
 * why.
 */
int wf_fit_check(const struct wf_link *link, const struct wf_rail_caps *caps,
		 const struct wf_greet_rail *rail, struct wf_error *e);

/* How many bits have the addresses of our rail number @mine and the peer's @theirs in common? */
unsigned wf_fit_nearness(const struct wf_link *link, uint32_t mine, uint32_t theirs);

/*
 * Returns a rail that both nodes have and that is better than that of @caps; NULL: there is none.
 */
const struct wf_rail_caps *wf_fit_better(const struct wf_link *link,
					 const struct wf_rail_caps *caps);

/* Say, for people, why the rail of @provider does not carry @link, which is up on another rail. */
void wf_fit_why_not(const struct wf_link *link, const char *provider, char *text, size_t bytes);

#endif
