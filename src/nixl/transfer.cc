/* SPDX-License-Identifier: BSD-2-Clause */
#include "transfer.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>

#include "log.h"
#include "status.h"

namespace weft_nixl {
namespace {

constexpr size_t kCopyAtOnceBytes = 256 << 10; /* some 30 us: not tuned yet */
constexpr size_t kCopyBytes = 1 << 20;         /* between two looks whether to go on */
constexpr std::chrono::milliseconds kMoment(10);

}  // namespace

Transfer::Transfer(Direction direction, std::shared_ptr<Connection> connection,
		   std::shared_ptr<Inbox> inbox)
	: direction_(direction), connection_(std::move(connection)), inbox_(std::move(inbox))
{
}

Transfer::Part *Transfer::part_for(const std::shared_ptr<RemoteWindow> &window,
				   const Registration &registration)
{
	const Registration *here = direction_ == READ ? &registration : nullptr;
	const struct weft_device &device = registration.device();

	/* The last part first: lists mostly stay in one window for long. */
	for (auto part = parts_.rbegin(); part != parts_.rend(); ++part)
		if (part->window == window && part->here == here &&
		    part->device.type == device.type && part->device.id == device.id &&
		    part->blocks.size() < WEFT_BLOCKS_MAX)
			return &*part;
	parts_.push_back({this, window, here, device, {}, false});
	return &parts_.back();
}

void Transfer::use(const std::shared_ptr<Registration> &registration)
{
	if (std::find(registrations_.rbegin(), registrations_.rend(), registration) ==
	    registrations_.rend())
		registrations_.push_back(registration);
}

Status Transfer::add(const std::shared_ptr<Registration> &registration, uintptr_t here,
		     const std::shared_ptr<RemoteWindow> &window, uintptr_t there, size_t bytes)
{
	struct weft_block block = {reinterpret_cast<void *>(here), 0, bytes};

	if (!bytes)
		return SUCCESS;
	if (!registration->has(here, bytes) || !window->locate(there, bytes, &block.remote)) {
		log_line(LOG_ERROR, "a block of %zu bytes is beyond registered memory", bytes);
		return INVALID_PARAMETER;
	}
	use(registration);
	part_for(window, *registration)->blocks.push_back(block);
	return SUCCESS;
}

Status Transfer::add_own(const std::shared_ptr<Registration> &from, uintptr_t here,
			 const std::shared_ptr<Registration> &to, uintptr_t there, size_t bytes)
{
	char *memory_here = reinterpret_cast<char *>(here);
	char *memory_there = reinterpret_cast<char *>(there);

	if (!from->has(here, bytes) || !to->has(there, bytes)) {
		log_line(LOG_ERROR, "a block of %zu bytes is beyond registered memory", bytes);
		return INVALID_PARAMETER;
	}
	if (from->device().type != WEFT_CPU || to->device().type != WEFT_CPU) {
		log_line(LOG_ERROR, "memory of GPUs is not copied within one agent");
		return NOT_SUPPORTED;
	}
	use(from);
	use(to);
	if (direction_ == READ)
		copies_.push_back({memory_here, memory_there, bytes});
	else
		copies_.push_back({memory_there, memory_here, bytes});
	copy_bytes_ += bytes;
	return SUCCESS;
}

/* Enter at all registrations.  CANCELED: one is closing. */
Status Transfer::enter()
{
	return status_guard([this] {
		for (auto &registration : registrations_) {
			if (registration->enter(self_))
				continue;
			log_line(LOG_ERROR, "memory of a transfer is being deregistered");
			return CANCELED;
		}
		return SUCCESS;
	});
}

/* Leave all registrations, also those that were not entered. */
void Transfer::leave()
{
	for (auto &registration : registrations_)
		registration->leave(this);
}

/* Be under way, held by post() alone. */
void Transfer::start()
{
	std::lock_guard<std::mutex> guard(lock_);

	outcome_ = SUCCESS;
	cancelled_ = false;
	refused_ = paused_ = false;
	for (Part &part : parts_)
		part.waiting = true;
	width_ = waiting_ = parts_.size();
	if (connection_)
		attempts_.start(connection_->node()->timeout_ns());
	pending_ = 1;
	self_ = shared_from_this();
	status_ = IN_PROGRESS;
}

Status Transfer::post(std::string notification, Copier *copier)
{
	Status entered;

	if (notification.size() > kNotificationBytesMax) {
		log_line(LOG_ERROR, "a notification of %zu bytes is too long", notification.size());
		return INVALID_PARAMETER;
	}
	if (check() == IN_PROGRESS)
		return REPOST_ACTIVE;
	ops_.reserve(parts_.size() + 1);
	ended_ops_.reserve(parts_.size() + 1);
	notification_ = std::move(notification);
	rides_ = !notification_.empty() && parts_.size() == 1 &&
		 notification_.size() <= WEFT_NOTE_BYTES_MAX;
	to_notify_ = !notification_.empty() && !rides_;
	start();
	/* A registration that was entered may cancel from now on. */
	entered = enter();
	if (entered != SUCCESS) {
		to_notify_ = false;
		fail(entered);
		drop();
		return check();
	}

	if (!copies_.empty()) {
		if (copy_bytes_ <= kCopyAtOnceBytes || !copier->add(self_))
			copy();
	} else if (queue_up()) {
		connection_->line().join(shared_from_this());
	} else {
		begin_round();
	}
	return check();
}

/* Returns the options of the operation of @part. */
struct weft_op_options Transfer::options_for(Part *part) const
{
	struct weft_op_options options = WEFT_OP_OPTIONS_INIT;

	options.timeout_ns = attempts_.left_ns();
	options.done = ended;
	options.arg = part;
	return options;
}

/* Begin the operation of @part. */
void Transfer::begin(Part *part)
{
	struct weft_access_options options = WEFT_ACCESS_OPTIONS_INIT;
	struct weft_op *op = nullptr;
	int err;

	if (!hold())
		return;
	options.op = options_for(part);
	options.device = part->device;
	/* NIXL's programs see to it that memory is ready when they post. */
	options.stream = WEFT_NO_STREAM;
	if (rides_) {
		options.flags = WEFT_NOTE;
		options.note = notification_.data();
		options.note_bytes = notification_.size();
	}
	if (direction_ == READ)
		err = weft_get(part->window->get(), part->blocks.data(), part->blocks.size(),
			       &options, &op);
	else
		err = weft_put(part->window->get(), part->blocks.data(), part->blocks.size(),
			       &options, &op);
	begun(err, op, direction_ == READ ? "no read" : "no write");
}

/* Send the notification, after all else. */
void Transfer::notify()
{
	struct weft_op *op = nullptr;

	to_notify_ = false;
	if (!connection_)
		fail(status_guard([this] {
			/* An inbox that is full takes what comes from here all the same. */
			(void)inbox_->add(notification_.data(), notification_.size());
			return SUCCESS;
		}));
	else if (hold())
		begun(connection_->send(notification_, options_for(&note_), &op), op,
		      "no notification");
}

/* Count an operation that is about to begin.  False: the transfer was cancelled, or has failed. */
bool Transfer::hold()
{
	std::lock_guard<std::mutex> guard(lock_);

	if (cancelled_ && outcome_ == SUCCESS)
		outcome_ = CANCELED;
	if (outcome_ != SUCCESS)
		return false;
	pending_++;
	return true;
}

/* Keep @op, which has begun, until the end of the transfer; or deal with @err. */
void Transfer::begun(int err, struct weft_op *op, const char *what)
{
	if (!err) {
		{
			std::lock_guard<std::mutex> guard(lock_);

			ops_.push_back(op);
		}
		/* A cancel that came before this did not see the operation. */
		if (cancelled_)
			weft_cancel(op);
		return;
	}
	fail(status_of_error(err, what));
	drop();
}

/* Let the first failure be the outcome. */
void Transfer::fail(Status status)
{
	std::lock_guard<std::mutex> guard(lock_);

	if (outcome_ == SUCCESS)
		outcome_ = status;
}

void Transfer::drop()
{
	bool last;

	{
		std::lock_guard<std::mutex> guard(lock_);

		last = !--pending_;
	}
	if (last)
		finish();
}

/* An operation has ended; its handle stays, for cancel(). */
void Transfer::ended(struct weft_op *op, void *arg)
{
	auto *part = static_cast<Part *>(arg);
	Transfer *transfer = part->transfer;
	enum weft_status outcome = weft_op_status(op);

	if (outcome != WEFT_OK &&
	    (outcome != WEFT_RESOURCE_EXHAUSTED || !transfer->refuse(part))) {
		if (outcome != WEFT_CANCELLED)
			log_line(LOG_ERROR, "%s fails with %s: %s",
				 transfer->direction_ == READ ? "a read" : "a write",
				 weft_status_name(outcome), weft_op_message(op));
		transfer->fail(status_of(outcome));
	}
	transfer->drop();
}

/* Have @part begun again, which the other agent had no room for.  False: there is no time. */
bool Transfer::refuse(Part *part)
{
	std::lock_guard<std::mutex> guard(lock_);

	if (!attempts_.may_go_on())
		return false;
	refused_ = true;
	if (part == &note_) {
		to_notify_ = true;
	} else {
		part->waiting = true;
		waiting_++;
	}
	return true;
}

/* Returns the first part that waits, from index *@from on, which it does no more; NULL: none. */
Transfer::Part *Transfer::next_waiting(size_t *from)
{
	std::lock_guard<std::mutex> guard(lock_);

	while (*from < parts_.size()) {
		Part *part = &parts_[(*from)++];

		if (!part->waiting)
			continue;
		part->waiting = false;
		waiting_--;
		return part;
	}
	return nullptr;
}

/* Returns whether this call has ended the pause, whose count of the operations the caller has. */
bool Transfer::end_pause()
{
	std::lock_guard<std::mutex> guard(lock_);
	bool paused = paused_;

	paused_ = false;
	return paused;
}

/* Returns whether the transfer, which no round has begun of, is to wait in the line. */
bool Transfer::queue_up()
{
	if (!connection_ || connection_->line().empty())
		return false;

	std::lock_guard<std::mutex> guard(lock_);

	paused_ = !cancelled_;
	return paused_;
}

void Transfer::begin_round()
{
	size_t from = 0;

	for (size_t begun = 0; begun < width_; begun++) {
		Part *part = next_waiting(&from);

		if (!part)
			break;
		begin(part);
	}
	drop();
}

void Transfer::go_on()
{
	if (end_pause())
		begin_round();
	else
		connection_->line().leave(this);
}

void Transfer::give_up()
{
	if (!end_pause()) {
		/* A cancel has ended it meanwhile; others may wait for its turn. */
		connection_->line().leave(this);
		return;
	}
	log_line(LOG_ERROR, "a transfer that was refused does not go on");
	fail(BACKEND_ERROR);
	drop();
}

/* A round is over: plan the next one, after *@pause.  Locked.  False: there is none. */
bool Transfer::plan_round(Attempts::Clock::duration *pause)
{
	if (!refused_ && !waiting_)
		return false;
	if (cancelled_ && outcome_ == SUCCESS)
		outcome_ = CANCELED;
	if (outcome_ != SUCCESS)
		return false;
	width_ = refused_ ? std::max<size_t>(width_ / 2, 1) : std::min(2 * width_, parts_.size());
	*pause = attempts_.pause(!refused_);
	refused_ = false;
	paused_ = true;
	return true;
}

/* All operations have ended: begin the next ones, or tell the outcome. */
void Transfer::finish()
{
	std::shared_ptr<Transfer> self = shared_from_this();
	Attempts::Clock::duration pause;
	bool again, more;
	Status outcome;

	{
		std::lock_guard<std::mutex> guard(lock_);

		ops_.swap(ended_ops_);
	}
	for (struct weft_op *op : ended_ops_)
		weft_op_free(op);
	ended_ops_.clear();
	/* A cancel may end a pause from here on, and come here as well. */
	{
		std::lock_guard<std::mutex> guard(lock_);

		again = plan_round(&pause);
		outcome = outcome_;
		more = to_notify_ && outcome == SUCCESS;
		if (again || more)
			pending_ = 1;
		else
			self_.reset();
	}
	if (again && pause.count()) {
		connection_->line().wait(self, pause);
	} else if (again) {
		connection_->line().go_on(self);
	} else if (more) {
		notify();
		drop();
	} else {
		if (connection_)
			connection_->line().leave(this);
		leave();
		/* A thread that sees the outcome may post the transfer again, or let go of it. */
		status_.store(outcome, std::memory_order_release);
	}
}

void Transfer::cancel()
{
	std::unique_lock<std::mutex> guard(lock_);

	cancelled_ = true;
	if (!pending_)
		return;
	if (paused_) {
		paused_ = false;
		guard.unlock();
		fail(CANCELED);
		drop();
		return;
	}
	/* The handles stay meanwhile; what is begun now sees the cancel by itself. */
	pending_++;
	for (size_t i = 0; i < ops_.size(); i++) {
		struct weft_op *op = ops_[i];

		guard.unlock();
		weft_cancel(op);
		guard.lock();
	}
	guard.unlock();
	drop();
}

bool Transfer::wait_a_moment() const
{
	auto until = std::chrono::steady_clock::now() + kMoment;

	while (check() == IN_PROGRESS) {
		if (std::chrono::steady_clock::now() >= until)
			return false;
		std::this_thread::sleep_for(std::chrono::microseconds(50));
	}
	return true;
}

void Transfer::copy()
{
	for (const Copy &copy : copies_) {
		for (size_t done = 0; done < copy.bytes && !cancelled_;) {
			size_t bytes = std::min(copy.bytes - done, kCopyBytes);

			memmove(copy.to + done, copy.from + done, bytes);
			done += bytes;
		}
	}
	if (cancelled_)
		fail(CANCELED);
	drop();
}

}  // namespace weft_nixl
