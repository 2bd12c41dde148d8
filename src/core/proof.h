/* SPDX-License-Identifier: BSD-2-Clause */
/* Proof: the credentials of a node, as its options name them and its security needs them. */
#ifndef WF_CORE_PROOF_H
#define WF_CORE_PROOF_H

#include "secure/credentials.h"
#include "util/options.h"

/*
 * Read the credentials that @options name, and nothing else will do then; returns a reference.
 * NULL: none are named.  -EINVAL, -EACCES, -ENOTSUP, ...: recorded.
 */
int wf_proof_open(const struct wf_options *options, struct wf_credentials **credentials);

#endif
