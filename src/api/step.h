/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Step: the end of a step, by this node or by a peer.
 */
#ifndef WF_API_STEP_H
#define WF_API_STEP_H

#include "tensor/ending.h"

int wf_step_relay(void *desk, const struct wf_step *step);

#endif
