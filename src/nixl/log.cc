/* SPDX-License-Identifier: BSD-2-Clause */
#include "log.h"

#include <strings.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace weft_nixl {
namespace {

constexpr const char *kNames[] = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR"};

LogLevel least()
{
	const char *name = getenv("NIXL_LOG_LEVEL");

	for (int level = LOG_TRACE; name && level <= LOG_ERROR; level++)
		if (!strcasecmp(name, kNames[level]))
			return static_cast<LogLevel>(level);
	/* FATAL is above all lines here. */
	return name && !strcasecmp(name, "FATAL") ? static_cast<LogLevel>(LOG_ERROR + 1) : LOG_WARN;
}

}  // namespace

void log_line(LogLevel level, const char *format, ...)
{
	static const LogLevel heard = least();
	char text[1024];
	va_list args;

	if (level < heard)
		return;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* One call for the whole line: lines of other threads don't come in between. */
	fprintf(stderr, "%s weft: %s\n", kNames[level], text);
}

void log_of_node(void *, int level, const char *line)
{
	log_line(level <= 1 ? LOG_WARN : level == 2 ? LOG_INFO : LOG_DEBUG, "%s", line);
}

}  // namespace weft_nixl
