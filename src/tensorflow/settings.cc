/* SPDX-License-Identifier: BSD-2-Clause */
#include "settings.h"

#include <cstdlib>
#include <initializer_list>
#include <strings.h>

namespace weft_tensorflow {
namespace {

/* Whether the setting @name is one of @words. */
bool says(const char *name, std::initializer_list<const char *> words)
{
	const char *text = getenv(name);

	if (!text)
		return false;
	for (const char *word : words)
		if (!strcasecmp(text, word))
			return true;
	return false;
}

/* Whether there is text in the setting @name. */
bool is_set(const char *name)
{
	const char *text = getenv(name);

	return text && *text;
}

bool says_no(const char *name)
{
	return says(name, {"false", "no", "off", "0"});
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

bool settings_register()
{
	/* Without that allocator TensorFlow gives memory back, which must not stay registered. */
	return says("TF_WEFT_REGISTER", {"true", "yes", "on", "1"}) &&
	       !says_no("TF_CPU_ALLOCATOR_USE_BFC");
}

bool settings_listen()
{
	return is_set("WEFT_LISTEN");
}

bool settings_credentials()
{
	return is_set("WEFT_KEY_FILE") || is_set("WEFT_CERT") || is_set("WEFT_KEY") ||
	       is_set("WEFT_CA");
}

}  // namespace weft_tensorflow
