/* SPDX-License-Identifier: BSD-2-Clause */
#include <weft/weft.h>

#include "core/last.h"
#include "util/error.h"
#include "util/status.h"

const char *weft_version(void)
{
	return PACKAGE_VERSION;
}

const char *weft_status_name(enum weft_status status)
{
	return wf_status_name(status);
}

const char *weft_strerror(int err)
{
	return wf_error_name(err);
}

const char *weft_error(void)
{
	return wf_last_text();
}
