/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Server call: what follows when the rpc floor reports on a call that is served.
 *
 * Threads: owner.
 */
#ifndef WF_CORE_SERVER_CALL_H
#define WF_CORE_SERVER_CALL_H

#include "rpc/served.h"

/* State of a call that the handler of a served call, its parent, began, and that ends with it. */
struct wf_server_call_child {
	bool is_child;
	/* under the node's lock */
	struct wf_list node;      /* in parent->children */
	struct wf_served *parent; /* NULL: the parent is over */
};

/* Cancel the calls that were begun for @served, which is given up. */
void wf_server_call_given_up(struct wf_served *served);
/* Detach the calls that were begun for @served, which goes. */
void wf_server_call_gone(struct wf_served *served);

/* Begin the attachments of the reply of @served, which is posted. */
void wf_server_call_answered(struct wf_served *served);

#endif
