/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Engine: the backend that NIXL makes for one agent.
 *
 * The engine is a node of weft, with a thread of weft's own: what other agents ask for goes on
 * whether or not the program polls, and progress of NIXL's settings changes nothing.  A program that
 * polls in a loop does that thread's work meanwhile (guest.h).
 *
 * Threads: any, as NIXL's functions are; made and destroyed by one.
 */
#ifndef WEFT_NIXL_ENGINE_H
#define WEFT_NIXL_ENGINE_H

#include <memory>
#include <mutex>
#include <unordered_map>

#include "backend.h"
#include "connection.h"
#include "copier.h"
#include "guest.h"
#include "inbox.h"
#include "mailbox.h"
#include "node.h"

namespace weft_nixl {

class Engine : public Backend {
public:
	explicit Engine(const BackendOptions *options);
	~Engine() override;

	bool is_remote() const override { return true; }
	bool is_local() const override { return true; }
	bool has_notifications() const override { return true; }
	Memories memories() const override { return all_memories(); }

	Status register_memory(const Registrable &memory, const Memory &kind,
			       Metadata *&out) override;
	Status deregister_memory(Metadata *metadata) override;
	Status connect(const std::string &to) override;
	Status disconnect(const std::string &from) override;
	Status unload(Metadata *metadata) override;

	Status prepare(const Direction &direction, const List<Located> &here,
		       const List<Located> &there, const std::string &to, Handle *&out,
		       const TransferOptions *options) const override;
	Status post(const Direction &direction, const List<Located> &here,
		    const List<Located> &there, const std::string &to, Handle *&handle,
		    const TransferOptions *options) const override;
	Status check(Handle *handle) const override;
	Status release(Handle *handle) const override;

	Status describe(const Metadata *metadata, std::string &out) const override;
	Status describe_self(std::string &out) const override;
	Status load_agent(const std::string &from, const std::string &description) override;
	Status load_memory(const Registrable &memory, const Memory &kind, const std::string &from,
			   Metadata *&out) override;
	Status load_own_memory(Metadata *registered, Metadata *&out) override;

	Status take_notifications(Notifications &out) override;
	Status notify(const std::string &to, const std::string &text) const override;

	/* Returns the kinds of memory that there may be. */
	static Memories all_memories() { return {DRAM, VRAM}; }

private:
	std::shared_ptr<Connection> find(const std::string &agent) const;

	std::shared_ptr<Node> node_;
	std::shared_ptr<Inbox> inbox_;
	Mailbox mailbox_;
	mutable Copier copier_;
	Guest guest_;
	Guest::Asked asked_{0}; /* for notifications */

	mutable std::mutex lock_; /* protects the next */
	std::unordered_map<std::string, std::shared_ptr<Connection>> connections_;
};

}  // namespace weft_nixl

#endif
