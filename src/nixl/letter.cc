/* SPDX-License-Identifier: BSD-2-Clause */
#include "letter.h"

#include "log.h"
#include "status.h"

namespace weft_nixl {
namespace {

/* A notification that an operation borrows until it ends. */
struct Letter {
	std::shared_ptr<Connection> connection;
	std::string packed;
	Attempts attempts;
};

int begin(Letter *letter);

/* Begin to send @letter again; no program waits for that. */
void begin_again(Letter *letter)
{
	int err = begin(letter);

	if (!err)
		return;
	(void)status_of_error(err, "a notification is lost");
	delete letter;
}

/* Have @letter, which the other agent had no room for, sent again.  False: the time is over. */
bool retry(Letter *letter)
{
	/* A retry that begins may delete the letter before add() has returned. */
	std::shared_ptr<Connection> connection = letter->connection;

	return letter->attempts.may_go_on() &&
	       connection->node()->retries().add(letter->attempts.pause(false),
						 [letter] { begin_again(letter); });
}

void sent(struct weft_op *op, void *arg)
{
	auto *letter = static_cast<Letter *>(arg);
	enum weft_status outcome = weft_op_status(op);

	if (outcome == WEFT_RESOURCE_EXHAUSTED && retry(letter))
		return;
	if (outcome != WEFT_OK)
		log_line(LOG_ERROR, "a notification fails with %s: %s", weft_status_name(outcome),
			 weft_op_message(op));
	delete letter;
}

/* Begin to send @letter.  A negative code: of weft. */
int begin(Letter *letter)
{
	struct weft_op_options options = WEFT_OP_OPTIONS_INIT;

	options.timeout_ns = letter->attempts.left_ns();
	options.done = sent;
	options.arg = letter;
	return letter->connection->send(letter->packed, options, nullptr);
}

}  // namespace

Status letter_send(std::shared_ptr<Connection> connection, std::string packed)
{
	auto *letter = new Letter{std::move(connection), std::move(packed), {}};
	int err;

	letter->attempts.start(letter->connection->node()->timeout_ns());
	err = begin(letter);
	if (!err)
		return SUCCESS;
	delete letter;
	return status_of_error(err, "no notification");
}

}  // namespace weft_nixl
