/* SPDX-License-Identifier: BSD-2-Clause */
#include "guest.h"

#include <chrono>

#include "status.h"

namespace weft_nixl {
namespace {

/* A program that has other work asks less often.  Not tuned. */
constexpr uint64_t kSoonNs = 50 * 1000;

/* A program with many transfers asks for the next of them after so long.  Not tuned. */
constexpr uint64_t kMomentNs = 10 * 1000;

uint64_t now_ns()
{
	auto now = std::chrono::steady_clock::now().time_since_epoch();

	return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

}  // namespace

Status Guest::open(struct weft_node *node)
{
	int err = weft_queue_open(node, &queue_);

	return err ? status_of_error(err, "no completion queue") : SUCCESS;
}

void Guest::close()
{
	if (queue_)
		weft_queue_close(queue_);
	queue_ = nullptr;
}

void Guest::again(Asked *asked) const
{
	struct weft_op *none;
	uint64_t now = now_ns();

	if (now - asked->exchange(now, std::memory_order_relaxed) > kSoonNs)
		return;
	(void)weft_queue_next(queue_, &none, 1, kMomentNs);
	asked->store(now_ns(), std::memory_order_relaxed);
}

}  // namespace weft_nixl
