/* SPDX-License-Identifier: BSD-2-Clause */
#include "connection.h"

#include <cerrno>

#include <weft/tensor.h>

#include "inbox.h"
#include "log.h"
#include "mailbox.h"
#include "status.h"

namespace weft_nixl {
namespace {

constexpr char kFormat[] = "weft 2\n";
constexpr size_t kAddressBytesMax = 300; /* a name of DNS and a port */

/* Returns the status of @err, with which weft refuses what another agent says of itself. */
Status status_of_metadata(int err, const char *what)
{
	Status status = status_of_error(err, what);

	return err == -EINVAL || err == -EPROTONOSUPPORT ? MISMATCH : status;
}

}  // namespace

std::string connection_describe(const std::string &address, const std::string &mailbox)
{
	return kFormat + address + '\n' + mailbox;
}

Status Connection::open(std::shared_ptr<Node> node, const std::string &description,
			std::shared_ptr<Connection> *out)
{
	const size_t begin = sizeof(kFormat) - 1;
	struct weft_remote *mailbox;
	struct weft_peer *peer;
	std::string address;
	std::string key;
	size_t end;
	int err;

	end = description.compare(0, begin, kFormat) ? std::string::npos
						      : description.find('\n', begin);
	if (end == std::string::npos || end - begin > kAddressBytesMax) {
		log_line(LOG_ERROR, "%zu bytes are no description of an agent, or one of another "
				    "release of weft", description.size());
		return MISMATCH;
	}
	address = description.substr(begin, end - begin);
	key = description.substr(end + 1);
	err = weft_peer_open(node->get(), address.c_str(), &peer);
	if (err)
		return status_of_metadata(err, "no peer");
	err = weft_window_import(peer, key.data(), key.size(), &mailbox);
	if (err) {
		weft_peer_close(peer);
		return status_of_metadata(err, "no mailbox of an agent");
	}
	*out = std::make_shared<Connection>(std::move(node), peer, mailbox, std::move(key));
	return SUCCESS;
}

Connection::Connection(std::shared_ptr<Node> node, struct weft_peer *peer,
		       struct weft_remote *mailbox, std::string key)
	: node_(std::move(node)), peer_(peer), mailbox_(mailbox), key_(std::move(key)),
	  line_(&node_->retries())
{
}

Connection::~Connection()
{
	if (node_->get()) {
		weft_remote_close(mailbox_);
		weft_peer_close(peer_);
	}
}

void Connection::meet() const
{
	if (weft_ping(peer_, nullptr, nullptr))
		log_line(LOG_WARN, "a peer is not met: %s", weft_error());
}

int Connection::send(const std::string &packed, const struct weft_op_options &options,
		     struct weft_op **op) const
{
	if (packed.size() <= WEFT_NOTE_BYTES_MAX) {
		struct weft_access_options short_one = WEFT_ACCESS_OPTIONS_INIT;

		short_one.op = options;
		short_one.flags = WEFT_NOTE;
		short_one.note = packed.data();
		short_one.note_bytes = packed.size();
		return weft_put(mailbox_, nullptr, 0, &short_one, op);
	}

	struct weft_send_options long_one = WEFT_SEND_OPTIONS_INIT;
	int64_t shape = static_cast<int64_t>(packed.size());
	struct weft_tensor tensor = {};

	tensor.data = const_cast<char *>(packed.data());
	tensor.device = {WEFT_CPU, 0};
	tensor.ndim = 1;
	tensor.dtype = {WEFT_UINT, 8, 1};
	tensor.shape = &shape;
	long_one.op = options;
	long_one.flags = WEFT_OPAQUE;
	return weft_send(peer_, mailbox_step(key_), key_.data(), key_.size(), &tensor, &long_one,
			 op);
}

RemoteWindow::RemoteWindow(std::shared_ptr<Connection> connection, struct weft_remote *remote,
			   uintptr_t address)
	: connection_(std::move(connection)), remote_(remote), address_(address)
{
}

RemoteWindow::~RemoteWindow()
{
	if (connection_->node()->get())
		weft_remote_close(remote_);
}

Status RemoteWindow::open(std::shared_ptr<Connection> connection, const std::string &descriptor,
			  uintptr_t address, std::shared_ptr<RemoteWindow> *out)
{
	struct weft_remote *remote;
	int err = weft_window_import(connection->peer(), descriptor.data(), descriptor.size(),
				     &remote);

	if (err)
		return status_of_metadata(err, "no window of an agent");
	*out = std::make_shared<RemoteWindow>(std::move(connection), remote, address);
	return SUCCESS;
}

bool RemoteWindow::locate(uintptr_t address, size_t bytes, uint64_t *place) const
{
	uint64_t all = weft_remote_bytes(remote_);

	*place = address - address_;
	return address >= address_ && *place <= all && bytes <= all - *place;
}

}  // namespace weft_nixl
