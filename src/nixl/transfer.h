/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transfer: blocks of bytes between memory here and memory of one agent, which may be this one.
 *
 * The blocks are sorted into parts, one for each window there and device here, and at most
 * WEFT_BLOCKS_MAX blocks; a part is one operation of weft.  A read has one for each registration
 * here, too: what weft registers for a get may have a hole between two.  A notification travels
 * with the only operation if there is one and it fits a note; else by itself, when all parts have
 * ended well.
 *
 * Parts are begun in rounds, the first of which has all.  Those that the other agent had no room
 * for are begun again in the next one, until the time of the transfer is over.  A round in which
 * some were refused is followed by one of half as many, in the transfer's turn (line.h) and after a
 * pause.
 *
 * A transfer is posted any number of times, one after the other.  While it is under way it keeps
 * itself alive, so that its program may give it up, and the memory here entered at its
 * registrations.
 *
 * Threads: any; add() and post() from one at a time.
 */
#ifndef WEFT_NIXL_TRANSFER_H
#define WEFT_NIXL_TRANSFER_H

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "connection.h"
#include "copier.h"
#include "registration.h"
#include "retry.h"

namespace weft_nixl {

class Transfer : public std::enable_shared_from_this<Transfer> {
public:
	/* A transfer to the agent of @connection; NULL: to this one. */
	Transfer(Direction direction, std::shared_ptr<Connection> connection,
		 std::shared_ptr<Inbox> inbox);

	/* Add @bytes at @here of @registration, and @there in @window. */
	Status add(const std::shared_ptr<Registration> &registration, uintptr_t here,
		   const std::shared_ptr<RemoteWindow> &window, uintptr_t there, size_t bytes);

	/* Add @bytes at @here of @from, and @there in @to, memory of this agent's. */
	Status add_own(const std::shared_ptr<Registration> &from, uintptr_t here,
		       const std::shared_ptr<Registration> &to, uintptr_t there, size_t bytes);

	/*
	 * Begin, with a notification as it travels, or none if it is empty.  IN_PROGRESS, or
	 * SUCCESS: it has ended.  Failures are logged.
	 */
	Status post(std::string notification, Copier *copier);

	/* Returns how the transfer stands. */
	Status check() const { return status_.load(std::memory_order_acquire); }

	/* Ask for an early end. */
	void cancel();

	/* Wait for the end of what was cancelled, for a moment.  False: it goes on. */
	bool wait_a_moment() const;

	/* Begin the next round, or fail instead; for line.cc. */
	void go_on();
	void give_up();

	/* Make the copies of a transfer to this agent.  Threads: the copier's, or that of post(). */
	void copy();

private:
	struct Part {
		Transfer *transfer;
		std::shared_ptr<RemoteWindow> window; /* NULL: the notification by itself */
		const Registration *here; /* NULL: of any, as of a write */
		struct weft_device device;
		std::vector<struct weft_block> blocks;
		bool waiting; /* for its round */
	};
	struct Copy {
		char *to;
		const char *from;
		size_t bytes;
	};

	Part *part_for(const std::shared_ptr<RemoteWindow> &window,
		       const Registration &registration);
	void use(const std::shared_ptr<Registration> &registration);
	void start();
	Status enter();
	void leave();
	void begin(Part *part);
	void notify();
	struct weft_op_options options_for(Part *part) const;
	bool refuse(Part *part);
	bool queue_up();
	Part *next_waiting(size_t *from);
	void begin_round();
	bool end_pause();
	bool plan_round(Attempts::Clock::duration *pause);
	bool hold();
	void drop();
	void begun(int err, struct weft_op *op, const char *what);
	void fail(Status status);
	void finish();
	static void ended(struct weft_op *op, void *arg);

	const Direction direction_;
	const std::shared_ptr<Connection> connection_;
	const std::shared_ptr<Inbox> inbox_;
	std::vector<Part> parts_;
	Part note_{this, nullptr, nullptr, {}, {}, false};
	std::vector<Copy> copies_;
	size_t copy_bytes_ = 0;
	std::vector<std::shared_ptr<Registration>> registrations_;

	std::string notification_;
	bool rides_ = false;     /* the notification is the note of the only part */
	bool to_notify_ = false; /* when all parts have ended */
	std::atomic<Status> status_{NOT_POSTED};
	std::atomic<bool> cancelled_{false};

	std::mutex lock_; /* protects what follows */
	unsigned pending_ = 0; /* operations that have not ended, and functions that hold them */
	Status outcome_ = SUCCESS;
	std::vector<struct weft_op *> ops_, ended_ops_;
	Attempts attempts_;
	size_t width_ = 0;     /* most parts of a round */
	size_t waiting_ = 0;   /* parts that wait for a round */
	bool refused_ = false; /* some operation of the round was */
	bool paused_ = false;  /* no operation is under way, before a round */
	std::shared_ptr<Transfer> self_;
};

}  // namespace weft_nixl

#endif
