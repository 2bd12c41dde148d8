/* SPDX-License-Identifier: BSD-2-Clause */
#include "traffic.h"

#include <stdio.h>
#include <string.h>

void traffic_add(struct traffic *t, const struct weft_op *op)
{
	struct weft_path path = WEFT_PATH_INIT;
	unsigned row;

	if (weft_op_path(op, &path) || path.bytes == 0)
		return;
	for (row = 0; row < t->count; row++) {
		if (strcmp(t->rows[row].provider, path.provider) == 0 &&
		    strcmp(t->rows[row].way, path.way) == 0)
			break;
	}
	if (row == TRAFFIC_ROWS)
		return;
	if (row == t->count) {
		memcpy(t->rows[row].provider, path.provider,
		       sizeof(path.provider));
		memcpy(t->rows[row].way, path.way, sizeof(path.way));
		t->count++;
	}
	t->rows[row].bytes += path.bytes;
}

uint64_t traffic_bytes(const struct traffic *t)
{
	uint64_t bytes = 0;

	for (unsigned row = 0; row < t->count; row++)
		bytes += t->rows[row].bytes;
	return bytes;
}

void traffic_text(const struct traffic *t, char text[TRAFFIC_TEXT_BYTES])
{
	size_t used = 0;

	snprintf(text, TRAFFIC_TEXT_BYTES, "nothing");
	for (unsigned row = 0; row < t->count; row++)
		used += (size_t)snprintf(text + used, TRAFFIC_TEXT_BYTES - used,
					 "%s%s/%s:%.1fMB", row ? "," : "",
					 t->rows[row].provider,
					 t->rows[row].way,
					 (double)t->rows[row].bytes / 1e6);
}
