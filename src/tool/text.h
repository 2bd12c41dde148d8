/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text of others on its way to a terminal or a script: what a peer says must
 * neither steer a terminal nor forge a line, and JSON must stay JSON.
 *
 * What is escaped: control characters, those that change the direction of
 * writing, and bytes that are no UTF-8.
 */
#ifndef TOOL_TEXT_H
#define TOOL_TEXT_H

#include <stdio.h>

/* For people: \x1b for a byte, \u202e for a longer character. */
void text_print(FILE *out, const char *text);

/* The same, where several lines are meant: their ends stay. */
void text_print_lines(FILE *out, const char *lines);

/* A string of JSON, in its quotes.  Bytes that are no UTF-8 become U+FFFD. */
void text_quote(FILE *out, const char *text);

/* Whole JSON, whose lines stay as they are: what its strings still hold is escaped. */
void text_print_json(FILE *out, const char *json);

#endif
