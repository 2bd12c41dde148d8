/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message of any type, as protobuf-c has it.
 */
#ifndef ANY_MESSAGE_H
#define ANY_MESSAGE_H

#include <protobuf-c/protobuf-c.h>
#include "util/bytes.h"

/* Pack @message as it goes on the wire.  Returns owned, for free(). */
uint8_t *any_message_pack(const ProtobufCMessage *message, size_t *count);

/* Unpack a peer's message that is not compressed; NULL: the bytes do not unpack. */
ProtobufCMessage *any_message_unpack(const ProtobufCMessageDescriptor *type, const uint8_t *bytes,
				     size_t count);

/*
 * Does @message pack as a message that unpacks, and then packs the same?  One with unknown
 * fields may not: protobuf-c unpacks unknown fields of number 0, and refuses those it packs.
 */
bool any_message_lasts(const ProtobufCMessage *message);

struct any_look {
	unsigned depth; /* levels of messages below the message */
	bool unknown;   /* the message, or one below, has fields that its type lacks */
};

struct any_look any_message_look(const ProtobufCMessage *message);

/* Put a kinds.Kinds with fields of many kinds, to begin with. */
void any_message_put_kinds(struct wf_bytes_writer *w);

#endif
