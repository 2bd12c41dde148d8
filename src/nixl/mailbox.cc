/* SPDX-License-Identifier: BSD-2-Clause */
#include "mailbox.h"

#include <new>

#include <weft/memory.h>
#include <weft/tensor.h>

#include "log.h"
#include "status.h"

namespace weft_nixl {
namespace {

constexpr unsigned kNotesAtOnce = 32; /* notes taken in one turn of weft's: not tuned yet */
constexpr unsigned kLettersMax = 8;   /* long notifications that may wait for room in the inbox */

}  // namespace

/* FNV-1a, so that agents of all machines agree. */
uint64_t mailbox_step(const std::string &descriptor)
{
	uint64_t step = 0xcbf29ce484222325;

	for (unsigned char byte : descriptor)
		step = (step ^ byte) * 0x100000001b3;
	return step;
}

Status Mailbox::open(struct weft_node *node, std::shared_ptr<Inbox> inbox)
{
	char descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
	size_t bytes = sizeof(descriptor);
	int err;

	node_ = node;
	inbox_ = std::move(inbox);
	err = weft_window_open(node, &byte_, sizeof(byte_), WEFT_WINDOW_WRITE, &window_);
	if (!err)
		err = weft_window_describe(window_, descriptor, &bytes);
	if (!err)
		err = Listener::start(window_, inbox_, kNotesAtOnce, &listener_);
	if (err)
		return status_of_error(err, "no window for notifications");
	descriptor_.assign(descriptor, bytes);
	err = receive_long();
	return err ? status_of_error(err, "no receive of notifications") : SUCCESS;
}

int Mailbox::receive_long()
{
	struct weft_recv_options options = WEFT_RECV_OPTIONS_INIT;
	std::lock_guard<std::mutex> held(lock_);

	if (receive_)
		return 0;
	options.op.done = came;
	options.op.arg = this;
	options.flags = WEFT_RECV_MANY;
	options.many_max = kLettersMax;
	/* The receive is freed where it is told, like each of its tensors. */
	return weft_recv(node_, nullptr, mailbox_step(descriptor_), descriptor_.data(),
			 descriptor_.size(), nullptr, &options, &receive_);
}

bool Mailbox::has_run_out(const struct weft_op *op)
{
	std::lock_guard<std::mutex> held(lock_);

	if (op != receive_ || weft_op_status(op) != WEFT_RESOURCE_EXHAUSTED)
		return false;
	receive_ = nullptr;
	return true;
}

void Mailbox::close()
{
	if (listener_)
		listener_->stop();
}

void Mailbox::came(struct weft_op *op, void *arg)
{
	auto *mailbox = static_cast<Mailbox *>(arg);
	const struct weft_tensor *tensor = weft_op_tensor(op, nullptr);
	enum weft_status status = weft_op_status(op);
	bool room = true;
	uint64_t bytes;

	/* Notifications that came are not lost, but wait for another receive. */
	if (mailbox->has_run_out(op)) {
		log_line(LOG_WARN, "long notifications wait until the program asks for some: %s",
			 weft_op_message(op));
		weft_op_free(op);
		return;
	}
	if (status != WEFT_OK && status != WEFT_CANCELLED)
		log_line(LOG_ERROR, "a long notification is lost: %s: %s", weft_status_name(status),
			 weft_op_message(op));
	try {
		if (tensor && tensor->data && !weft_tensor_bytes(tensor, &bytes))
			room = mailbox->inbox_->add(tensor->data, bytes);
		if (!room) {
			/* An operation that is not freed takes one of the places for long ones. */
			weft_free(mailbox->node_, weft_op_take(op));
			mailbox->inbox_->when_empty([op] { weft_op_free(op); });
			return;
		}
	} catch (const std::bad_alloc &) {
		log_line(LOG_ERROR, "a notification is lost: there is no memory");
	}
	weft_op_free(op);
}

}  // namespace weft_nixl
