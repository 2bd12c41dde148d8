/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NIXL's backends: in which order their virtual functions stand, and how NIXL makes one.
 */
#ifndef WEFT_NIXL_BACKEND_H
#define WEFT_NIXL_BACKEND_H

#include <chrono>
#include <mutex>
#include <optional>

#include "nixl.h"

namespace weft_nixl {

struct TelemetryEvent {
	uint32_t type;
	uint64_t value;
};

/* A backend: the functions of its class, in NIXL's order.  Those that NIXL adds later come last. */
class Backend {
public:
	explicit Backend(const BackendOptions *options)
		: type_(options->type), parameters_(*options->parameters), agent(options->agent),
		  telemetry(options->telemetry)
	{
	}
	Backend(const Backend &) = delete;
	void operator=(const Backend &) = delete;

	virtual ~Backend() = default;

	virtual bool is_remote() const = 0;
	virtual bool is_local() const = 0;
	virtual bool has_notifications() const = 0;
	virtual Memories memories() const = 0;

	virtual Status register_memory(const Registrable &memory, const Memory &kind,
				       Metadata *&out) = 0;
	virtual Status deregister_memory(Metadata *metadata) = 0;
	virtual Status connect(const std::string &to) = 0;
	virtual Status disconnect(const std::string &from) = 0;
	virtual Status unload(Metadata *metadata) = 0;

	virtual Status prepare(const Direction &direction, const List<Located> &here,
			       const List<Located> &there, const std::string &to, Handle *&out,
			       const TransferOptions *options) const = 0;
	virtual Status post(const Direction &direction, const List<Located> &here,
			    const List<Located> &there, const std::string &to, Handle *&handle,
			    const TransferOptions *options) const = 0;
	virtual Status check(Handle *handle) const = 0;
	virtual Status release(Handle *handle) const = 0;

	/* Views of memory for code on a GPU. */
	virtual Status prepare_view(const List<RemotelyLocated> &, void *&,
				    const TransferOptions *) const
	{
		return NOT_SUPPORTED;
	}
	virtual Status prepare_view(const List<Located> &, void *&, const TransferOptions *) const
	{
		return NOT_SUPPORTED;
	}
	virtual void release_view(void *) const {}

	/* Descriptions for other agents: of registered memory, and of the backend. */
	virtual Status describe(const Metadata *metadata, std::string &out) const = 0;
	virtual Status describe_self(std::string &out) const = 0;
	virtual Status load_agent(const std::string &from, const std::string &description) = 0;
	virtual Status load_memory(const Registrable &memory, const Memory &kind,
				   const std::string &from, Metadata *&out) = 0;
	virtual Status load_own_memory(Metadata *registered, Metadata *&out) = 0;

	virtual Status take_notifications(Notifications &out) = 0;
	virtual Status notify(const std::string &to, const std::string &text) const = 0;

	virtual Status query(const List<Registrable> &,
			     std::vector<std::optional<Parameters>> &) const
	{
		return NOT_SUPPORTED;
	}
	virtual Status estimate(const Direction &, const List<Located> &, const List<Located> &,
				const std::string &, Handle *const &, std::chrono::microseconds &,
				std::chrono::microseconds &, CostMethod &, const void *) const
	{
		return NOT_SUPPORTED;
	}

private:
	/* NIXL itself reads these, in its own functions. */
	std::string type_;
	Parameters parameters_;
	std::vector<TelemetryEvent> events_;
	std::mutex events_lock_;

protected:
	bool failed = false; /* the constructor has: NIXL destroys the backend */
	const std::string agent;
	const bool telemetry;
};

/* The plug-in, as nixl_plugin_init() returns it. */
struct Plugin {
	int interface;
	Backend *(*open)(const BackendOptions *options);
	void (*close)(Backend *backend);
	const char *(*name)();
	const char *(*version)();
	Parameters (*parameters)();
	Memories (*memories)();
};

}  // namespace weft_nixl

#endif
