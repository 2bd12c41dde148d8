/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine.h"

#include "letter.h"
#include "log.h"
#include "registration.h"
#include "settings.h"
#include "status.h"
#include "transfer.h"

namespace weft_nixl {
namespace {

/* NIXL's handles: registered memory, memory that a transfer goes to, and a transfer. */
struct Registered : Metadata {
	Registered() : Metadata(true) {}

	std::shared_ptr<Registration> registration;
};

struct Target : Metadata {
	Target() : Metadata(false) {}

	std::shared_ptr<RemoteWindow> window; /* NULL: memory of this agent's */
	std::shared_ptr<Registration> own;
};

struct Request : Handle {
	std::shared_ptr<Transfer> transfer;
	bool given_up = false;
	Guest::Asked asked{0};
};

}  // namespace

Engine::Engine(const BackendOptions *options)
	: Backend(options), inbox_(std::make_shared<Inbox>())
{
	failed = settings_open_node(agent, *options->parameters, &node_) != SUCCESS;
	if (failed)
		return;
	failed = mailbox_.open(node_->get(), inbox_) != SUCCESS ||
		 guest_.open(node_->get()) != SUCCESS;
	if (!failed)
		log_line(LOG_INFO, "agent %s is at %s", agent.c_str(),
			 weft_node_address(node_->get()));
}

Engine::~Engine()
{
	copier_.close();
	mailbox_.close();
	inbox_->close();
	connections_.clear();
	guest_.close();
	if (node_)
		node_->close();
}

std::shared_ptr<Connection> Engine::find(const std::string &name) const
{
	std::lock_guard<std::mutex> guard(lock_);
	auto at = connections_.find(name);

	return at == connections_.end() ? nullptr : at->second;
}

Status Engine::register_memory(const Registrable &memory, const Memory &kind, Metadata *&out)
{
	return status_guard([&] {
		auto registered = std::make_unique<Registered>();
		Status status = Registration::open(node_->get(), inbox_, memory, kind,
						   &registered->registration);

		if (status == SUCCESS)
			out = registered.release();
		return status;
	});
}

Status Engine::deregister_memory(Metadata *metadata)
{
	return status_guard([&] {
		auto *registered = static_cast<Registered *>(metadata);

		registered->registration->close();
		delete registered;
		return SUCCESS;
	});
}

Status Engine::connect(const std::string &to)
{
	return status_guard([&] {
		if (to == agent)
			return SUCCESS;

		auto connection = find(to);

		if (!connection)
			return NOT_FOUND;
		connection->meet();
		return SUCCESS;
	});
}

Status Engine::disconnect(const std::string &from)
{
	return status_guard([&] {
		std::shared_ptr<Connection> connection;
		std::lock_guard<std::mutex> guard(lock_);
		auto at = connections_.find(from);

		if (at == connections_.end())
			return from == agent ? SUCCESS : NOT_FOUND;
		connection = std::move(at->second);
		connections_.erase(at);
		return SUCCESS;
	});
}

Status Engine::unload(Metadata *metadata)
{
	delete metadata;
	return SUCCESS;
}

Status Engine::prepare(const Direction &direction, const List<Located> &here,
		       const List<Located> &there, const std::string &to, Handle *&out,
		       const TransferOptions *) const
{
	return status_guard([&] {
		auto request = std::make_unique<Request>();
		auto connection = find(to);
		Status status = SUCCESS;

		if (!connection && to != agent)
			return NOT_FOUND;
		if (here.size() != there.size())
			return INVALID_PARAMETER;
		request->transfer = std::make_shared<Transfer>(direction, connection, inbox_);
		for (size_t i = 0; status == SUCCESS && i < here.size(); i++) {
			auto *registered = static_cast<Registered *>(here[i].metadata);
			auto *target = static_cast<Target *>(there[i].metadata);

			if (here[i].bytes != there[i].bytes || !target->window == !!connection)
				return INVALID_PARAMETER;
			status = connection
				? request->transfer->add(registered->registration, here[i].address,
							 target->window, there[i].address,
							 here[i].bytes)
				: request->transfer->add_own(registered->registration,
							     here[i].address, target->own,
							     there[i].address, here[i].bytes);
		}
		if (status == SUCCESS)
			out = request.release();
		return status;
	});
}

Status Engine::post(const Direction &, const List<Located> &, const List<Located> &,
		    const std::string &, Handle *&handle, const TransferOptions *options) const
{
	return status_guard([&] {
		auto *request = static_cast<Request *>(handle);
		std::string notification;

		if (options && options->has_notification)
			notification = notification_pack(agent, options->notification);
		/* A release goes on that waits for the end of what is under way. */
		if (request->transfer->check() != IN_PROGRESS)
			request->given_up = false;
		return request->transfer->post(std::move(notification), &copier_);
	});
}

Status Engine::check(Handle *handle) const
{
	auto *request = static_cast<Request *>(handle);

	if (request->transfer->check() == IN_PROGRESS)
		guest_.again(&request->asked);
	return request->transfer->check();
}

/*
 * A transfer that is under way is cancelled, which takes a moment.  One that goes on after that is
 * kept, with an error, so that the program tries again; the next time waits for the end, some
 * seconds at most: a program that has been told that a read is gone uses its memory anew.
 */
Status Engine::release(Handle *handle) const
{
	return status_guard([&] {
		auto *request = static_cast<Request *>(handle);

		if (request->transfer->check() == IN_PROGRESS) {
			request->transfer->cancel();
			while (!request->transfer->wait_a_moment())
				if (!request->given_up) {
					request->given_up = true;
					return NOT_ALLOWED;
				}
		}
		delete request;
		return SUCCESS;
	});
}

Status Engine::describe(const Metadata *metadata, std::string &out) const
{
	return status_guard([&] {
		return static_cast<const Registered *>(metadata)->registration->describe(&out);
	});
}

Status Engine::describe_self(std::string &out) const
{
	return status_guard([&] {
		out = connection_describe(weft_node_address(node_->get()), mailbox_.descriptor());
		return SUCCESS;
	});
}

Status Engine::load_agent(const std::string &from, const std::string &description)
{
	return status_guard([&] {
		std::shared_ptr<Connection> connection;
		Status status = Connection::open(node_, description, &connection);

		if (status == SUCCESS) {
			std::lock_guard<std::mutex> guard(lock_);

			connections_[from].swap(connection);
		}
		return status;
	});
}

Status Engine::load_memory(const Registrable &memory, const Memory &kind, const std::string &from,
			   Metadata *&out)
{
	return status_guard([&] {
		auto target = std::make_unique<Target>();
		auto connection = find(from);
		Status status;

		if (!connection)
			return NOT_FOUND;
		if (kind != DRAM && kind != VRAM)
			return NOT_SUPPORTED;
		status = RemoteWindow::open(std::move(connection), memory.text, memory.address,
					    &target->window);
		if (status == SUCCESS)
			out = target.release();
		return status;
	});
}

Status Engine::load_own_memory(Metadata *registered, Metadata *&out)
{
	return status_guard([&] {
		auto target = std::make_unique<Target>();

		target->own = static_cast<Registered *>(registered)->registration;
		out = target.release();
		return SUCCESS;
	});
}

Status Engine::take_notifications(Notifications &out)
{
	return status_guard([&] {
		size_t before = out.size();

		(void)mailbox_.receive_long();
		inbox_->take(&out);
		if (out.size() == before) {
			guest_.again(&asked_);
			inbox_->take(&out);
		}
		return SUCCESS;
	});
}

Status Engine::notify(const std::string &to, const std::string &text) const
{
	return status_guard([&] {
		std::string packed = notification_pack(agent, text);
		auto connection = find(to);

		if (packed.size() > kNotificationBytesMax) {
			log_line(LOG_ERROR, "a notification of %zu bytes is too long", text.size());
			return INVALID_PARAMETER;
		}
		if (connection)
			return letter_send(std::move(connection), std::move(packed));
		if (to != agent)
			return NOT_FOUND;
		(void)inbox_->add(packed.data(), packed.size());
		return SUCCESS;
	});
}

}  // namespace weft_nixl
