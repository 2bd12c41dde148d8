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
	unsigned chance;   /* chance of each kind, out of 100 */
	bool harmless;     /* only faults that may cost nobody a peer */
	bool same_host;    /* nothing can come between two nodes */
	bool checksum;     /* wrong bytes are noticed */
	bool lanes;        /* the world has two networks */
	struct wf_tally *tally;
	void (*restarted)(unsigned number); /* told of a node that is there again */
};

void wf_faults_plan(const struct wf_faults_config *config);

/* Plan that a node drains, or a network fails, in some runs: drawn after all else. */
void wf_faults_plan_drain(void);
void wf_faults_plan_lane(void);
/* Plan that the nodes, which have a key file, get another one, in some runs: drawn after all else. */
void wf_faults_plan_rekey(void);
/* Plan that somebody changes frames, which are sealed, in some runs: drawn after all else. */
void wf_faults_plan_tamper(void);

/* Does the plan have faults of that kind? */
bool wf_faults_has(enum wf_fault fault);

/* Has a node kept an old key, for lack of memory, that others refuse after its grace? */
bool wf_faults_keys_differ(void);

/* Begin and end faults that are due.  Returns when the next is. */
uint64_t wf_faults_run(void);

/* End all faults that last. */
void wf_faults_heal(void);

/* Count a fault that has struck @leg or @op alone, or @node and @other. */
struct wf_leg;
void wf_faults_strike(enum wf_fault fault, unsigned node, unsigned other);
void wf_faults_strike_leg(enum wf_fault fault, const struct wf_leg *leg);
void wf_faults_strike_op(enum wf_fault fault, const struct weft_op *op);

/* May nothing be begun on node @number now? */
bool wf_faults_is_away(unsigned number);
/* May nothing be begun on node @number ever again? */
bool wf_faults_is_gone(unsigned number);

/* Assert that node @number did not drain yet when @f, a call to it, began. */
void wf_faults_assert_serves(unsigned number, const struct wf_flight *f);
bool wf_faults_is_draining(unsigned number);

/* Times that node @number has begun anew. */
unsigned wf_faults_life(unsigned number);
/* When node @number last stood still. */
uint64_t wf_faults_thawed_ns(unsigned number);

#endif
