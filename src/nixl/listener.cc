/* SPDX-License-Identifier: BSD-2-Clause */
#include "listener.h"

#include <cerrno>
#include <new>

#include "log.h"

namespace weft_nixl {

Listener::Listener(struct weft_window *window, std::shared_ptr<Inbox> inbox)
	: window_(window), inbox_(std::move(inbox))
{
}

int Listener::start(struct weft_window *window, std::shared_ptr<Inbox> inbox, unsigned depth,
		    std::shared_ptr<Listener> *out)
{
	auto listener = std::make_shared<Listener>(window, std::move(inbox));

	for (unsigned i = 0; i < depth; i++) {
		auto *share = new Share(listener);
		int err = listener->next(share);

		if (err) {
			delete share;
			listener->stop();
			return err;
		}
	}
	*out = std::move(listener);
	return 0;
}

void Listener::stop()
{
	std::lock_guard<std::mutex> guard(lock_);

	window_ = nullptr;
}

void Listener::take_rest(struct weft_window *window)
{
	/* No more than the window has: peers may send others meanwhile. */
	for (unsigned i = 0; i < WEFT_NOTES_MAX && take_one(window); i++)
		;
}

/* Take a note of @window that is there.  False: there is none. */
bool Listener::take_one(struct weft_window *window)
{
	struct weft_op_options options = WEFT_OP_OPTIONS_INIT;
	const struct weft_note *note;
	struct weft_op *op;

	options.timeout_ns = WEFT_FOREVER;
	if (weft_window_next(window, &options, &op))
		return false;
	/* An operation that finds a note has it before it hears of the end. */
	weft_cancel(op);
	(void)weft_wait(op, WEFT_FOREVER);
	note = weft_op_note(op);
	try {
		if (note)
			(void)inbox_->add(note->data, note->bytes);
	} catch (const std::bad_alloc &) {
		log_line(LOG_ERROR, "a notification is lost: there is no memory");
	}
	weft_op_free(op);
	return note;
}

/* Begin the operation that takes the next note, and has @share then. */
int Listener::next(Share *share)
{
	struct weft_op_options options = WEFT_OP_OPTIONS_INIT;
	std::lock_guard<std::mutex> guard(lock_);

	options.timeout_ns = WEFT_FOREVER;
	options.done = came;
	options.arg = share;
	return window_ ? weft_window_next(window_, &options, nullptr) : -ECANCELED;
}

/* Note that a share is missing. */
void Listener::miss()
{
	std::lock_guard<std::mutex> guard(lock_);

	missing_++;
}

/* Returns whether a share is missing, which the caller makes then. */
bool Listener::make_up()
{
	std::lock_guard<std::mutex> guard(lock_);

	if (!missing_)
		return false;
	missing_--;
	return true;
}

/* Begin the next operation with @share, which is gone if that fails. */
bool Listener::begin(Share *share)
{
	int err = (*share)->next(share);

	if (!err)
		return true;
	if (err != -ECANCELED) {
		(*share)->miss();
		log_line(LOG_ERROR, "fewer notes of a window are taken at once: %s", weft_error());
	}
	delete share;
	return false;
}

/* Take the next note with @share, and make up for shares that are missing. */
void Listener::go_on(Share *share)
{
	Share listener = *share;

	while (begin(share) && listener->make_up()) {
		share = new (std::nothrow) Share(listener);
		if (!share) {
			listener->miss();
			return;
		}
	}
}

void Listener::came(struct weft_op *op, void *arg)
{
	auto *share = static_cast<Share *>(arg);
	const struct weft_note *note = weft_op_note(op);

	if (!note) {
		delete share;
		return;
	}
	try {
		if ((*share)->inbox_->add(note->data, note->bytes)) {
			go_on(share);
			return;
		}
		(*share)->inbox_->when_empty([share] { go_on(share); });
	} catch (const std::bad_alloc &) {
		log_line(LOG_ERROR, "a notification is lost: there is no memory");
		go_on(share);
	}
}

}  // namespace weft_nixl
