/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sentence about a failure, written by the function that knows of it first;
 * main() prints the sentence.
 */
#ifndef SENTENCE_H
#define SENTENCE_H

#include <stdarg.h>
#include <stdio.h>

struct sentence {
	char text[1024]; /* "": nothing went wrong */
};

/* Write the sentence, unless there is one already, and return @err to be returned on. */
__attribute__((format(printf, 3, 4))) static inline int
sentence_set(struct sentence *s, int err, const char *format, ...)
{
	va_list values;

	if (s->text[0])
		return err;
	va_start(values, format);
	vsnprintf(s->text, sizeof(s->text), format, values);
	va_end(values);
	return err;
}

#endif
