/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listener: takes the notes of one window, which are notifications, into the inbox, as long as the
 * window is open.
 *
 * Threads: any, but as functions say.
 */
#ifndef WEFT_NIXL_LISTENER_H
#define WEFT_NIXL_LISTENER_H

#include <memory>
#include <mutex>

#include <weft/window.h>

#include "inbox.h"

namespace weft_nixl {

class Listener {
public:
	/*
	 * Listen to @window with @depth operations, each of which takes a note.  A negative code:
	 * of weft, whose sentence is there.
	 */
	static int start(struct weft_window *window, std::shared_ptr<Inbox> inbox, unsigned depth,
			 std::shared_ptr<Listener> *out);

	/* Begin no operation any more: the window may be closed then, which ends the rest. */
	void stop();

	/*
	 * Take the notes that @window, which was listened to, has still: however full the inbox is,
	 * as their senders were told that they had come.  Threads: one, and not in a callback.
	 */
	void take_rest(struct weft_window *window);

	Listener(struct weft_window *window, std::shared_ptr<Inbox> inbox);

private:
	/* An operation's share of the listener, which goes from one operation to the next. */
	using Share = std::shared_ptr<Listener>;

	static void came(struct weft_op *op, void *arg);
	static void go_on(Share *share);
	bool take_one(struct weft_window *window);
	static bool begin(Share *share);
	int next(Share *share);
	void miss();
	bool make_up();

	std::mutex lock_;
	struct weft_window *window_; /* NULL: stopped */
	unsigned missing_ = 0; /* shares for which there was no memory */
	const std::shared_ptr<Inbox> inbox_;
};

}  // namespace weft_nixl

#endif
