/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of any type as JSON, by protobuf's own mapping: names as they are written in the
 * definition, 64-bit numbers as strings, bytes in base64, values of enumerations by name.
 *
 * Threads: owner.
 */
#ifndef TOOL_JSON_H
#define TOOL_JSON_H

#include <cjson/cJSON.h>
#include <protobuf-c/protobuf-c.h>

#define JSON_WRONG_BYTES 200

/* Convert @message; returns owned, for cJSON_Delete().  NULL: no memory. */
cJSON *json_of(const ProtobufCMessage *message);

/*
 * Read a message from @json; returns owned, for protobuf_c_message_free_unpacked().  NULL: @wrong
 * says what is wrong with @json.
 */
ProtobufCMessage *json_read(const ProtobufCMessageDescriptor *descriptor, const cJSON *json,
			    char wrong[JSON_WRONG_BYTES]);

#endif
