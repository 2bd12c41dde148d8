/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/zstd.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

#define LEVEL 1 /* fast enough for a network; higher ones gain a few per cent of size */

size_t wf_zstd_pack(const void *bytes, size_t count, void *into, size_t room)
{
	size_t length = ZSTD_compress(into, room, bytes, count, LEVEL);

	return ZSTD_isError(length) ? 0 : length;
}

int wf_zstd_unpack(const void *frame, size_t count, uint64_t most, void **bytes, size_t *length)
{
	unsigned long long content = ZSTD_getFrameContentSize(frame, count);
	size_t got;
	void *at;

	if (content == ZSTD_CONTENTSIZE_ERROR || content == ZSTD_CONTENTSIZE_UNKNOWN)
		return -EBADMSG;
	if (content > most)
		return -EMSGSIZE;
	at = malloc(content ? content : 1);
	if (!at)
		return -ENOMEM;
	got = ZSTD_decompress(at, content, frame, count);
	if (got != content) {
		free(at);
		return -EBADMSG;
	}
	*bytes = at;
	*length = got;
	return 0;
}
