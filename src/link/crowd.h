/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The crowd before a door: connections that are not trusted yet, counted by source address, so that
 * one source can't keep others out.
 *
 * A source is an IPv4 address or an IPv6 network of 64 bits, known by a number that is drawn from a
 * secret, so that nobody can choose to share another's; there are fewer numbers than sources, and
 * so the table is fixed.  Loopback is one host, and has no limit of its rate.
 *
 * Threads: owner.
 */
#ifndef WF_CROWD_H
#define WF_CROWD_H

#include "util/base.h"

#define WF_CROWD_SOURCES 1024

/* Rate limit of a source: 200 workers that redial come at once; neither figure is tuned yet. */
#define WF_CROWD_BURST 256
#define WF_CROWD_PER_SECOND 128

struct wf_crowd {
	uint64_t key[2];
	struct {
		uint32_t count;   /* connections of the source that are here */
		uint32_t credit;  /* connections that may still come at once */
		uint64_t filled_ns;
	} sources[WF_CROWD_SOURCES];
};

void wf_crowd_init(struct wf_crowd *c);

/* Returns the number of the source of @from, which is host:port or [host]:port. */
uint32_t wf_crowd_source(const struct wf_crowd *c, const char *from);

/* May one more connection come from @source?  Counts it. */
bool wf_crowd_admits(struct wf_crowd *c, uint32_t source, const char *from, uint64_t now_ns);

#endif
