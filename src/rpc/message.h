/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of peers: unpacked by protobuf-c, but none that would bury it, for it descends
 * as deep as a message says.
 *
 * Pure, but for the memory of what it unpacks.
 */
#ifndef WF_RPC_MESSAGE_H
#define WF_RPC_MESSAGE_H

#include <protobuf-c/protobuf-c.h>
#include "util/base.h"

#define WF_MESSAGE_DEPTH_MAX 100 /* of messages in messages, as in other protobufs */

/* For protobuf_c_message_free_unpacked().  NULL: it is no such message, too deep, or there is no memory. */
ProtobufCMessage *wf_message_unpack(const ProtobufCMessageDescriptor *descriptor,
				    const uint8_t *bytes, size_t count);

#endif
