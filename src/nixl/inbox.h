/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inbox: notifications that have come, until the program takes them; and their form on the way.
 *
 * A notification travels as 8 bytes of head, the name of the agent that it is from, and its text.
 * The name is the peer's own claim.
 *
 * The inbox is bounded: whoever fills it brings no more before the program has emptied it.  By then
 * windows of weft hold what comes, up to bounds of their own, and peers hear RESOURCE_EXHAUSTED
 * after that; nothing that was taken is lost.
 *
 * Threads: any, callbacks of weft among them.
 */
#ifndef WEFT_NIXL_INBOX_H
#define WEFT_NIXL_INBOX_H

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "nixl.h"

namespace weft_nixl {

constexpr size_t kNotificationBytesMax = 16 << 20; /* one, with its head: not tuned yet */

/* Returns a notification of @agent's as it travels. */
std::string notification_pack(const std::string &agent, const std::string &text);

class Inbox {
public:
	/*
	 * Add the notification that @data holds, as it travels; what makes no sense is logged and
	 * dropped.  False: there is no room for another one now, see when_empty().
	 */
	bool add(const void *data, size_t bytes);

	/* Call @go_on, once, when the inbox has been emptied or is closed. */
	void when_empty(std::function<void()> go_on);

	/* Move all to the end of @out. */
	void take(Notifications *out);

	/* Go on with all that waits for room: nothing is taken any more. */
	void close();

private:
	std::mutex lock_;
	Notifications notifications_;
	size_t bytes_ = 0; /* bytes of names and texts */
	bool closed_ = false;
	std::vector<std::function<void()>> waiting_;
};

}  // namespace weft_nixl

#endif
