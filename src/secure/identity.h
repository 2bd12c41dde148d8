/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identities in certificates: the names (subjectAltName) that an authority has signed.
 *
 * Threads: any.
 */
#ifndef WF_IDENTITY_H
#define WF_IDENTITY_H

#include "util/base.h"

struct x509_st; /* OpenSSL's X509 */

#define WF_IDENTITY_BYTES 256 /* a SPIFFE id may have 2048; longer ones than this are no identity */

/*
 * Write the identity of @cert: its first URI (as SPIFFE has it), else its first DNS name.
 * "": it has neither.
 */
void wf_identity_of(const struct x509_st *cert, char identity[WF_IDENTITY_BYTES]);

/*
 * Are @a and @b one identity?  All who prove themselves by a key file are: a key may have taken the
 * place of another.
 */
bool wf_identity_is_same(const char *a, const char *b);

/* Does a URI or DNS name of @cert match one of the comma list @patterns? */
bool wf_identity_is_listed(const struct x509_st *cert, const char *patterns);

#endif
