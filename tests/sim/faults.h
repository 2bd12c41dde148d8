/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The faults of a simulated run: drawn from chance at its start, done when
 * their time comes, and counted as they strike.
 */
#ifndef WF_SIM_FAULTS_H
#define WF_SIM_FAULTS_H

#include "tests/sim/tally.h"
#include "tests/sim/world.h"

struct wf_faults_config {
	unsigned nodes;
	uint64_t from_ns, until_ns;
	unsigned chance;   /* of each kind, out of 100 */
	bool harmless;     /* only what may cost nobody a peer */
	bool same_host;    /* nothing can come between two nodes */
	bool checksum;     /* wrong bytes are noticed */
	bool lanes;        /* there are two networks */
	struct wf_tally *tally;
	void (*restarted)(unsigned number); /* a node is there again */
};

void wf_faults_plan(const struct wf_faults_config *config);

/* In some runs a node drains besides, or a network fails: drawn when all else is. */
void wf_faults_plan_drain(void);
void wf_faults_plan_lane(void);

/* Begin and end what is due; when the next is. */
uint64_t wf_faults_run(void);

/* End all that lasts. */
void wf_faults_heal(void);

/* A fault has struck @leg or @op alone, or @node and @other. */
struct wf_leg;
void wf_faults_strike(enum wf_fault fault, unsigned node, unsigned other);
void wf_faults_strike_leg(enum wf_fault fault, const struct wf_leg *leg);
void wf_faults_strike_op(enum wf_fault fault, const struct weft_op *op);

/* Nothing may be begun on it now; nothing ever again. */
bool wf_faults_is_away(unsigned number);
bool wf_faults_is_gone(unsigned number);

/* It does not drain, or has not since before @f, a call to it, began: asserts. */
void wf_faults_assert_serves(unsigned number, const struct wf_flight *f);
bool wf_faults_is_draining(unsigned number);

/* How often the node has begun anew; when it last stood still. */
unsigned wf_faults_life(unsigned number);
uint64_t wf_faults_thawed_ns(unsigned number);

#endif
