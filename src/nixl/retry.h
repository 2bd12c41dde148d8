/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Retries: operations that another agent had no room for, and that are begun again after a pause.
 *
 * An agent bounds what it keeps for each other one, and refuses the rest with RESOURCE_EXHAUSTED:
 * writes and notifications under load.  Nothing of what was refused has been delivered.
 *
 * Threads: any; Attempts is its owner's.
 */
#ifndef WEFT_NIXL_RETRY_H
#define WEFT_NIXL_RETRY_H

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace weft_nixl {

/* Attempts at one thing, until its deadline. */
class Attempts {
public:
	using Clock = std::chrono::steady_clock;

	/* Begin the first attempt, @timeout_ns before the deadline. */
	void start(uint64_t timeout_ns);

	/* Returns the time for an attempt that begins now, for an operation of weft. */
	uint64_t left_ns() const;

	/* Is there time for another attempt, and the pause before it? */
	bool may_go_on() const;

	/* Returns the pause before the next attempt, longer each time, or after what went well. */
	Clock::duration pause(bool well);

private:
	Clock::duration next_pause() const;

	Clock::time_point deadline_;
	unsigned refused_ = 0;
};

class Retries {
public:
	~Retries() { close(); }

	/*
	 * Call @begin after @pause, in a thread that starts with the first.  False: there can be no
	 * thread, no memory, or nothing more is to begin.
	 */
	bool add(Attempts::Clock::duration pause, std::function<void()> begin);

	/* Call at once all that waits, and end the thread.  Threads: not that one. */
	void close();

private:
	void run();

	std::mutex lock_;
	std::condition_variable changed_;
	std::multimap<Attempts::Clock::time_point, std::function<void()>> waiting_;
	bool closing_ = false;
	std::thread thread_;
};

}  // namespace weft_nixl

#endif
