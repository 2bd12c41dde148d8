/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/any_message.h"

#include <stdlib.h>
#include <string.h>

#include "rpc/codec.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/tool/kinds.pb-c.h"

uint8_t *any_message_pack(const ProtobufCMessage *message, size_t *count)
{
	uint8_t *bytes;

	*count = protobuf_c_message_get_packed_size(message);
	bytes = malloc(*count + !*count);
	must(bytes != NULL);
	must(protobuf_c_message_pack(message, bytes) == *count);
	return bytes;
}

ProtobufCMessage *any_message_unpack(const ProtobufCMessageDescriptor *type, const uint8_t *bytes,
				     size_t count)
{
	ProtobufCMessage *message;
	struct wf_error e;

	return wf_codec_unpack(type, bytes, count, false, 0, &message, &e) ? NULL : message;
}

bool any_message_lasts(const ProtobufCMessage *message)
{
	size_t count, again_count;
	uint8_t *bytes = any_message_pack(message, &count), *again;
	ProtobufCMessage *copy = any_message_unpack(message->descriptor, bytes, count);
	bool lasts;

	if (!copy) {
		free(bytes);
		return false;
	}
	again = any_message_pack(copy, &again_count);
	lasts = again_count == count && !memcmp(again, bytes, count);
	protobuf_c_message_free_unpacked(copy, NULL);
	free(again);
	free(bytes);
	return lasts;
}

/* Add what is below: the @count messages at @list. */
static void look_at_list(struct any_look *look, void *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct any_look below = any_message_look(list[i]);

		look->depth = WF_MAX(look->depth, below.depth + 1);
		look->unknown |= below.unknown;
	}
}

static void look_at_field(struct any_look *look, const ProtobufCMessage *message,
			  const ProtobufCFieldDescriptor *f)
{
	const char *member = (const char *)message + f->offset;
	const char *quantifier = (const char *)message + f->quantifier_offset;
	void *pointer;
	size_t count;
	uint32_t which;

	memcpy(&pointer, member, sizeof(pointer));
	if (f->label == PROTOBUF_C_LABEL_REPEATED) {
		memcpy(&count, quantifier, sizeof(count));
		look_at_list(look, pointer, count);
		return;
	}
	if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
		memcpy(&which, quantifier, sizeof(which));
		if (which != f->id)
			return;
	}
	look_at_list(look, &pointer, pointer != NULL);
}

struct any_look any_message_look(const ProtobufCMessage *message)
{
	const ProtobufCMessageDescriptor *d = message->descriptor;
	struct any_look look = { .unknown = message->n_unknown_fields };

	for (unsigned i = 0; i < d->n_fields; i++)
		if (d->fields[i].type == PROTOBUF_C_TYPE_MESSAGE)
			look_at_field(&look, message, &d->fields[i]);
	return look;
}

void any_message_put_kinds(struct wf_bytes_writer *w)
{
	Kinds__Kinds m = KINDS__KINDS__INIT, child = KINDS__KINDS__INIT;
	Kinds__Kinds *children[] = { &child, &child };
	int32_t numbers[] = { 1, -1 };
	char *texts[] = { "", "a" };
	uint8_t *bytes;
	size_t count;

	m.s64 = INT64_MIN, m.f64 = UINT64_MAX, m.single = 0.5f, m.real = 0.1, m.flag = true;
	m.text = "text", m.data = (ProtobufCBinaryData){ 2, (uint8_t *)"\0\1" };
	m.child = &child, m.children = children, m.n_children = 2;
	m.i32s = m.loose = numbers, m.n_i32s = m.n_loose = 2;
	m.texts = texts, m.n_texts = 2;
	m.first_case = KINDS__KINDS__FIRST_ONE_CHILD, m.one_child = &child;
	m.second_case = KINDS__KINDS__SECOND_OTHER_NUMBER, m.other_number = 7;
	child.first_case = KINDS__KINDS__FIRST_ONE_TEXT, child.one_text = "one";
	bytes = any_message_pack(&m.base, &count);
	wf_bytes_put(w, bytes, count);
	free(bytes);
}
