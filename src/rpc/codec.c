/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/zstd.h"
#include "wire/record.h"

/* Wire types of fields. */
enum { VARINT, EIGHT_BYTES, COUNTED, GROUP, GROUP_END, FOUR_BYTES };

struct reader {
	const uint8_t *at, *end;
};

/* Take a varint.  Returns false: the bytes end in the middle, or it is too long. */
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

/* Returns the type of the messages in the field of that number; NULL: it has none. */
static const ProtobufCMessageDescriptor *type_of(const ProtobufCMessageDescriptor *d,
						 uint64_t number)
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

/*
 * Is the message nested no deeper than @left?  A malformed one is left to protobuf-c, which
 * stops at the same place.
 */
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
			if (inner &&
			    (!left ||
			     !is_shallow(inner, (struct reader){ r.at, r.at + count }, left - 1)))
				return false;
			r.at += count;
			break;
		default:
			return true;
		}
	}
	return true;
}

bool wf_codec_compresses(const struct wf_options *options, uint32_t understood,
			 enum weft_compression wanted)
{
	if (!(understood & WF_COMPRESSION_ZSTD))
		return false;
	if (wanted == WEFT_COMPRESSION_DEFAULT)
		return options->compression[0];
	return wanted == WEFT_ZSTD;
}

/* Shorter messages are not worth the time; not tuned. */
#define COMPRESS_BYTES_MIN 256

/* Compress into @packed.  Returns false: the message gets no shorter, or there is no memory. */
static bool pack_shorter(const ProtobufCMessage *message, size_t count, struct wf_pool *pool,
			 struct wf_codec_packed *packed)
{
	uint8_t *plain = malloc(count), *shorter = malloc(count);
	size_t bytes = 0;

	if (plain && shorter) {
		protobuf_c_message_pack(message, plain);
		bytes = wf_zstd_pack(plain, count, shorter, count - 1);
	}
	if (bytes && wf_buffer_take(&packed->buffer, pool, bytes))
		bytes = 0;
	if (bytes)
		memcpy(packed->buffer.at, shorter, bytes);
	free(plain);
	free(shorter);
	packed->bytes = bytes;
	packed->compressed = bytes != 0;
	return packed->compressed;
}

int wf_codec_pack(const ProtobufCMessage *message, size_t count, bool compress,
		  struct wf_pool *pool, struct wf_codec_packed *packed)
{
	*packed = (struct wf_codec_packed){ .bytes = count };
	if (compress && count >= COMPRESS_BYTES_MIN && pack_shorter(message, count, pool, packed))
		return 0;
	packed->bytes = count;
	if (count && wf_buffer_take(&packed->buffer, pool, count))
		return -ENOMEM;
	if (count)
		protobuf_c_message_pack(message, packed->buffer.at);
	return 0;
}

static int unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *bytes,
		  size_t count, ProtobufCMessage **message, struct wf_error *e)
{
	*message = NULL;
	/* An empty message may have no address. */
	if (!count ||
	    is_shallow(descriptor, (struct reader){ bytes, bytes + count }, WF_CODEC_DEPTH_MAX))
		*message = protobuf_c_message_unpack(descriptor, NULL, count, bytes);
	/* protobuf-c does not tell want of memory from malformed bytes. */
	return *message ? 0 : wf_error_set(e, -EBADMSG, "it does not unpack");
}

int wf_codec_unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *bytes,
		    size_t count, bool compressed, uint64_t most, ProtobufCMessage **message,
		    struct wf_error *e)
{
	size_t content;
	void *plain;
	int err;

	if (!compressed)
		return unpack(descriptor, bytes, count, message, e);
	err = wf_zstd_unpack(bytes, count, most, &plain, &content);
	if (err == -EMSGSIZE)
		return wf_error_set(e, -ENOBUFS, "decompressed it is over the limit of %llu",
				    (unsigned long long)most);
	if (err == -ENOMEM)
		return wf_error_set(e, err, "there is no memory to decompress it");
	if (err)
		return wf_error_set(e, err, "it does not decompress");
	err = unpack(descriptor, plain, content, message, e);
	free(plain);
	return err;
}
