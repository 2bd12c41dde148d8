/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Virtual time: it stands still until a test moves it.  Linking this file
 * replaces util/clock.
 */
#ifndef WF_FAKE_CLOCK_H
#define WF_FAKE_CLOCK_H

#include "util/clock.h"

/* Move to @ns; never back. */
void wf_fake_clock_set(uint64_t ns);

/* As at the start of the program; nothing may be there that has looked at it. */
void wf_fake_clock_reset(void);

#endif
