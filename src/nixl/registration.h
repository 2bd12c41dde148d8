/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registration: memory of the program's that NIXL has registered: a window that other agents read
 * and write, and of host memory a region that stays registered with the fabric.
 *
 * A transfer of this agent's that uses the memory is counted, and cancelled when the memory is
 * deregistered; close() returns when no byte there moves any more.
 *
 * Threads: any; close() once, and not in a callback.
 */
#ifndef WEFT_NIXL_REGISTRATION_H
#define WEFT_NIXL_REGISTRATION_H

#include <condition_variable>
#include <memory>
#include <mutex>
#include <unordered_map>

#include <weft/memory.h>
#include <weft/window.h>

#include "inbox.h"
#include "listener.h"
#include "nixl.h"

namespace weft_nixl {

class Transfer;

class Registration {
public:
	/* Register @memory of @kind with @node; notes of transfers go to @inbox.  Failures are
	 * logged. */
	static Status open(struct weft_node *node, std::shared_ptr<Inbox> inbox,
			   const Registrable &memory, Memory kind,
			   std::shared_ptr<Registration> *out);

	Registration(const Registrable &memory, struct weft_device device);
	~Registration() { close(); }
	Registration(const Registration &) = delete;
	void operator=(const Registration &) = delete;

	/* Cancel transfers that use the memory, wait for their ends, and give the memory up. */
	void close();

	/* Count @transfer as a user, until leave().  False: the memory is being deregistered. */
	bool enter(const std::shared_ptr<Transfer> &transfer);
	void leave(const Transfer *transfer);

	/* Are the @bytes at @address in it? */
	bool has(uintptr_t address, size_t bytes) const;

	/* Write the descriptor of the window to @out. */
	Status describe(std::string *out) const;

	const struct weft_device &device() const { return device_; }

private:
	struct User {
		std::weak_ptr<Transfer> transfer;
		bool told; /* to end: the memory is being deregistered */
	};

	std::shared_ptr<Transfer> untold();
	Status open_window(struct weft_node *node, std::shared_ptr<Inbox> inbox);

	const uintptr_t address_;
	const size_t bytes_;
	const struct weft_device device_;
	struct weft_region *region_ = nullptr;
	struct weft_window *window_ = nullptr;
	std::shared_ptr<Listener> listener_;

	std::mutex lock_;
	std::condition_variable left_;
	bool closing_ = false;
	std::unordered_map<const Transfer *, User> users_;
};

}  // namespace weft_nixl

#endif
