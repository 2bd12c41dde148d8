/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON on stdout, written as it is made: one object per line.  It adds commas
 * and quotes; that names within an object differ is the caller's business.
 *
 * Threads: owner.
 */
#ifndef TOOL_OUT_H
#define TOOL_OUT_H

#include <stdbool.h>
#include <stdint.h>

/* Begin an object or an array.  @name is NULL inside an array and at the top. */
void out_object(const char *name);
void out_array(const char *name);

/* End the innermost; a line ends with the outermost. */
void out_object_end(void);
void out_array_end(void);

void out_text(const char *name, const char *value);
void out_count(const char *name, uint64_t value);
void out_bool(const char *name, bool value);

/* @digits after the point: what is measured is not known better. */
void out_number(const char *name, double value, int digits);

#endif
