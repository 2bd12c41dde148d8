/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Line: transfers to one agent that have no room there, as it refused some of their operations, and
 * those that were posted since.
 *
 * After a refusal only the first of the line goes on, a round of its operations at a time: many at
 * once would take the room from each other, and none would end.  One that is refused again becomes
 * the last.  With each transfer that ends twice as many of those that wait leave the line and go
 * on, so that it is empty again soon after there is room.
 *
 * Threads: any.
 */
#ifndef WEFT_NIXL_LINE_H
#define WEFT_NIXL_LINE_H

#include <list>
#include <memory>
#include <mutex>

#include "retry.h"

namespace weft_nixl {

class Transfer;

/* In all functions a transfer that can't go on, for lack of memory, is given up inside. */
class Line {
public:
	explicit Line(Retries *retries) : retries_(retries) {}

	/* Returns whether no transfer waits, or goes on as the first. */
	bool empty() const;

	/* Have @transfer, which was posted while others wait, go on in its turn. */
	void join(const std::shared_ptr<Transfer> &transfer);

	/* Have @transfer, which was refused, go on in its turn; the first one goes on after @pause. */
	void wait(const std::shared_ptr<Transfer> &transfer, Attempts::Clock::duration pause);

	/* Have @transfer, which was not refused, go on with what it has left. */
	void go_on(const std::shared_ptr<Transfer> &transfer);

	/* Let others go on, as @transfer has ended, which is in the line no more. */
	void leave(const Transfer *transfer);

private:
	using Transfers = std::list<std::shared_ptr<Transfer>>;

	void enter(Transfers *one, Transfers *due, bool refused);
	void call(const Transfers &due, Attempts::Clock::duration pause);

	Retries *const retries_;
	mutable std::mutex lock_;
	Transfers transfers_;
	bool first_goes_ = false; /* the first goes on, and its end lets others */
	size_t at_once_ = 1;      /* transfers that the last one to end has let go on */
};

}  // namespace weft_nixl

#endif
