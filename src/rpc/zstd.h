/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compression by zstd.
 *
 * Pure, but for the memory that zstd works in.  Threads: any.
 */
#ifndef WF_RPC_ZSTD_H
#define WF_RPC_ZSTD_H

#include "util/base.h"

/*
 * Compress @count @bytes as one frame into @room bytes at @into.  Returns its length; 0: the
 * frame is longer than @room, or there is no memory.
 */
size_t wf_zstd_pack(const void *bytes, size_t count, void *into, size_t room);

/*
 * Decompress a frame into *@bytes, allocated, of *@length.  -EBADMSG: the frame is damaged, or
 * does not say how long its content is.  -EMSGSIZE: the content is above @most.  -ENOMEM.
 */
int wf_zstd_unpack(const void *frame, size_t count, uint64_t most, void **bytes, size_t *length);

#endif
