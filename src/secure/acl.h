/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An access control list: what peers may do, by their identity, as a file says (WEFT_ALLOW).
 *
 *     allow IDENTITY calls SERVICE/METHOD ...
 *     allow IDENTITY tensors KEY ...
 *     allow IDENTITY windows get|put ...
 *     allow IDENTITY abort
 *     allow IDENTITY drain
 *     allow IDENTITY all
 *
 * In identities, methods and keys '*' stands for any text.  Whatever no line allows is refused.  A
 * list never changes.
 *
 * Threads: any.
 */
#ifndef WF_ACL_H
#define WF_ACL_H

#include "util/error.h"

struct wf_acl;

#define WF_ACL_FILE_BYTES_MAX (1 * MIB)

/* Acts of a peer, each with what it names. */
enum wf_acl_act {
	WF_ACL_CALL,   /* a call; name: service, '/' and method */
	WF_ACL_TENSOR, /* a tensor sent here; name: key */
	WF_ACL_WINDOW, /* a use of a window; name: "get" or "put" */
	WF_ACL_ABORT,  /* the abort of a step; no name */
	WF_ACL_DRAIN,  /* the word that it takes no more calls; no name */
	WF_ACL_ACTS
};

/*
 * Read the file @path; returns a reference.  -EINVAL: a line that can't be understood, or a file
 * that is too long; -ENOENT, -EACCES, ...; -ENOMEM.  The sentence names file and line.
 */
int wf_acl_read(const char *path, struct wf_acl **acl, struct wf_error *e);

/* Take a reference. */
struct wf_acl *wf_acl_get(struct wf_acl *acl);

/* Give back a reference; accepts NULL.  The last one frees. */
void wf_acl_put(struct wf_acl *acl);

/* May a peer of @identity, which is not "", do @act with what the @bytes at @name name? */
bool wf_acl_allows(const struct wf_acl *acl, const char *identity, enum wf_acl_act act,
		   const char *name, size_t bytes);

#endif
