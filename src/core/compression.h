/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compression: of messages, as users ask for it.
 */
#ifndef WF_CORE_COMPRESSION_H
#define WF_CORE_COMPRESSION_H

#include <weft/weft.h>

/* -EINVAL: recorded. */
int wf_compression_check(enum weft_compression compression);

#endif
