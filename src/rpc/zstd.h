/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes made shorter, and long again, by zstd.
 *
 * Pure, but for the memory that zstd works in.  Threads: any.
 */
#ifndef WF_RPC_ZSTD_H
#define WF_RPC_ZSTD_H

#include "util/base.h"

/*
 * @count @bytes as one frame in @room bytes at @into; how long it is.  0: it does not get
 * any shorter than @room, or there is no memory.
 */
size_t wf_zstd_pack(const void *bytes, size_t count, void *into, size_t room);

/*
 * The content of a frame, allocated, and how long it is.  -EBADMSG: it is no frame that
 * says how long its content is, or it is damaged.  -EMSGSIZE: that is above @most.  -ENOMEM.
 */
int wf_zstd_unpack(const void *frame, size_t count, uint64_t most, void **bytes, size_t *length);

#endif
