/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mailbox: where notifications come to that ride on no transfer.
 *
 * The mailbox is a window of its own, of one byte that nobody reads.  A short notification is the
 * note of a put of no blocks; a long one is a tensor, whose key is the descriptor of the window, so
 * that only agents send any that were given the address.  Its step is the mailbox's own: whoever
 * takes part in a step may abort it, and so may an agent that was sent a tensor.
 *
 * Threads: any; open() and close() from one.
 */
#ifndef WEFT_NIXL_MAILBOX_H
#define WEFT_NIXL_MAILBOX_H

#include <memory>
#include <mutex>
#include <string>

#include <weft/window.h>

#include "inbox.h"
#include "listener.h"
#include "nixl.h"

namespace weft_nixl {

/* Returns the step of tensors to the mailbox of @descriptor, which is as random as its token. */
uint64_t mailbox_step(const std::string &descriptor);

class Mailbox {
public:
	/* Open the mailbox of @node, whose notifications go to @inbox.  Failures are logged. */
	Status open(struct weft_node *node, std::shared_ptr<Inbox> inbox);

	/* Receive long notifications, unless that is under way: it ends where memory is short. */
	int receive_long();

	/* Take nothing any more, before the node closes. */
	void close();

	/* Returns the descriptor of the window. */
	const std::string &descriptor() const { return descriptor_; }

private:
	static void came(struct weft_op *op, void *arg);
	bool has_run_out(const struct weft_op *op);

	struct weft_node *node_ = nullptr;
	char byte_ = 0;
	std::string descriptor_;
	std::shared_ptr<Inbox> inbox_;
	std::shared_ptr<Listener> listener_;
	struct weft_window *window_ = nullptr;
	std::mutex lock_;                   /* receive_, which the program and the worker change */
	struct weft_op *receive_ = nullptr; /* null: there was no memory for what came */
};

}  // namespace weft_nixl

#endif
