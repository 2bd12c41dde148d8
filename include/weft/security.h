/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys, by which nodes prove themselves to each other: weft_security(7).
 */
#ifndef WEFT_SECURITY_H
#define WEFT_SECURITY_H

#include <weft/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Make @path, which must not be there yet: a file of 32 random bytes that its owner alone may read,
 * for WEFT_KEY_FILE.  -EEXIST, -ENOENT, -EACCES, ...: nothing was made.  Threads: any.
 */
WEFT_API int weft_key_new(const char *path);

#ifdef __cplusplus
}
#endif

#endif
