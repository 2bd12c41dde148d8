/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections: another agent as this one reaches it, and memory that it has registered.
 *
 * An agent's description, which NIXL carries to others, is a line with the format, a line with the
 * address of its node, and the descriptor of its mailbox.
 *
 * Threads: any, callbacks of weft among them.
 */
#ifndef WEFT_NIXL_CONNECTION_H
#define WEFT_NIXL_CONNECTION_H

#include <memory>
#include <string>

#include <weft/window.h>

#include "line.h"
#include "nixl.h"
#include "node.h"

namespace weft_nixl {

/* Returns the description of an agent. */
std::string connection_describe(const std::string &address, const std::string &mailbox);

class Connection {
public:
	/* Make the connection to the agent that @description is of; failures are logged. */
	static Status open(std::shared_ptr<Node> node, const std::string &description,
			   std::shared_ptr<Connection> *out);

	Connection(std::shared_ptr<Node> node, struct weft_peer *peer, struct weft_remote *mailbox,
		   std::string key);
	~Connection();
	Connection(const Connection &) = delete;
	void operator=(const Connection &) = delete;

	/* Meet the peer, so that the first transfer need not: nobody waits for that. */
	void meet() const;

	/*
	 * Send @packed, a notification as it travels, which is borrowed until the operation @op has
	 * ended; @options has its time, @done and @arg.  A negative code: of weft.
	 */
	int send(const std::string &packed, const struct weft_op_options &options,
		 struct weft_op **op) const;

	struct weft_peer *peer() const { return peer_; }
	const std::shared_ptr<Node> &node() const { return node_; }
	Line &line() { return line_; }

private:
	const std::shared_ptr<Node> node_;
	struct weft_peer *const peer_;
	struct weft_remote *const mailbox_;
	const std::string key_; /* key of long notifications */
	Line line_;
};

/* Memory of another agent's, from @address on there. */
class RemoteWindow {
public:
	/* Import the window that @descriptor is of; failures are logged. */
	static Status open(std::shared_ptr<Connection> connection, const std::string &descriptor,
			   uintptr_t address, std::shared_ptr<RemoteWindow> *out);

	RemoteWindow(std::shared_ptr<Connection> connection, struct weft_remote *remote,
		     uintptr_t address);
	~RemoteWindow();
	RemoteWindow(const RemoteWindow &) = delete;
	void operator=(const RemoteWindow &) = delete;

	/* Find the place of @bytes at @address in the window.  False: they are not in it. */
	bool locate(uintptr_t address, size_t bytes, uint64_t *place) const;

	struct weft_remote *get() const { return remote_; }
	const std::shared_ptr<Connection> &connection() const { return connection_; }

private:
	const std::shared_ptr<Connection> connection_;
	struct weft_remote *const remote_;
	const uintptr_t address_;
};

}  // namespace weft_nixl

#endif
