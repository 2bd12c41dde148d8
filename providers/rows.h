/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rows by their names, for the table in providers.c alone.
 *
 * Threads: any; rows are constant.
 */
#ifndef WF_PROVIDER_ROWS_H
#define WF_PROVIDER_ROWS_H

#include "providers/provider.h"

extern const struct wf_provider wf_provider_shm;
extern const struct wf_provider wf_provider_verbs;
extern const struct wf_provider wf_provider_efa;
extern const struct wf_provider wf_provider_tcp;
extern const struct wf_provider wf_provider_net;
extern const struct wf_provider wf_provider_sockets;
extern const struct wf_provider wf_provider_rxm;
extern const struct wf_provider wf_provider_udp;
extern const struct wf_provider wf_provider_mrail;
extern const struct wf_provider wf_provider_generic;

#endif
