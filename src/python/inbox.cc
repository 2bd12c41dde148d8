/* SPDX-License-Identifier: BSD-2-Clause */
#include "inbox.h"

#include <iterator>
#include <map>
#include <new>
#include <sys/eventfd.h>
#include <unistd.h>

/*
 * Calls whose callers may give up, and their inboxes: a call may have been answered, and its inbox be
 * gone, by the time that the worker tells of it.
 */
static std::mutex watched_lock;
static std::map<uint64_t, Inbox *> watched;
static uint64_t numbers;

static uint64_t watch(Inbox *inbox)
{
	std::lock_guard<std::mutex> held(watched_lock);

	watched[++numbers] = inbox;
	return numbers;
}

static void tell(void *arg)
{
	uint64_t number = reinterpret_cast<uintptr_t>(arg);
	std::lock_guard<std::mutex> held(watched_lock);
	auto found = watched.find(number);

	if (found == watched.end())
		return;
	try {
		found->second->given_up(number);
	} catch (const std::bad_alloc &) {
		/* The handler is not cancelled, and can ask whether anyone waits for it. */
	}
	watched.erase(found);
}

void forget(uint64_t number)
{
	std::lock_guard<std::mutex> held(watched_lock);

	watched.erase(number);
}

void turn_away(const Arrival &arrival, const char *why)
{
	if (arrival.stream)
		weft_stream_finish(arrival.stream, WEFT_UNAVAILABLE, why);
	else
		weft_served_fail(arrival.call, WEFT_UNAVAILABLE, why);
}

Inbox::Inbox() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC))
{
	if (fd_ < 0)
		throw std::bad_alloc();
}

Inbox::~Inbox()
{
	std::lock_guard<std::mutex> held(watched_lock);

	for (auto at = watched.begin(); at != watched.end();)
		at = at->second == this ? watched.erase(at) : std::next(at);
	::close(fd_);
}

void Inbox::ring()
{
	uint64_t one = 1;

	/* A counter that is full is as ready as any. */
	(void)!write(fd_, &one, sizeof(one));
}

void Inbox::come(Arrival arrival)
{
	uint64_t number = watch(this);

	arrival.number = number;
	/* Once the call is in, another thread may answer it. */
	weft_served_on_cancel(arrival.call, tell, reinterpret_cast<void *>(uintptr_t(number)));
	try {
		std::lock_guard<std::mutex> held(lock_);

		if (!closed_) {
			arrivals_.push_back(std::move(arrival));
			ring();
			return;
		}
	} catch (const std::bad_alloc &) {
		forget(number);
		throw;
	}
	forget(number);
	turn_away(arrival, "the server is closing");
}

void Inbox::given_up(uint64_t number)
{
	std::lock_guard<std::mutex> held(lock_);

	given_up_.push_back(number);
	ring();
}

void Inbox::take(std::vector<Arrival> *arrivals, std::vector<uint64_t> *given_up)
{
	std::lock_guard<std::mutex> held(lock_);
	uint64_t count;

	(void)!read(fd_, &count, sizeof(count));
	arrivals->swap(arrivals_);
	given_up->swap(given_up_);
}

void Inbox::close()
{
	std::vector<Arrival> arrivals;
	std::vector<uint64_t> none;

	{
		std::lock_guard<std::mutex> held(lock_);

		closed_ = true;
	}
	take(&arrivals, &none);
	for (const Arrival &arrival : arrivals) {
		forget(arrival.number);
		turn_away(arrival, "the server is closing");
	}
}
