/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text of others on its way to a terminal or a script: text that a peer gave must neither steer a
 * terminal nor forge a line, and JSON must stay JSON.
 *
 * Escaped are control characters, characters that change the direction of writing, and bytes that
 * are no UTF-8.
 */
#ifndef TOOL_TEXT_H
#define TOOL_TEXT_H

#include <stdio.h>

/* Print @text for people: \x1b for a byte, \u202e for a longer character. */
void text_print(FILE *out, const char *text);

/* Print @lines as text_print() does, but for their ends, which stay. */
void text_print_lines(FILE *out, const char *lines);

/* Print @text as a string of JSON, in its quotes.  Bytes that are no UTF-8 become U+FFFD. */
void text_quote(FILE *out, const char *text);

/* Print @text inside an element of XML, or an attribute; what XML can't have becomes U+FFFD. */
void text_print_xml(FILE *out, const char *text);

/* Print whole JSON, whose lines stay as they are; its strings are escaped. */
void text_print_json(FILE *out, const char *json);

#endif
