/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hooks of server calls: what follows when the rpc floor reports on a call that is served.
 *
 * Threads: owner.
 */
#ifndef WF_CORE_SERVER_HOOKS_H
#define WF_CORE_SERVER_HOOKS_H

#include "rpc/server_call.h"

/* State of a call that the handler of a served call, its parent, began, and that ends with it. */
struct wf_server_hooks_child {
	bool is_child;
	/* under the node's lock */
	struct wf_list node;      /* in parent->children */
	struct wf_server_call *parent; /* NULL: the parent is over */
};

/* Cancel the calls that were begun for @served, which is given up. */
void wf_server_hooks_given_up(struct wf_server_call *served);
/* Detach the calls that were begun for @served, which goes. */
void wf_server_hooks_gone(struct wf_server_call *served);

/* Begin the attachments of the reply of @served, which is posted. */
void wf_server_hooks_answered(struct wf_server_call *served);

#endif
