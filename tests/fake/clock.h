/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Virtual time, which stands still until a test moves it.  Linking this file
 * replaces util/clock.
 */
#ifndef WF_FAKE_CLOCK_H
#define WF_FAKE_CLOCK_H

#include "util/clock.h"

/* Move the clock to @ns; never back. */
void wf_fake_clock_set(uint64_t ns);

/* Reset to the start of the program; nothing may be there that has looked at the clock. */
void wf_fake_clock_reset(void);

#endif
