/* SPDX-License-Identifier: BSD-2-Clause */
#include "line.h"

#include <algorithm>

#include "status.h"
#include "transfer.h"

namespace weft_nixl {
namespace {

constexpr size_t kAtOnceMax = 1024;

/* Put @transfer into @one, and nobody into @due.  False: it is given up, as there is no memory. */
bool put(const std::shared_ptr<Transfer> &transfer, std::list<std::shared_ptr<Transfer>> *one,
	 std::list<std::shared_ptr<Transfer>> *due)
{
	Status status = status_guard([&] {
		one->push_back(transfer);
		due->push_back(nullptr);
		return SUCCESS;
	});

	if (status != SUCCESS)
		transfer->give_up();
	return status == SUCCESS;
}

}  // namespace

bool Line::empty() const
{
	std::lock_guard<std::mutex> guard(lock_);

	return transfers_.empty();
}

void Line::join(const std::shared_ptr<Transfer> &transfer)
{
	Transfers one, due;

	if (!put(transfer, &one, &due))
		return;
	enter(&one, &due, false);
	call(due, Attempts::Clock::duration::zero());
}

void Line::wait(const std::shared_ptr<Transfer> &transfer, Attempts::Clock::duration pause)
{
	Transfers one, due;

	if (!put(transfer, &one, &due))
		return;
	enter(&one, &due, true);
	call(due, pause);
}

void Line::go_on(const std::shared_ptr<Transfer> &transfer)
{
	Transfers one, due;

	if (put(transfer, &one, &due))
		call(one, Attempts::Clock::duration::zero());
}

/* Take the transfer of @one in as the last.  @due has the first one then if that is to go on. */
void Line::enter(Transfers *one, Transfers *due, bool refused)
{
	std::lock_guard<std::mutex> guard(lock_);
	bool was_first = first_goes_ && transfers_.front() == one->front();

	if (refused)
		at_once_ = 1;
	if (was_first)
		transfers_.pop_front();
	transfers_.splice(transfers_.end(), *one);
	/* Where others have left the line the first waits for the end of one of those. */
	if (!was_first && (first_goes_ || (!refused && transfers_.size() > 1))) {
		due->clear();
		return;
	}
	first_goes_ = true;
	due->front() = transfers_.front();
}

void Line::leave(const Transfer *transfer)
{
	Transfers due;

	{
		std::lock_guard<std::mutex> guard(lock_);
		auto at = std::find_if(transfers_.begin(), transfers_.end(),
				       [transfer](const auto &one) { return one.get() == transfer; });

		if (at != transfers_.end()) {
			if (at == transfers_.begin())
				first_goes_ = false;
			transfers_.erase(at);
		}
		if (!first_goes_ && !transfers_.empty()) {
			at_once_ = std::min(2 * at_once_, kAtOnceMax);
			due.splice(due.end(), transfers_, transfers_.begin(),
				   std::next(transfers_.begin(),
					     std::min(at_once_, transfers_.size())));
		}
	}
	call(due, Attempts::Clock::duration::zero());
}

/* Have those of @due go on after @pause.  Those are given up that can't. */
void Line::call(const Transfers &due, Attempts::Clock::duration pause)
{
	for (const auto &one : due) {
		Status status = status_guard([&] {
			auto go_on = [one] { one->go_on(); };

			return retries_->add(pause, go_on) ? SUCCESS : BACKEND_ERROR;
		});

		if (status != SUCCESS)
			one->give_up();
	}
}

}  // namespace weft_nixl
