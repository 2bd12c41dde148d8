/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages: packed and unpacked by protobuf-c, and made shorter by zstd on their way, if
 * that is asked for and helps.  None of a peer's is unpacked that would bury protobuf-c,
 * which descends as deep as a message says.
 *
 * Threads: any, but for what the pool's memory asks for.
 */
#ifndef WF_RPC_MESSAGE_H
#define WF_RPC_MESSAGE_H

#include <protobuf-c/protobuf-c.h>
#include <weft/rpc.h>
#include "memory/buffer.h"
#include "util/error.h"
#include "util/options.h"

#define WF_MESSAGE_DEPTH_MAX 100 /* of messages in messages, as in other protobufs */

/* Is a message to be compressed, as @wanted and configured, for who understands what is @understood? */
bool wf_message_compresses(const struct wf_options *options, uint32_t understood,
			   enum weft_compression wanted);

/* What a message is packed as: @bytes of it, and how they are to be read. */
struct wf_packed {
	struct wf_buffer buffer; /* empty, if there are no bytes */
	size_t bytes;
	bool compressed;
};

/*
 * Pack @message of @count bytes into memory of its own, maybe in @pool; @compress it, if that
 * makes it shorter.  -ENOMEM.
 */
int wf_message_pack(const ProtobufCMessage *message, size_t count, bool compress,
		    struct wf_pool *pool, struct wf_packed *packed);

/*
 * For protobuf_c_message_free_unpacked().  -EBADMSG: it is no such message, or too deep.
 * -ENOBUFS: it is compressed, and longer than @most.  -ENOMEM.  @e: a sentence for both sides.
 */
int wf_message_unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *bytes,
		      size_t count, bool compressed, uint64_t most, ProtobufCMessage **message,
		      struct wf_error *e);

#endif
