/* SPDX-License-Identifier: BSD-2-Clause */
#include "line.h"

#include <algorithm>

#include "status.h"
#include "transfer.h"

namespace weft_nixl {

bool Line::empty() const
{
	std::lock_guard<std::mutex> guard(lock_);

	return transfers_.empty();
}

void Line::wait(const std::shared_ptr<Transfer> &transfer, Attempts::Clock::duration pause)
{
	std::shared_ptr<Transfer> first;
	Status status = status_guard([&] {
		std::lock_guard<std::mutex> guard(lock_);
		bool was_first = !transfers_.empty() && transfers_.front() == transfer;

		if (!was_first || pause.count())
			transfers_.push_back(transfer);
		if (was_first && pause.count())
			transfers_.pop_front();
		if (was_first || transfers_.size() == 1)
			first = transfers_.front();
		return SUCCESS;
	});

	if (status != SUCCESS)
		transfer->give_up();
	call(std::move(first), pause);
}

void Line::leave(const Transfer *transfer)
{
	call(remove(transfer), Attempts::Clock::duration::zero());
}

/* Remove @transfer, if it is there.  Returns the one whose turn it is then; NULL: no other's. */
std::shared_ptr<Transfer> Line::remove(const Transfer *transfer)
{
	std::lock_guard<std::mutex> guard(lock_);
	auto at = std::find_if(transfers_.begin(), transfers_.end(),
			       [transfer](const auto &one) { return one.get() == transfer; });
	bool first = at == transfers_.begin();

	if (at == transfers_.end())
		return nullptr;
	transfers_.erase(at);
	return first && !transfers_.empty() ? transfers_.front() : nullptr;
}

/* Have @first go on after @pause; NULL: nobody.  Those are given up that can't. */
void Line::call(std::shared_ptr<Transfer> first, Attempts::Clock::duration pause)
{
	while (first) {
		Status status = status_guard([&] {
			auto go_on = [first] { first->go_on(); };

			return retries_->add(pause, go_on) ? SUCCESS : BACKEND_ERROR;
		});

		if (status == SUCCESS)
			return;

		std::shared_ptr<Transfer> next = remove(first.get());

		first->give_up();
		first = std::move(next);
	}
}

}  // namespace weft_nixl
