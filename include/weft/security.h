/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys, by which nodes prove themselves to each other: weft_security(7).
 */
#ifndef WEFT_SECURITY_H
#define WEFT_SECURITY_H

#include <weft/base.h>
#include <weft/node.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Make @path, which must not be there yet: a file of 32 random bytes that its owner alone may read,
 * for WEFT_KEY_FILE.  -EEXIST, -ENOENT, -EACCES, ...: nothing was made.  Threads: any.
 */
WEFT_API int weft_key_new(const char *path);

#define WEFT_IDENTITY_BYTES 256 /* the longest identity, with its end */

/*
 * Copy to @identity, of @bytes, what @peer has proven to be: "key:" and 16 digits, which all who
 * have the node's key file are; a URI, or else a DNS name, of its certificate; "" where nothing was
 * proven, or its certificate has no name.  A peer that has gone and come back may be another one
 * then.  -ENOTCONN: the peer was not met yet.  -ENOSPC: there is not room enough.  Threads: any,
 * callback.
 */
WEFT_API int weft_peer_identity(struct weft_peer *peer, char *identity, size_t bytes);

/*
 * Read key file or certificates, and WEFT_ALLOW, anew, as the node does by itself within a second
 * of a change.  What comes after the return is judged by what is new, but a bit later inside a
 * callback, and in a manual node that another thread drives.  Calls, tensors and windows go on: see
 * weft_security(7), "New keys".  -ETIMEDOUT: @node has what is new, and a worker that callbacks
 * have kept busy for 5 s goes by it only when they have returned.  Another error: @node keeps what
 * it has; weft_error() names the file.  -ENOENT: the node has none.  Threads: any, callback.
 */
WEFT_API int weft_node_rekey(struct weft_node *node);

#ifdef __cplusplus
}
#endif

#endif
