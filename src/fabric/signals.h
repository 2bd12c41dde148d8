/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts back the signal handlers that libfabric, its providers and the libraries
 * below them install behind the program's back, while they are loaded or used.
 *
 * Between save and restore a handler that changes is libfabric's doing if it is
 * the default now, or ignored, or code that came with libfabric.  The program's
 * own code is not, so a handler that another thread of the program installs
 * meanwhile stays.
 *
 * Threads: any.  Several may be between the two at once.
 */
#ifndef WF_SIGNALS_H
#define WF_SIGNALS_H

#include "util/base.h"

/* Remember the handlers of all signals. */
void wf_signals_save(void);

/* Put back those that libfabric has changed since.  Once for each save, in its
 * thread. */
void wf_signals_restore(void);

#endif
