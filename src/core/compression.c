/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/compression.h"

#include <errno.h>

#include "core/last.h"

int wf_compression_check(enum weft_compression compression)
{
	if ((unsigned)compression > WEFT_ZSTD)
		return wf_last_set(-EINVAL, "there is no compression %d", (int)compression);
	return 0;
}
