/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log: lines on stderr, as NIXL's own are, from the level on that NIXL_LOG_LEVEL names: TRACE,
 * DEBUG, INFO, WARN (the default) or ERROR.
 *
 * Threads: any.
 */
#ifndef WEFT_NIXL_LOG_H
#define WEFT_NIXL_LOG_H

namespace weft_nixl {

enum LogLevel { LOG_TRACE, LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* Print a line of printf's @format, if @level is heard. */
void log_line(LogLevel level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The log of a node of weft: its warnings and notes. */
void log_of_node(void *arg, int level, const char *line);

}  // namespace weft_nixl

#endif
