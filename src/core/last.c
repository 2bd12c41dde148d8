/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/last.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <weft/weft.h>

static _Thread_local struct wf_error last;

int wf_last_set(int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(last.text, sizeof(last.text), format, args);
	va_end(args);
	last.code = code;
	return code;
}

int wf_last_copy(const struct wf_error *e)
{
	last = *e;
	return e->code;
}

int wf_last_null(const char *what)
{
	return wf_last_set(-EINVAL, "%s is NULL", what);
}

const char *wf_last_text(void)
{
	return last.text;
}
