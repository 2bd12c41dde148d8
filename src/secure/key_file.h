/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A key file: 32 random bytes that the nodes of a cluster share, and nobody else reads.
 *
 * Threads: any.
 */
#ifndef WF_KEY_FILE_H
#define WF_KEY_FILE_H

#include "util/error.h"

#define WF_KEY_FILE_BYTES 32

/*
 * Read the key in @path.  -EACCES: it belongs to another user, or others may read or write it;
 * -EINVAL: it is no file of 32 bytes; -ENOENT, ...
 */
int wf_key_file_read(const char *path, uint8_t key[WF_KEY_FILE_BYTES], struct wf_error *e);

/* Make @path, which is not there yet, with a new key, readable by its owner alone. */
int wf_key_file_make(const char *path, struct wf_error *e);

#endif
