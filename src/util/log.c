/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/log.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

#define LINE_BYTES 512 /* a sentence of wf_error and a few words around it */

void wf_log(const struct wf_log *log, int level, const char *format, ...)
{
	char text[LINE_BYTES];
	va_list args;

	if (!log || !log->line || level > log->level)
		return;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);

	/* Names come from peers: none may forge a line or steer a terminal. */
	for (char *at = text; *at; at++)
		if (iscntrl((unsigned char)*at))
			*at = ' ';
	log->line(log->arg, level, text);
}
