/* SPDX-License-Identifier: BSD-2-Clause */
#include <weft/security.h>

#include <errno.h>

#include "core/last.h"
#include "secure/key_file.h"

int weft_key_new(const char *path)
{
	struct wf_error e;

	if (!path)
		return wf_last_set(-EINVAL, "path is NULL");
	return wf_key_file_make(path, &e) ? wf_last_copy(&e) : 0;
}
