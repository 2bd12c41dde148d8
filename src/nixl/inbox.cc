/* SPDX-License-Identifier: BSD-2-Clause */
#include "inbox.h"

#include <cstring>

#include "log.h"

namespace weft_nixl {
namespace {

/* Bounds of what waits for the program: not tuned yet. */
constexpr size_t kCountMax = 1 << 18;
constexpr size_t kBytesMax = 64 << 20;

/* A notification begins with these bytes, then the length of the name, the lowest byte first. */
constexpr unsigned char kMagic[4] = {'W', 'N', 'X', 1};
constexpr size_t kHeadBytes = 8;

}  // namespace

std::string notification_pack(const std::string &agent, const std::string &text)
{
	std::string packed(reinterpret_cast<const char *>(kMagic), sizeof(kMagic));

	for (unsigned shift = 0; shift < 32; shift += 8)
		packed.push_back(static_cast<char>(agent.size() >> shift & 0xff));
	packed += agent;
	packed += text;
	return packed;
}

bool Inbox::add(const void *data, size_t bytes)
{
	const unsigned char *head = static_cast<const unsigned char *>(data);
	const char *rest = static_cast<const char *>(data) + kHeadBytes;
	size_t name_bytes = 0;

	if (bytes < kHeadBytes || bytes > kNotificationBytesMax ||
	    memcmp(head, kMagic, sizeof(kMagic))) {
		log_line(LOG_WARN, "%zu bytes that came are no notification", bytes);
		return true;
	}
	for (unsigned i = 0; i < 4; i++)
		name_bytes |= static_cast<size_t>(head[4 + i]) << 8 * i;
	if (name_bytes > bytes - kHeadBytes) {
		log_line(LOG_WARN, "a notification of %zu bytes has a name of %zu", bytes, name_bytes);
		return true;
	}

	std::string name(rest, name_bytes);
	std::string text(rest + name_bytes, bytes - kHeadBytes - name_bytes);
	std::lock_guard<std::mutex> guard(lock_);

	notifications_.emplace_back(std::move(name), std::move(text));
	bytes_ += bytes;
	return notifications_.size() < kCountMax && bytes_ < kBytesMax;
}

void Inbox::when_empty(std::function<void()> go_on)
{
	{
		std::lock_guard<std::mutex> guard(lock_);

		/* The program may have emptied the inbox since it was full. */
		if (!closed_ && !notifications_.empty()) {
			waiting_.push_back(std::move(go_on));
			return;
		}
	}
	go_on();
}

void Inbox::take(Notifications *out)
{
	std::vector<std::function<void()>> waiting;

	{
		std::lock_guard<std::mutex> guard(lock_);

		if (out->empty())
			out->swap(notifications_);
		else
			for (auto &notification : notifications_)
				out->push_back(std::move(notification));
		notifications_.clear();
		bytes_ = 0;
		waiting.swap(waiting_);
	}
	for (auto &go_on : waiting)
		go_on();
}

void Inbox::close()
{
	Notifications dropped;

	{
		std::lock_guard<std::mutex> guard(lock_);

		closed_ = true;
	}
	take(&dropped);
}

}  // namespace weft_nixl
