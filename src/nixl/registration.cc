/* SPDX-License-Identifier: BSD-2-Clause */
#include "registration.h"

#include "device.h"
#include "log.h"
#include "status.h"
#include "transfer.h"

namespace weft_nixl {
namespace {

constexpr unsigned kNotesAtOnce = 4; /* notes that are taken in one turn of weft's: not tuned yet */

}  // namespace

Registration::Registration(const Registrable &memory, struct weft_device device)
	: address_(memory.address), bytes_(memory.bytes), device_(device)
{
}

Status Registration::open(struct weft_node *node, std::shared_ptr<Inbox> inbox,
			  const Registrable &memory, Memory kind,
			  std::shared_ptr<Registration> *out)
{
	struct weft_device device = {WEFT_CPU, 0};
	Status status = SUCCESS;

	if (kind != DRAM && kind != VRAM)
		return NOT_SUPPORTED;
	if (kind == VRAM)
		status = device_of(memory.address, &device);
	if (status != SUCCESS)
		return status;

	auto registration = std::make_shared<Registration>(memory, device);

	status = registration->open_window(node, std::move(inbox));
	if (status == SUCCESS)
		*out = std::move(registration);
	return status;
}

/* Open the window.  When that fails the destructor closes the rest. */
Status Registration::open_window(struct weft_node *node, std::shared_ptr<Inbox> inbox)
{
	void *memory = reinterpret_cast<void *>(address_);
	int err = 0;

	if (device_.type == WEFT_CPU)
		err = weft_register(node, memory, bytes_, &region_);
	if (!err)
		err = weft_window_open(node, memory, bytes_, WEFT_WINDOW_READ | WEFT_WINDOW_WRITE,
				       &window_);
	if (!err)
		err = Listener::start(window_, std::move(inbox), kNotesAtOnce, &listener_);
	return err ? status_of_error(err, "memory is not registered") : SUCCESS;
}

/* Returns a user that has not been told to end, and counts as told; NULL: all have.  Locked. */
std::shared_ptr<Transfer> Registration::untold()
{
	for (auto &[_, user] : users_) {
		auto transfer = user.told ? nullptr : user.transfer.lock();

		user.told = true;
		if (transfer)
			return transfer;
	}
	return nullptr;
}

void Registration::close()
{
	std::unique_lock<std::mutex> guard(lock_);

	closing_ = true;
	/* A transfer that is cancelled takes the lock when it leaves. */
	while (auto transfer = untold()) {
		guard.unlock();
		transfer->cancel();
		transfer.reset();
		guard.lock();
	}
	left_.wait(guard, [this] { return users_.empty(); });
	guard.unlock();
	if (listener_) {
		listener_->stop();
		listener_->take_rest(window_);
	}
	if (weft_window_close(window_))
		log_line(LOG_ERROR, "a window is not closed: %s", weft_error());
	if (weft_unregister(region_))
		log_line(LOG_ERROR, "memory is not deregistered: %s", weft_error());
	listener_.reset();
	window_ = nullptr;
	region_ = nullptr;
}

bool Registration::enter(const std::shared_ptr<Transfer> &transfer)
{
	std::lock_guard<std::mutex> guard(lock_);

	if (!closing_)
		users_[transfer.get()] = {transfer, false};
	return !closing_;
}

void Registration::leave(const Transfer *transfer)
{
	std::lock_guard<std::mutex> guard(lock_);

	users_.erase(transfer);
	if (users_.empty())
		left_.notify_all();
}

bool Registration::has(uintptr_t address, size_t bytes) const
{
	return address >= address_ && address - address_ <= bytes_ &&
	       bytes <= bytes_ - (address - address_);
}

Status Registration::describe(std::string *out) const
{
	char descriptor[WEFT_DESCRIPTOR_BYTES_MAX];
	size_t bytes = sizeof(descriptor);
	int err = weft_window_describe(window_, descriptor, &bytes);

	if (err)
		return status_of_error(err, "no descriptor of registered memory");
	out->assign(descriptor, bytes);
	return SUCCESS;
}

}  // namespace weft_nixl
