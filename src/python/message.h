/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Services and messages of calls, as bytes: Python's protobuf knows their fields, and protobuf-c need
 * not.
 *
 * To protobuf-c each message is of a type without fields, all of whose bytes are unknown to it, and
 * are kept as they are.
 */
#ifndef WEFT_PYTHON_MESSAGE_H
#define WEFT_PYTHON_MESSAGE_H

#include <deque>
#include <string>
#include <vector>
#include <nanobind/nanobind.h>
#include <weft/weft.h>

namespace nb = nanobind;

/* A service by its names.  Lives as long as a stub, a call, or a node that serves it. */
class Service {
public:
	/* @methods: the name, the request's type and the reply's type of each. */
	Service(const std::string &name, nb::list methods);
	Service(const Service &) = delete; // descriptors point into it

	const ProtobufCServiceDescriptor *descriptor() const { return &descriptor_; }
	const ProtobufCMethodDescriptor &method(unsigned index) const;

private:
	const char *text(const std::string &text);
	const ProtobufCMessageDescriptor *type(const std::string &name);

	std::deque<std::string> texts_;
	std::deque<ProtobufCMessageDescriptor> types_;
	std::vector<ProtobufCMethodDescriptor> methods_;
	std::vector<unsigned> by_name_;
	ProtobufCServiceDescriptor descriptor_ = {};
};

/* A message that goes out; borrows its bytes.  Raises if they are no message. */
class Message {
public:
	Message(const ProtobufCMessageDescriptor *type, const nb::bytes &packed);
	Message(const Message &) = delete; // points into itself

	const ProtobufCMessage *get() const { return &message_; }

private:
	ProtobufCMessage message_;
	ProtobufCMessageUnknownField rest_;
};

/* The bytes of a message that came. */
nb::bytes bytes_of(const ProtobufCMessage *message);

/* Metadata: a list of keys, and values that are bytes or str. */
class Pairs {
public:
	explicit Pairs(nb::handle list);
	const weft_metadata *get() const { return pairs_.empty() ? nullptr : pairs_.data(); }
	size_t count() const { return pairs_.size(); }

private:
	std::vector<weft_metadata> pairs_;
	std::vector<nb::object> held_; // what they point into
};

/* Metadata as a list of pairs: values are bytes of keys that end in "-bin", and else str. */
nb::list list_of(const weft_metadata *pairs, size_t count);

void bind_service(nb::module_ &m);

#endif
