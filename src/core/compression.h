/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compression: how users ask for the compression of messages.
 */
#ifndef WF_CORE_COMPRESSION_H
#define WF_CORE_COMPRESSION_H

#include <weft/weft.h>

/* Check @compression.  -EINVAL: recorded. */
int wf_compression_check(enum weft_compression compression);

#endif
