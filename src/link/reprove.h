/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reprove: what peers may show and do has changed, and those that are met show themselves anew.
 *
 * The door of each link closes and is dialled again, as after a failure of the network: operations
 * go on over the rails meanwhile, and a peer that is not proven any more is gone in the time that a
 * redial has.  Then the side that dials has the rail probed anew, whose frames get the keys of that
 * session; they are sent again as after any change of rails.
 *
 * Threads: owner.
 */
#ifndef WF_REPROVE_H
#define WF_REPROVE_H

#include "link/engine.h"

#define WF_REPROVE_LOOK_NS WF_NS_PER_S /* time between two looks of a node at its files */

/*
 * Let @credentials and @acl, of which references are taken, hold for @engine from now on.
 * @reprove: for peers that are met, too, some at a time.
 */
void wf_reprove(struct wf_engine *engine, struct wf_credentials *credentials, struct wf_acl *acl,
		bool reprove);

#endif
