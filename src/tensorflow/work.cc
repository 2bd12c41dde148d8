/* SPDX-License-Identifier: BSD-2-Clause */
#include "work.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <pthread.h>
#include <system_error>
#include <thread>
#include <utility>

#include <tensorflow/core/platform/logging.h>

#include "counters.h"

namespace weft_tensorflow {
namespace {

/* 8: as many threads run TensorFlow's continuations when gRPC calls them. */
constexpr int kThreadsMax = 8;

/* Work that found the pool full.  Its threads stay, as the pool's do. */
class Overflow {
public:
	/* Take *@work.  False: it is left, for the system gives no thread, and not one is there. */
	bool add(std::function<void()> *work)
	{
		std::lock_guard<std::mutex> l(lock_);

		/* An idle thread that was notified counts as idle until it runs. */
		if (queue_.size() < static_cast<size_t>(idle_))
			more_.notify_one();
		else if (threads_ < kThreadsMax)
			start();
		if (threads_)
			queue_.push_back(std::move(*work));
		return threads_;
	}

private:
	/* Start a thread, which waits for the lock, if the system gives one. */
	void start()
	{
		try {
			std::thread([this] { run(); }).detach();
			threads_++;
		} catch (const std::system_error &error) {
			LOG_FIRST_N(WARNING, 1)
				<< "weft: no thread for work beside TensorFlow's pool: "
				<< error.what();
		}
	}

	void run()
	{
		std::unique_lock<std::mutex> l(lock_);

		pthread_setname_np(pthread_self(), "weft_overflow");
		for (;;) {
			while (queue_.empty()) {
				idle_++;
				more_.wait(l);
				idle_--;
			}
			auto work = std::move(queue_.front());

			queue_.pop_front();
			l.unlock();
			work();
			work = nullptr;
			l.lock();
		}
	}

	std::mutex lock_;
	std::condition_variable more_;
	std::deque<std::function<void()>> queue_;
	int threads_ = 0;
	int idle_ = 0;
};

void overflow(std::function<void()> work)
{
	/* The threads run until the process ends, and static objects end before. */
	static auto *all = new Overflow;

	counters_add("work_beside_pool");
	if (!all->add(&work))
		work();
}

/* True while this thread hands work to a pool. */
thread_local bool handing;

}  // namespace

void work_schedule(tensorflow::thread::ThreadPool *pool, std::function<void()> work)
{
	handing = true;
	pool->Schedule([work = std::move(work)]() mutable {
		if (handing)
			overflow(std::move(work));
		else
			work();
	});
	handing = false;
}

}  // namespace weft_tensorflow
