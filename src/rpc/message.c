/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/message.h"

/* How a field goes on the wire. */
enum { VARINT, EIGHT_BYTES, COUNTED, GROUP, GROUP_END, FOUR_BYTES };

struct reader {
	const uint8_t *at, *end;
};

/* false: they end before it does, or it is no number. */
static bool take_varint(struct reader *r, uint64_t *value)
{
	*value = 0;
	for (unsigned shift = 0; shift < 64 && r->at < r->end; shift += 7) {
		uint8_t byte = *r->at++;

		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static bool skip(struct reader *r, uint64_t count)
{
	if (count > (uint64_t)(r->end - r->at))
		return false;
	r->at += count;
	return true;
}

/* The type of the messages in the field of that number; NULL: it has none. */
static const ProtobufCMessageDescriptor *type_of(const ProtobufCMessageDescriptor *d, uint64_t number)
{
	for (unsigned i = 0; i < d->n_fields; i++)
		if (d->fields[i].id == number && d->fields[i].type == PROTOBUF_C_TYPE_MESSAGE)
			return d->fields[i].descriptor;
	return NULL;
}

static bool has_messages(const ProtobufCMessageDescriptor *d)
{
	for (unsigned i = 0; i < d->n_fields; i++)
		if (d->fields[i].type == PROTOBUF_C_TYPE_MESSAGE)
			return true;
	return false;
}

/* Is it no deeper than @left?  What makes no sense is for protobuf-c to refuse, which stops there. */
static bool is_shallow(const ProtobufCMessageDescriptor *d, struct reader r, unsigned left)
{
	const ProtobufCMessageDescriptor *inner;
	uint64_t tag, count;

	if (!has_messages(d))
		return true;
	while (r.at < r.end && take_varint(&r, &tag)) {
		switch (tag & 7) {
		case VARINT:
			if (!take_varint(&r, &count))
				return true;
			break;
		case EIGHT_BYTES:
		case FOUR_BYTES:
			if (!skip(&r, (tag & 7) == EIGHT_BYTES ? 8 : 4))
				return true;
			break;
		case COUNTED:
			if (!take_varint(&r, &count) || count > (uint64_t)(r.end - r.at))
				return true;
			inner = type_of(d, tag >> 3);
			if (inner && (!left || !is_shallow(inner, (struct reader){ r.at, r.at + count },
							   left - 1)))
				return false;
			r.at += count;
			break;
		default:
			return true;
		}
	}
	return true;
}

ProtobufCMessage *wf_message_unpack(const ProtobufCMessageDescriptor *descriptor,
				    const uint8_t *bytes, size_t count)
{
	if (!is_shallow(descriptor, (struct reader){ bytes, bytes + count }, WF_MESSAGE_DEPTH_MAX))
		return NULL;
	return protobuf_c_message_unpack(descriptor, NULL, count, bytes);
}
