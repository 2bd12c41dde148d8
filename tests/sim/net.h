/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The net between simulated nodes, in one process and on virtual time.
 *
 * Linking net.c replaces link/socket, host, doorbell and remote doorbell.  An address is
 * a text that some node listens on, and names that node here; a node that
 * only dials has none.  Streams behave as TCP does: in order, in pieces of any
 * size, with an end or a reset.  Every delay comes from a seeded function.
 * Descriptors are real, but nothing ever happens on them, a death apart: poll
 * the nodes and move the clock to wf_net_next_ns.
 *
 * A program has one net.  Bytes that were sent to a node that is gone are thrown away.
 */
#ifndef WF_SIM_NET_H
#define WF_SIM_NET_H

#include "util/base.h"

/* Another name for the host where nodes listen, which is 127.0.0.1 or @host. */
#define WF_NET_ALIAS "alias"
void wf_net_set_host(const char *host);

/* Forget faults and settings, and draw from @seed.  No set, socket or host may be open. */
void wf_net_reset(uint64_t seed);

/*
 * The next moment at which something arrives, after now; UINT64_MAX: none.  Bytes
 * that are here already and were not read do not count, so move the clock in
 * bounded steps, as a worker bounds its sleep.
 */
uint64_t wf_net_next_ns(void);

/* Set the time that a piece is under way, from 64 random bits.  Default: 20 to 120 us. */
void wf_net_set_delay(uint64_t (*delay_ns)(void *ctx, uint64_t random), void *ctx);

/* Refuse dials to @address although somebody listens. */
void wf_net_refuse(const char *address, bool on);

/* Ask @tamper about all bytes that are written from now on, which it may change; NULL: nobody. */
void wf_net_set_tamper(void (*tamper)(uint8_t *bytes, size_t count));

/* Reset every stream between the two now; later dials succeed. */
void wf_net_cut(const char *a, const char *b);

/* Reset only @who's ends of the streams with @whom, who hears of it by the next write. */
void wf_net_forget(const char *who, const char *whom);

/*
 * Let nothing get from @from to @to any more, and tell nobody.  Afterwards bytes that
 * were sent meanwhile arrive, as TCP sends them again.  A dial that gets no answer
 * for three seconds fails with -ETIMEDOUT.
 */
void wf_net_silence(const char *from, const char *to, bool on);

/*
 * Kill the process at @address: its streams end, its port refuses.  The node is not
 * to be polled again; closing it is harmless.
 */
void wf_net_kill(const char *address);

/* Let nodes opened from now on share one host, or stand alone behind a shut gate (default). */
void wf_net_set_same_host(bool on);

/* Let the next @count dials of side doors fail, as without a descriptor. */
void wf_net_starve(unsigned count);

/* Kill the process of this number, which is that of the nodes opened so far. */
void wf_net_kill_process(uint64_t pid);

#endif
