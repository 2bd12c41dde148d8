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
	const char *text = getenv("WEFT_LISTEN");

	return text && *text;
}

}  // namespace weft_tensorflow
