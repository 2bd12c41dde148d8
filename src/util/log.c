/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/log.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

#define LINE_BYTES 1024 /* two sentences of wf_error and a few words around them */

/* Blank out control characters: a name from a peer may not forge a line or steer a terminal. */
WF_PRINTF(2, 0)
static void write_line(char text[LINE_BYTES], const char *format, va_list args)
{
	(void)vsnprintf(text, LINE_BYTES, format, args);
	for (char *at = text; *at; at++)
		if (iscntrl((unsigned char)*at))
			*at = ' ';
}

void wf_log(const struct wf_log *log, int level, const char *format, ...)
{
	char text[LINE_BYTES];
	va_list args;

	if (!wf_log_hears(log, level))
		return;
	va_start(args, format);
	write_line(text, format, args);
	va_end(args);
	if (log->lock)
		pthread_mutex_lock(log->lock);
	log->line(log->arg, level, text);
	if (log->lock)
		pthread_mutex_unlock(log->lock);
}

void wf_log_outside(const struct wf_log *log, int level, const char *format, ...)
{
	char text[LINE_BYTES];
	va_list args;

	if (!wf_log_hears(log, level) || (log->lock && pthread_mutex_trylock(log->lock)))
		return;
	va_start(args, format);
	write_line(text, format, args);
	va_end(args);
	log->line(log->arg, level, text);
	if (log->lock)
		pthread_mutex_unlock(log->lock);
}

void wf_log_print(void *arg, int level, const char *text)
{
	(void)arg;
	(void)level;
	fprintf(stderr, "weft: %s\n", text);
}
