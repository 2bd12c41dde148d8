/* SPDX-License-Identifier: BSD-2-Clause */
#include "settings.h"

#include <cstdlib>
#include <initializer_list>
#include <strings.h>

namespace weft_tensorflow {

bool settings_enabled()
{
	const char *text = getenv("TF_RDMA_ENABLED");

	if (!text)
		return true;
	for (const char *no : {"false", "no", "off", "0"})
		if (!strcasecmp(text, no))
			return false;
	return true;
}

bool settings_listen()
{
	const char *text = getenv("WEFT_LISTEN");

	return text && *text;
}

}  // namespace weft_tensorflow
