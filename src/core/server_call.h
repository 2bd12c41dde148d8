/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Server call: what the rpc floor tells of a call that is served.
 *
 * Threads: owner.
 */
#ifndef WF_CORE_SERVER_CALL_H
#define WF_CORE_SERVER_CALL_H

#include "rpc/served.h"

/* Of a call that the handler of another one has begun, and that ends with that one. */
struct wf_server_call_child {
	bool is_child;
	/* under the node's lock */
	struct wf_list node;      /* in the children of: */
	struct wf_served *parent; /* NULL: it is over */
};

/* Calls that were begun for one that is served: it is given up, and so are they; or it goes, and they stand alone. */
void wf_server_call_given_up(struct wf_served *served);
void wf_server_call_gone(struct wf_served *served);

/* Its reply is posted: what goes beside that begins. */
void wf_server_call_answered(struct wf_served *served);

#endif
