/* SPDX-License-Identifier: BSD-2-Clause */
/* A key file for the nodes of a simulation. */
#ifndef WF_SIM_KEYS_H
#define WF_SIM_KEYS_H

#include "util/base.h"

/* Have nodes opened from now on prove themselves by one key, or, unless @on, by nothing. */
void wf_keys_use(bool on);

#endif
