/* SPDX-License-Identifier: BSD-2-Clause */
/* A key file for the nodes of a simulation. */
#ifndef WF_SIM_KEYS_H
#define WF_SIM_KEYS_H

/*
 * Have nodes opened from now on prove themselves by one key, in the mode @security ("keyed" or
 * "sealed"); NULL: by nothing.
 */
void wf_keys_use(const char *security);

/* Put another key into the file, for nodes to read anew. */
void wf_keys_replace(void);

#endif
