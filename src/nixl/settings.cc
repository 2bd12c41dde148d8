/* SPDX-License-Identifier: BSD-2-Clause */
#include "settings.h"

#include <strings.h>

#include <cerrno>
#include <cstdlib>

#include "log.h"
#include "status.h"

namespace weft_nixl {
namespace {

constexpr size_t kNameBytesMax = 63;  /* the longest name that weft_node_open() takes */
constexpr uint64_t kNsPerMs = 1000000;
constexpr uint64_t kTimeoutNs = 60000 * kNsPerMs;  /* default of WEFT_TIMEOUT */

/* A parameter, and how its text gets into the options of a node. */
struct Setting {
	const char *name;
	bool (*set)(struct weft_node_options *options, const char *text);
};

/* Read @text, a number from @least to @most. */
bool number(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 10);
	return !errno && !*end && *value >= least && *value <= most;
}

bool set_security(struct weft_node_options *options, const char *text)
{
	const std::string mode = text;

	options->security = mode == "open" ? WEFT_SECURITY_OPEN :
			    mode == "keyed" ? WEFT_SECURITY_KEYED : WEFT_SECURITY_SEALED;
	return mode == "open" || mode == "keyed" || mode == "sealed";
}

bool set_timeout(struct weft_node_options *options, const char *text)
{
	uint64_t ms = 0;
	bool good = number(text, 1, 86400000, &ms);

	options->timeout_ns = ms * kNsPerMs;
	return good;
}

bool set_workers(struct weft_node_options *options, const char *text)
{
	uint64_t workers = 0;
	bool good = number(text, 1, 16, &workers);

	options->workers = static_cast<unsigned>(workers);
	return good;
}

bool set_pool(struct weft_node_options *options, const char *text)
{
	return number(text, 1 << 20, UINT64_MAX, &options->pool_bytes);
}

#define TEXT(member) \
	[](struct weft_node_options *options, const char *text) { \
		options->member = text; \
		return true; \
	}

const Setting kSettings[] = {
	{"listen", TEXT(listen)},
	{"advertise", TEXT(advertise)},
	{"security", set_security},
	{"provider", TEXT(provider)},
	{"device", TEXT(device)},
	{"timeout_ms", set_timeout},
	{"pool_bytes", set_pool},
	{"workers", set_workers},
};

/* Returns the time that the environment gives operations, as a node reads it that has opened. */
uint64_t timeout_of_environment()
{
	const std::pair<const char *, uint64_t> units[] = {
		{"ns", 1}, {"us", 1000}, {"ms", kNsPerMs}, {"s", 1000 * kNsPerMs},
	};
	const char *text = getenv("WEFT_TIMEOUT");
	char *unit = nullptr;
	uint64_t count = text ? strtoull(text, &unit, 10) : 0;

	for (const auto &[name, ns] : units)
		if (text && !strcasecmp(unit, name))
			return count * ns;
	return kTimeoutNs;
}

bool is_setting(const std::string &name)
{
	for (const Setting &setting : kSettings)
		if (name == setting.name)
			return true;
	return false;
}

}  // namespace

Parameters settings_defaults()
{
	Parameters defaults;

	for (const Setting &setting : kSettings)
		defaults[setting.name] = "";
	return defaults;
}

Status settings_open_node(const std::string &agent, const Parameters &parameters,
			  std::shared_ptr<Node> *node)
{
	struct weft_node_options options = WEFT_NODE_OPTIONS_INIT;
	struct weft_node *fresh;
	int err;

	for (const auto &given : parameters)
		if (!is_setting(given.first))
			log_line(LOG_WARN, "there is no parameter %s", given.first.c_str());
	for (const Setting &setting : kSettings) {
		auto given = parameters.find(setting.name);

		if (given == parameters.end() || given->second.empty())
			continue;
		if (!setting.set(&options, given->second.c_str())) {
			log_line(LOG_ERROR, "parameter %s can't be %s", setting.name,
				 given->second.c_str());
			return INVALID_PARAMETER;
		}
	}
	/* A longer name is cut: it is for people. */
	const std::string name = agent.substr(0, kNameBytesMax);

	options.mode = WEFT_THREADED;
	options.name = name.c_str();
	options.log = log_of_node;
	err = weft_node_open(&options, &fresh);
	if (err)
		return status_of_error(err, "no node of weft");
	*node = std::make_shared<Node>(fresh, options.timeout_ns ? options.timeout_ns
								 : timeout_of_environment());
	return SUCCESS;
}

}  // namespace weft_nixl
