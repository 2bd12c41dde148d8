/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Guest: a thread of the program's that asks again and again whether something has come, and turns
 * the node's loop meanwhile, as one that waits for an operation does.
 *
 * Such a thread has a core for itself, often the one that weft's thread would need, and what it waits
 * for comes without a hand-off between the two.
 *
 * Threads: any; open() and close() while nobody else uses the guest.
 */
#ifndef WEFT_NIXL_GUEST_H
#define WEFT_NIXL_GUEST_H

#include <atomic>
#include <cstdint>

#include <weft/queue.h>

#include "nixl.h"

namespace weft_nixl {

class Guest {
public:
	/* When the program last asked for one thing, in nanoseconds; 0: never. */
	using Asked = std::atomic<uint64_t>;

	Guest() = default;
	~Guest() { close(); }
	Guest(const Guest &) = delete;
	void operator=(const Guest &) = delete;

	Status open(struct weft_node *node);
	void close();

	/*
	 * Turn the loop for a moment, for what has not come, if that was asked for at @asked, just
	 * before, as in a loop of the program's that does nothing else.
	 */
	void again(Asked *asked) const;

private:
	struct weft_queue *queue_ = nullptr; /* no operation ends there: to wait for it is to turn the loop */
};

}  // namespace weft_nixl

#endif
