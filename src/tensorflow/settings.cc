/* SPDX-License-Identifier: BSD-2-Clause */
#include "settings.h"

#include <cstdlib>
#include <initializer_list>
#include <strings.h>

namespace weft_tensorflow {
namespace {

/* Whether the setting @name says no. */
bool says_no(const char *name)
{
	const char *text = getenv(name);

	if (!text)
		return false;
	for (const char *no : {"false", "no", "off", "0"})
		if (!strcasecmp(text, no))
			return true;
	return false;
}

/* Whether the environment has a value for the setting @name. */
bool is_set(const char *name)
{
	const char *text = getenv(name);

	return text && *text;
}

}  // namespace

bool settings_enabled()
{
	return !says_no("TF_RDMA_ENABLED");
}

bool settings_pool()
{
	static const bool pool = !says_no("TF_WEFT_POOL");

	return pool;
}

bool settings_listen()
{
	return is_set("WEFT_LISTEN");
}

bool settings_security()
{
	return is_set("WEFT_SECURITY");
}

}  // namespace weft_tensorflow
