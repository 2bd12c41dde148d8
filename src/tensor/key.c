/* SPDX-License-Identifier: BSD-2-Clause */
#include "tensor/key.h"

#include <stdio.h>

/* Not isprint(): the text must not depend on the locale. */
static bool is_name(const unsigned char *key, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (key[i] < ' ' || key[i] > '~')
			return false;
	return true;
}

void wf_key_text(const void *key, size_t bytes, char text[WF_KEY_TEXT_BYTES])
{
	size_t shown = WF_MIN(bytes, (size_t)WF_KEY_SHOWN), used;

	if (is_name(key, bytes)) {
		snprintf(text, WF_KEY_TEXT_BYTES, "\"%.*s\"%s", (int)shown, (const char *)key,
			 bytes > shown ? "..." : "");
		return;
	}
	shown = WF_MIN(bytes, (size_t)WF_KEY_SHOWN / 2);
	used = (size_t)snprintf(text, WF_KEY_TEXT_BYTES, "0x");
	for (size_t i = 0; i < shown; i++)
		used += (size_t)snprintf(text + used, WF_KEY_TEXT_BYTES - used, "%02x",
					 ((const unsigned char *)key)[i]);
	snprintf(text + used, WF_KEY_TEXT_BYTES - used, "%s", bytes > shown ? "..." : "");
}
