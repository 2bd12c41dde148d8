/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Credentials: the proof that a node has, and the one that it demands of peers.  A key file, or a
 * certificate with its private key and the authorities that it trusts.
 *
 * Credentials never change, but that they forget; all workers of a node share them, and each
 * session holds a reference.
 *
 * Threads: any.
 */
#ifndef WF_CREDENTIALS_H
#define WF_CREDENTIALS_H

#include "util/error.h"

struct wf_credentials;

/* Paths; "" and NULL: not given.  Either @key_file alone, or @cert, @key and @ca together. */
struct wf_credentials_files {
	const char *key_file; /* see key_file.h */
	const char *cert;     /* PEM: our certificate, and those between it and an authority */
	const char *key;      /* PEM: its private key, readable by its owner alone */
	const char *ca;       /* PEM: authorities, and their revocation lists if there are any */
	/*
	 * Comma list of the identities that peers may have, in which '*' stands for any text; a
	 * list takes the place of the check that a peer has the name by which it was dialled.
	 */
	const char *peers;
};

/*
 * Read the files; returns a reference.  -EINVAL: too few or too many are named, or one can't be
 * used; -EACCES; -ENOENT; -ENOMEM.  The sentence names the file.
 */
int wf_credentials_open(const struct wf_credentials_files *files,
			struct wf_credentials **credentials, struct wf_error *e);

/*
 * Let the key file of @older do until @until_ns, beside that of @credentials, which nobody uses
 * yet; or what did beside @older, if the key is the same.  Are there two different keys?
 */
bool wf_credentials_succeed(struct wf_credentials *credentials, const struct wf_credentials *older,
			    uint64_t until_ns);

/* Are they a key file's?  NULL are none. */
bool wf_credentials_have_key(const struct wf_credentials *credentials);

/* Does an older key do, now? */
bool wf_credentials_have_older(const struct wf_credentials *credentials);

/* Wipe the older key, which does no more. */
void wf_credentials_forget_older(struct wf_credentials *credentials);

/* Returns the identity that peers see: "key:" and digits, or a name of the certificate. */
const char *wf_credentials_identity(const struct wf_credentials *credentials);

/* Take a reference. */
struct wf_credentials *wf_credentials_get(struct wf_credentials *credentials);

/* Give back a reference; accepts NULL.  The last one wipes and frees. */
void wf_credentials_put(struct wf_credentials *credentials);

#endif
