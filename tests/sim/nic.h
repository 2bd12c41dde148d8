/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A NIC of the simulation that reaches the software driver's devices (WF_WORLD_REACHING).
 */
#ifndef WF_SIM_NIC_H
#define WF_SIM_NIC_H

#include "tests/fake/fabric.h"

/* Windows that NICs asked for by an address, and how many of 100 are refused. */
extern unsigned wf_nic_asked, wf_nic_refused;

/* With an odd @seed libfabric takes dma-bufs, where it is built for them; else addresses. */
struct wf_fake wf_nic_fake(uint64_t seed);

#endif
