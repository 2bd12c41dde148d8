/* SPDX-License-Identifier: BSD-2-Clause */
#include "copier.h"

#include <exception>

#include "transfer.h"

namespace weft_nixl {

bool Copier::add(std::shared_ptr<Transfer> transfer)
{
	std::lock_guard<std::mutex> guard(lock_);

	try {
		if (!thread_.joinable())
			thread_ = std::thread([this] { run(); });
		transfers_.push_back(std::move(transfer));
	} catch (const std::exception &) {
		return false;
	}
	added_.notify_one();
	return true;
}

void Copier::close()
{
	{
		std::lock_guard<std::mutex> guard(lock_);

		closing_ = true;
		added_.notify_one();
	}
	if (thread_.joinable())
		thread_.join();
}

void Copier::run()
{
	std::unique_lock<std::mutex> guard(lock_);

	for (;;) {
		added_.wait(guard, [this] { return closing_ || !transfers_.empty(); });
		if (transfers_.empty())
			return;

		std::shared_ptr<Transfer> transfer = std::move(transfers_.front());

		transfers_.pop_front();
		guard.unlock();
		transfer->copy();
		transfer.reset();
		guard.lock();
	}
}

}  // namespace weft_nixl
