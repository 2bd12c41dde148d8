/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nonces of a simulated run: the linker has every seal's making and use come by here (wrap_seals in
 * tests/local.am), and no number may be used twice with one key, whoever has made it, and however
 * often.  Asserts where one is.
 */
#ifndef WF_SIM_NONCES_H
#define WF_SIM_NONCES_H

#include <stdint.h>

/* Forget the keys of the run before. */
void wf_nonces_reset(void);

/* Count of numbers that were used since, over all keys. */
uint64_t wf_nonces_used(void);

#endif
