/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts back the signal handlers that libfabric, its providers and the libraries
 * below them install behind the program's back, while they are loaded or used.
 *
 * Between save and restore a change of a handler is libfabric's doing if the new
 * one is the default, or ignores, or is code that came with libfabric.  The
 * program's own code is not, so a handler that another thread of the program
 * installs meanwhile stays.
 *
 * Threads: any.  Several may be between save and restore at once.
 */
#ifndef WF_SIGNALS_H
#define WF_SIGNALS_H

#include "util/base.h"

/* Remember the handlers of all signals. */
void wf_signals_save(void);

/* Put back the handlers that libfabric has changed since the save.  Call once for
 * each save, in the same thread. */
void wf_signals_restore(void);

#endif
