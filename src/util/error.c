/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/error.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* First of libfabric's own codes; libfabric's headers belong to a higher floor. */
#define FABRIC_FIRST 256
/* Last of the kernel's errno numbers. */
#define ERRNO_LAST 4095

/* Names in the order of <rdma/fi_errno.h>, from FI_EOTHER (256) to FI_ENOMR (270, since 1.19). */
static const char *const fabric_names[] = {
	"Unspecified error of the provider",
	"Buffer is too small",
	"Operation not permitted in this state",
	"An error is waiting to be read",
	"Flags not supported",
	"No event queue",
	"Invalid resource domain",
	"No completion queue",
	"Checksum error",
	"Message was cut short",
	"Memory key not available",
	"No address vector",
	"Queue overrun",
	"Receiver has no buffer posted",
	"No memory can be registered any more",
};

int wf_error_set(struct wf_error *e, int code, const char *format, ...)
{
	char text[WF_ERROR_BYTES]; /* a buffer apart from @e: an argument may be @e->text */
	va_list args;

	if (!e)
		return code;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);

	e->code = code;
	memcpy(e->text, text, sizeof(text));
	return code;
}

int wf_error_within(struct wf_error *e, const char *format, ...)
{
	char text[2 * WF_ERROR_BYTES]; /* room for the two parts; the sum is cut below */
	va_list args;
	size_t used;

	assert(e);
	va_start(args, format);
	(void)vsnprintf(text, WF_ERROR_BYTES, format, args);
	va_end(args);

	used = strlen(text);
	(void)snprintf(text + used, sizeof(text) - used, ": %s", e->text);
	text[WF_ERROR_BYTES - 1] = '\0';
	memcpy(e->text, text, sizeof(e->text));
	return e->code;
}

const char *wf_error_name(int code)
{
	if (code > 0 || code < -ERRNO_LAST)
		return "Unknown error";
	if (code <= -FABRIC_FIRST) {
		size_t index = (size_t)(-code - FABRIC_FIRST);

		return index < WF_COUNT(fabric_names) ? fabric_names[index] : "Unknown error";
	}
	/* RLIMIT_NOFILE is the one limit that a healthy program with many peers reaches. */
	if (code == -EMFILE)
		return "Too many open files: RLIMIT_NOFILE is reached, which ulimit -n raises";
	return strerror(-code);
}
