/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The net between simulated nodes, in one process and on virtual time.
 *
 * Linking net.c replaces link/socket, host, doorbell and ringer.  An address is
 * a text that some node listens on, and by it nodes are named here; a node that
 * only dials has none.  Streams behave as TCP does: in order, in pieces of any
 * size, with an end or a reset.  Every delay comes from a seeded function.
 * Descriptors are real, but nothing ever happens on them, a death apart: poll
 * the nodes and move the clock to wf_net_next_ns.
 *
 * There is one net.  What was sent to a node that is gone is thrown away.
 */
#ifndef WF_SIM_NET_H
#define WF_SIM_NET_H

#include "util/base.h"

/* Another name for the host where nodes listen, which is 127.0.0.1 unless it is said to be @host. */
#define WF_NET_ALIAS "alias"
void wf_net_set_host(const char *host);

/* Forget faults and settings, and draw from @seed.  No set, socket or host may be open. */
void wf_net_reset(uint64_t seed);

/*
 * The next moment at which something arrives, after now; UINT64_MAX: none.  What
 * is here already and was not read does not count, so move the clock in bounded
 * steps, as a worker bounds its sleep.
 */
uint64_t wf_net_next_ns(void);

/* How long the next piece is under way, from 64 random bits.  Default: 20 to 120 us. */
void wf_net_set_delay(uint64_t (*delay_ns)(void *ctx, uint64_t random), void *ctx);

/* Dials to @address are refused although somebody listens. */
void wf_net_refuse(const char *address, bool on);

/* Ask @tamper about all bytes that are written from now on, which it may change; NULL: nobody. */
void wf_net_set_tamper(void (*tamper)(uint8_t *bytes, size_t count));

/* Reset every stream between the two now; later dials succeed. */
void wf_net_cut(const char *a, const char *b);

/* Reset @who's ends of them alone: word of it is lost, and @whom hears it when it next writes. */
void wf_net_forget(const char *who, const char *whom);

/*
 * Nothing gets from @from to @to any more, and nobody is told.  Afterwards what
 * was sent meanwhile arrives, as TCP sends it again.  A dial that gets no answer
 * for three seconds fails with -ETIMEDOUT.
 */
void wf_net_silence(const char *from, const char *to, bool on);

/*
 * The process at @address dies: its streams end, its port refuses.  It is not to
 * be polled again; closing it is harmless.
 */
void wf_net_kill(const char *address);

/* Nodes opened from now on share one host, or stand alone behind a gate that is shut (default). */
void wf_net_set_same_host(bool on);

/* The process of this number, which is that of the nodes opened so far, is dead. */
void wf_net_kill_process(uint64_t pid);

#endif
