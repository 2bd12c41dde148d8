/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copier: a thread that copies memory for transfers of an agent to itself, so that posting one does
 * not wait.  The thread starts with the first transfer that is too long to be copied at once.
 *
 * Threads: any; close() from one, when nothing is added any more.
 */
#ifndef WEFT_NIXL_COPIER_H
#define WEFT_NIXL_COPIER_H

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace weft_nixl {

class Transfer;

class Copier {
public:
	~Copier() { close(); }

	/* Let the thread make the copies of @transfer.  False: there can be no thread. */
	bool add(std::shared_ptr<Transfer> transfer);

	/* Make the copies that were added, and end the thread. */
	void close();

private:
	void run();

	std::mutex lock_;
	std::condition_variable added_;
	std::deque<std::shared_ptr<Transfer>> transfers_;
	bool closing_ = false;
	std::thread thread_;
};

}  // namespace weft_nixl

#endif
