/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A script that is run for every call that can fail in it: counted once, then
 * in a process of its own for each number, with that call alone failing and with
 * a row of them.  Memory or descriptors that are left behind are a failure.
 */
#ifndef WF_SIM_NTH_SCRIPT_H
#define WF_SIM_NTH_SCRIPT_H

#include "tests/sim/nth.h"

struct wf_nth_script {
	const char *program;           /* program as a failure prints it */
	const char *const *variants;   /* names, NULL at the end */
	uint64_t rows[4];              /* counts of calls that fail, one run each; 0 at the end */
	void (*run)(unsigned variant); /* asserts that all goes well in the end */
};

/*
 * Run @script for each call of @kind, or, with NTH_STRIDE=K in the environment, for every
 * K-th (NTH_FIRST says which one of the first K begins).  Asserts that no run fails.
 */
void wf_nth_each(const struct wf_nth_script *script, unsigned variant, enum wf_nth_kind kind);

/* Run @script once, as PROGRAM VARIANT KIND N COUNT CODE says. */
void wf_nth_once(const struct wf_nth_script *script, char **argv);

/* Names of WF_WORLD_CONNECTED and WF_WORLD_SHARED, the variants of most scripts. */
extern const char *const wf_nth_shapes[];

/*
 * Be the program of @script, whose variants are wf_nth_shapes: its tests, or the one run that @argv
 * asks for.  Returns the exit status.
 */
int wf_nth_on_rails(const struct wf_nth_script *script, int argc, char **argv);

/* Is this a process for one number?  Then a test that is not its own has nothing to do. */
bool wf_nth_is_child(void);

/* Calls that fail in a row in this run. */
uint64_t wf_nth_row(void);

/* Make @attempt until it goes well: failures may spoil a few, but not all. */
void wf_nth_try(bool (*attempt)(void));

/*
 * Has a call of weft's failed with @rc, as one should, and is to be repeated?
 * Asserts that the failure has a sentence, and does not come for ever.
 */
bool wf_nth_again(int rc);

#endif
