/* SPDX-License-Identifier: BSD-2-Clause */
#include "message.h"

#include <algorithm>
#include <cstring>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include "errors.h"
#include "node.h"

/* Services. */

const char *Service::text(const std::string &text)
{
	texts_.push_back(text);
	return texts_.back().c_str();
}

const ProtobufCMessageDescriptor *Service::type(const std::string &name)
{
	for (const ProtobufCMessageDescriptor &known : types_)
		if (name == known.name)
			return &known;
	types_.push_back({});
	types_.back().magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC;
	types_.back().name = text(name);
	types_.back().short_name = types_.back().c_name = types_.back().name;
	types_.back().package_name = "";
	types_.back().sizeof_message = sizeof(ProtobufCMessage);
	return &types_.back();
}

Service::Service(const std::string &name, nb::list methods)
{
	for (nb::handle method : methods) {
		ProtobufCMethodDescriptor m = {};

		m.name = text(nb::cast<std::string>(method[0]));
		m.input = type(nb::cast<std::string>(method[1]));
		m.output = type(nb::cast<std::string>(method[2]));
		by_name_.push_back(unsigned(methods_.size()));
		methods_.push_back(m);
	}
	std::sort(by_name_.begin(), by_name_.end(), [this](unsigned a, unsigned b) {
		return strcmp(methods_[a].name, methods_[b].name) < 0;
	});
	descriptor_.magic = PROTOBUF_C__SERVICE_DESCRIPTOR_MAGIC;
	descriptor_.name = text(name);
	descriptor_.short_name = descriptor_.c_name = descriptor_.name;
	descriptor_.package = "";
	descriptor_.n_methods = unsigned(methods_.size());
	descriptor_.methods = methods_.data();
	descriptor_.method_indices_by_name = by_name_.data();
}

const ProtobufCMethodDescriptor &Service::method(unsigned index) const
{
	if (index >= methods_.size())
		invalid("the service has no such method");
	return methods_[index];
}

/* Messages. */

/* Take the key of the first field.  Returns its length; 0: there is none. */
static size_t take_key(const uint8_t *bytes, size_t count, uint64_t *key)
{
	*key = 0;
	for (size_t i = 0; i < count && i < 5; i++) {
		*key |= uint64_t(bytes[i] & 0x7f) << (7 * i);
		if (!(bytes[i] & 0x80))
			return i + 1;
	}
	return 0;
}

Message::Message(const ProtobufCMessageDescriptor *type, const nb::bytes &packed)
{
	/* The whole message is its first field, to which what follows is content. */
	auto *bytes = reinterpret_cast<const uint8_t *>(packed.c_str());
	size_t count = packed.size(), key_bytes;
	uint64_t key;

	message_ = PROTOBUF_C_MESSAGE_INIT(type);
	if (!count)
		return;
	key_bytes = take_key(bytes, count, &key);
	if (!key_bytes || !(key >> 3) || key > UINT32_MAX || (key & 7) > PROTOBUF_C_WIRE_TYPE_32BIT)
		invalid("the bytes are no message of protobuf");
	rest_.tag = uint32_t(key >> 3);
	rest_.wire_type = ProtobufCWireType(key & 7);
	rest_.len = count - key_bytes;
	rest_.data = const_cast<uint8_t *>(bytes) + key_bytes;
	message_.n_unknown_fields = 1;
	message_.unknown_fields = &rest_;
}

nb::bytes bytes_of(const ProtobufCMessage *message)
{
	size_t count = protobuf_c_message_get_packed_size(message);
	PyObject *bytes = PyBytes_FromStringAndSize(nullptr, Py_ssize_t(count));

	if (!bytes)
		throw nb::python_error();
	protobuf_c_message_pack(message, reinterpret_cast<uint8_t *>(PyBytes_AsString(bytes)));
	return nb::steal<nb::bytes>(bytes);
}

/* Metadata. */

#define WRONG_PAIR "metadata is pairs of a str, and a str or bytes"

Pairs::Pairs(nb::handle list)
{
	for (nb::handle pair : list) {
		nb::object name = pair[0], content = pair[1];
		Key key(name, WRONG_PAIR), value(content, WRONG_PAIR);

		held_.push_back(std::move(name));
		held_.push_back(std::move(content));
		pairs_.push_back({ key.data, value.data, size_t(value.bytes) });
	}
}

nb::list list_of(const weft_metadata *pairs, size_t count)
{
	nb::list list;

	for (size_t i = 0; i < count; i++) {
		auto *value = static_cast<const char *>(pairs[i].value);
		size_t length = strlen(pairs[i].key);
		bool binary = length >= 4 && !strcmp(pairs[i].key + length - 4, "-bin");

		list.append(nb::make_tuple(nb::str(pairs[i].key),
					   binary ? nb::object(nb::bytes(value, pairs[i].bytes))
						  : nb::object(nb::str(value, pairs[i].bytes))));
	}
	return list;
}

void bind_service(nb::module_ &m)
{
	nb::class_<Service>(m, "_Service").def(nb::init<const std::string &, nb::list>());
}
