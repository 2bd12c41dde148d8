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
};

void sent(struct weft_op *op, void *arg)
{
	auto *letter = static_cast<Letter *>(arg);

	if (weft_op_status(op) != WEFT_OK)
		log_line(LOG_ERROR, "a notification fails with %s: %s",
			 weft_status_name(weft_op_status(op)), weft_op_message(op));
	delete letter;
}

}  // namespace

Status letter_send(std::shared_ptr<Connection> connection, std::string packed)
{
	auto *letter = new Letter{std::move(connection), std::move(packed)};
	int err = letter->connection->send(letter->packed, sent, letter, nullptr);

	if (!err)
		return SUCCESS;
	delete letter;
	return status_of_error(err, "no notification");
}

}  // namespace weft_nixl
