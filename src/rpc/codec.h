/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Codec: messages packed and unpacked by protobuf-c, and compressed by zstd on their way, if that
 * is asked for and helps.  A peer's message that nests too deep is not unpacked, for protobuf-c
 * recurses as deep as a message says.
 *
 * Threads: any, but for the pool's memory.
 */
#ifndef WF_CODEC_H
#define WF_CODEC_H

#include <protobuf-c/protobuf-c.h>
#include <weft/rpc.h>
#include "memory/buffer.h"
#include "util/error.h"
#include "util/options.h"

#define WF_CODEC_DEPTH_MAX 100 /* messages nested in messages, as in other protobufs */

/*
 * Returns whether to compress a message, as @wanted and configured, for a peer that has
 * @understood compressions.
 */
bool wf_codec_compresses(const struct wf_options *options, uint32_t understood,
			 enum weft_compression wanted);

/* A packed message. */
struct wf_codec_packed {
	struct wf_buffer buffer; /* empty, if there are no bytes */
	size_t bytes;
	bool compressed;
};

/*
 * Pack @message of @count bytes into memory of its own, maybe in @pool; @compress it, if that
 * makes it shorter.  -ENOMEM.
 */
int wf_codec_pack(const ProtobufCMessage *message, size_t count, bool compress,
		  struct wf_pool *pool, struct wf_codec_packed *packed);

/*
 * Unpack a message, for protobuf_c_message_free_unpacked().  -EBADMSG: the bytes are no such
 * message, or too deep.  -ENOBUFS: decompressed it is longer than @most.  -ENOMEM.  @e: a
 * sentence for both sides.
 */
int wf_codec_unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *bytes,
		    size_t count, bool compressed, uint64_t most, ProtobufCMessage **message,
		    struct wf_error *e);

#endif
