/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/file.h"

#include <sys/resource.h>

bool wf_file_may_have(size_t bytes)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && bytes <= limit.rlim_cur;
}
