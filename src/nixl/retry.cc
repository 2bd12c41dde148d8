/* SPDX-License-Identifier: BSD-2-Clause */
#include "retry.h"

#include <algorithm>
#include <exception>

namespace weft_nixl {
namespace {

/* Pauses: the first is about what an owner takes for the bodies that it has.  Not tuned. */
constexpr std::chrono::milliseconds kPause(1);
constexpr unsigned kDoublings = 6;

}  // namespace

void Attempts::start(uint64_t timeout_ns)
{
	deadline_ = Clock::now() + std::chrono::nanoseconds(timeout_ns);
	refused_ = 0;
}

uint64_t Attempts::left_ns() const
{
	auto left = std::max<Clock::duration>(deadline_ - Clock::now(), kPause);

	return std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
}

Attempts::Clock::duration Attempts::next_pause() const
{
	return kPause * (1 << std::min(refused_, kDoublings));
}

bool Attempts::may_go_on() const
{
	return deadline_ - Clock::now() > next_pause();
}

Attempts::Clock::duration Attempts::pause(bool well)
{
	Clock::duration pause = well ? Clock::duration::zero() : next_pause();

	refused_ = well ? 0 : refused_ + 1;
	return pause;
}

bool Retries::add(Attempts::Clock::duration pause, std::function<void()> begin)
{
	std::lock_guard<std::mutex> guard(lock_);

	if (closing_)
		return false;
	try {
		if (!thread_.joinable())
			thread_ = std::thread([this] { run(); });
		waiting_.emplace(Attempts::Clock::now() + pause, std::move(begin));
	} catch (const std::exception &) {
		return false;
	}
	changed_.notify_one();
	return true;
}

void Retries::close()
{
	{
		std::lock_guard<std::mutex> guard(lock_);

		closing_ = true;
		changed_.notify_one();
	}
	if (thread_.joinable())
		thread_.join();
}

void Retries::run()
{
	std::unique_lock<std::mutex> guard(lock_);

	for (;;) {
		auto first = waiting_.begin();

		if (first == waiting_.end()) {
			if (closing_)
				return;
			changed_.wait(guard);
		} else if (!closing_ && first->first > Attempts::Clock::now()) {
			auto until = first->first;

			changed_.wait_until(guard, until);
		} else {
			auto due = waiting_.extract(first);

			guard.unlock();
			due.mapped()();
			due = {};
			guard.lock();
		}
	}
}

}  // namespace weft_nixl
