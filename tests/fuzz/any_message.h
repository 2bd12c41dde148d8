/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message of any type, as protobuf-c has it.
 */
#ifndef ANY_MESSAGE_H
#define ANY_MESSAGE_H

#include <protobuf-c/protobuf-c.h>
#include "util/bytes.h"

/* As it goes on the wire; for free(). */
uint8_t *any_message_pack(const ProtobufCMessage *message, size_t *count);

/* As a peer's that is not compressed; NULL: it does not unpack. */
ProtobufCMessage *any_message_unpack(const ProtobufCMessageDescriptor *type, const uint8_t *bytes,
				     size_t count);

/*
 * Does it pack as a message that unpacks, and then packs the same?  One with unknown fields
 * may not: of those protobuf-c takes some, of number 0, that it refuses as it packs them itself.
 */
bool any_message_lasts(const ProtobufCMessage *message);

struct any_look {
	unsigned depth; /* how many messages lie in one another below it */
	bool unknown;   /* it or one below has fields that its type has not */
};

struct any_look any_message_look(const ProtobufCMessage *message);

/* A kinds.Kinds with fields of many kinds, to begin with. */
void any_message_put_kinds(struct wf_writer *w);

#endif
