/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON, written as it is made, on stdout or in a file: one object per line.  Commas and quotes are added; that
 * names within an object differ is the caller's business.
 *
 * Threads: owner.
 */
#ifndef TOOL_OUT_H
#define TOOL_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Write to @file from here on, which is borrowed until the next call; stdout before the first. */
void out_to(FILE *file);

/* Begin an object.  @name is NULL inside an array and at the top. */
void out_object(const char *name);

/* Begin an array.  @name is NULL inside an array and at the top. */
void out_array(const char *name);

/* End the innermost object; the end of the outermost ends the line. */
void out_object_end(void);

/* End the innermost array; the end of the outermost ends the line. */
void out_array_end(void);

void out_text(const char *name, const char *value);
void out_count(const char *name, uint64_t value);
void out_bool(const char *name, bool value);

/* Write @value with @digits after the point: measurements are not known better. */
void out_number(const char *name, double value, int digits);

#endif
