/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NIXL's plug-in interface, as far as a backend needs it: how NIXL 1.0 to 1.5 lay their objects
 * out.  backend.h has the functions.
 *
 * NIXL calls a plug-in through a table of C++'s, and gives it objects of its own, so nothing here
 * is found by name: types, members and their order are what counts.  Names are weft's.  NIXL has a
 * number for the interface, kInterface, that has never changed.  tests/nixl/interface.cc compares
 * each type and function with NIXL's own headers, where a user gives these.
 *
 * Strings, maps and vectors cross the border, too: both sides are built with libstdc++ and its C++11
 * ABI.
 */
#ifndef WEFT_NIXL_NIXL_H
#define WEFT_NIXL_NIXL_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weft_nixl {

constexpr int kInterface = 1;

enum Memory { DRAM, VRAM, BLOCKS, OBJECTS, FILES };
enum Direction { READ, WRITE };

enum Status {
	IN_PROGRESS = 1,
	SUCCESS = 0,
	NOT_POSTED = -1,
	INVALID_PARAMETER = -2,
	BACKEND_ERROR = -3,
	NOT_FOUND = -4,
	MISMATCH = -5,
	NOT_ALLOWED = -6,
	REPOST_ACTIVE = -7,
	UNKNOWN = -8,
	NOT_SUPPORTED = -9,
	REMOTE_DISCONNECT = -10,
	CANCELED = -11
};

enum class Locking { NONE, STRICT, READ_WRITE };
enum class CostMethod { ANALYTICAL };

using Parameters = std::unordered_map<std::string, std::string>;
using Memories = std::vector<Memory>;
/* Notifications: the name of the agent that each is from, and its text. */
using Notifications = std::vector<std::pair<std::string, std::string>>;

/* A backend's own object about memory, here or of another agent. */
class Metadata {
public:
	explicit Metadata(bool is_private) : is_private_(is_private) {}
	virtual ~Metadata() {}

protected:
	bool is_private_;
};

/* A backend's own object about a transfer. */
class Handle {
public:
	virtual ~Handle() {}
};

struct Span {
	uintptr_t address;
	size_t bytes;
	uint64_t device;

	/* A constructor of its own, as NIXL's has: it decides how an object is passed. */
	Span() {}
};

/* Memory to be registered, or as another agent has registered it. */
struct Registrable : Span {
	std::string text;
};

/* A part of registered memory. */
struct Located : Span {
	Metadata *metadata;
};

/* A list, which NIXL makes: here it is only read. */
template <class T> class List {
public:
	List() = delete;
	virtual ~List() = default;

	Memory memory() const { return memory_; }
	size_t size() const { return items_.size(); }
	const T &operator[](size_t i) const { return items_[i]; }

protected:
	Memory memory_;
	std::vector<T> items_;
};

struct RemotelyLocated : Located {
	std::string agent;
};

/* Options of one transfer. */
struct TransferOptions {
	std::string notification;
	bool has_notification = false;
	std::string custom;
};

/* Options of a new backend. */
class BackendOptions {
public:
	std::string agent;
	std::string type;
	Parameters *parameters = nullptr;
	bool progress_thread = false;
	uint64_t progress_delay_us = 0;
	Locking locking;
	bool telemetry = false;
};

}  // namespace weft_nixl

#endif
