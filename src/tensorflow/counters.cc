/* SPDX-License-Identifier: BSD-2-Clause */
#include "counters.h"

#include <cstring>
#include <map>
#include <mutex>

#include <weft/node.h>

namespace weft_tensorflow {
namespace {

std::mutex counters_lock;

std::map<std::string, int64_t> &counters()
{
	/* The counters outlive static objects of others, whose ends still count. */
	static auto *all = new std::map<std::string, int64_t>;

	return *all;
}

}  // namespace

void counters_add(const std::string &name, int64_t more)
{
	std::lock_guard<std::mutex> l(counters_lock);

	counters()[name] += more;
}

std::string counters_path(const char *prefix, const struct weft_op *op)
{
	struct weft_path path = WEFT_PATH_INIT;
	std::string begin = std::string(prefix) + "_";

	if (weft_op_path(op, &path) || !path.provider[0])
		return "";
	counters_add(begin + "bytes", static_cast<int64_t>(path.bytes));
	counters_add(begin + "over_" + path.provider);
	if (!strcmp(path.way, "staged"))
		counters_add(begin + "staged");
	if (path.registered)
		counters_add(begin + "registered");
	return path.provider;
}

}  // namespace weft_tensorflow

/*
 * Write the counters into @text, a line "NAME VALUE" for each, cut at @bytes.  Returns the bytes
 * that all of them need.
 */
extern "C" __attribute__((visibility("default"))) size_t weft_tensorflow_counters(char *text,
										 size_t bytes)
{
	std::string all;

	{
		std::lock_guard<std::mutex> l(weft_tensorflow::counters_lock);

		for (const auto &[name, value] : weft_tensorflow::counters())
			all += name + " " + std::to_string(value) + "\n";
	}
	if (text && bytes) {
		size_t fits = all.size() < bytes ? all.size() : bytes - 1;

		memcpy(text, all.data(), fits);
		text[fits] = 0;
	}
	return all.size() + 1;
}
