/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Line: transfers to one agent that have no room there, as it refused some of their operations, and
 * those that were posted since.
 *
 * Only the first of the line goes on, a round of its operations at a time: many at once would take
 * the room from each other, and none would end.  One that is refused again becomes the last.
 *
 * Threads: any.
 */
#ifndef WEFT_NIXL_LINE_H
#define WEFT_NIXL_LINE_H

#include <deque>
#include <memory>
#include <mutex>

#include "retry.h"

namespace weft_nixl {

class Transfer;

class Line {
public:
	explicit Line(Retries *retries) : retries_(retries) {}

	/* Returns whether no transfer waits, or goes on as the first. */
	bool empty() const;

	/*
	 * Have @transfer go on in its turn, as the last of the line; or, where it was the first and
	 * there is no pause, as that again.  The first goes on after @pause.  May give up @transfer
	 * inside, see Transfer.
	 */
	void wait(const std::shared_ptr<Transfer> &transfer, Attempts::Clock::duration pause);

	/* Let the next go on, if @transfer is the first: it is in the line no more. */
	void leave(const Transfer *transfer);

private:
	std::shared_ptr<Transfer> remove(const Transfer *transfer);
	void call(std::shared_ptr<Transfer> first, Attempts::Clock::duration pause);

	Retries *const retries_;
	mutable std::mutex lock_;
	std::deque<std::shared_ptr<Transfer>> transfers_;
};

}  // namespace weft_nixl

#endif
