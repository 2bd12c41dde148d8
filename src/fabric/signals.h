/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts back the signal handlers that libfabric and the libraries below it
 * install behind the program's back.
 *
 * Threads: setup; handlers belong to the process, and a program that changes
 * its own in another thread meanwhile may see them put back.
 */
#ifndef WF_SIGNALS_H
#define WF_SIGNALS_H

#include <signal.h>
#include "util/base.h"

#define WF_SIGNALS_COUNT 6

struct wf_signals {
	struct sigaction saved[WF_SIGNALS_COUNT];
};

void wf_signals_save(struct wf_signals *s);
void wf_signals_restore(const struct wf_signals *s);

/*
 * Handlers that came while libfabric was being loaded, before any code of
 * ours: what stood there before can't be known, so the default is put back.
 */
void wf_signals_clear(void);

#endif
