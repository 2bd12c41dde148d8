/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rights: what the peer of a link may do, by its identity, where the node has an access control
 * list (WEFT_ALLOW).
 *
 * Threads: owner.
 */
#ifndef WF_RIGHTS_H
#define WF_RIGHTS_H

#include "link/link.h"
#include "secure/acl.h"

/* Look @act up in the list of the node, which has one; see wf_rights_check(). */
int wf_rights_look_up(const struct wf_link *link, enum wf_acl_act act, const void *name,
		      size_t bytes, struct wf_error *e);

/*
 * May the peer of @link do @act with what @name names?  -EACCES, or -EKEYREJECTED where the peer
 * has no identity: it may not, and that is counted, and said in the log once a second at most.
 */
static inline int wf_rights_check(const struct wf_link *link, enum wf_acl_act act,
				  const void *name, size_t bytes, struct wf_error *e)
{
	return link->engine->acl ? wf_rights_look_up(link, act, name, bytes, e) : 0;
}

/* As wf_rights_check(), of what the peer has not asked for now: it is not counted, nor told. */
bool wf_rights_hold(const struct wf_link *link, enum wf_acl_act act, const void *name,
		    size_t bytes);

/* May the peer of @link call @method of @service?  As wf_rights_check(). */
int wf_rights_check_call(const struct wf_link *link, const void *service, size_t service_bytes,
			 const void *method, size_t method_bytes, struct wf_error *e);

#endif
