/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define REPLACEMENT 0xfffd

/* Characters that are shown escaped. */
static const struct {
	uint32_t first, last;
} escaped[] = {
	{ 0x00, 0x1f },     { 0x7f, 0x9f },     /* control */
	{ 0x200e, 0x200f }, { 0x2028, 0x202e }, /* marks of direction, lines and paragraphs */
	{ 0x2066, 0x2069 },                     /* isolates of direction */
};

/* Leading bytes of UTF-8, and the least character that needs as many. */
static const struct {
	uint8_t mask, lead;
	unsigned bytes;
	uint32_t least;
} leads[] = {
	{ 0x80, 0x00, 1, 0x00 },
	{ 0xe0, 0xc0, 2, 0x80 },
	{ 0xf0, 0xe0, 3, 0x800 },
	{ 0xf8, 0xf0, 4, 0x10000 },
};

/* Decode the character at @at, which ends with 0.  Returns the bytes it takes; 0: no UTF-8. */
static unsigned decode(const unsigned char *at, uint32_t *character)
{
	for (size_t i = 0; i < sizeof(leads) / sizeof(leads[0]); i++) {
		uint32_t c = *at & (uint8_t)~leads[i].mask;

		if ((*at & leads[i].mask) != leads[i].lead)
			continue;
		for (unsigned k = 1; k < leads[i].bytes; k++) {
			if ((at[k] & 0xc0) != 0x80)
				return 0;
			c = c << 6 | (at[k] & 0x3f);
		}
		if (c < leads[i].least || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
			return 0;
		*character = c;
		return leads[i].bytes;
	}
	return 0;
}

static bool is_escaped(uint32_t character)
{
	for (size_t i = 0; i < sizeof(escaped) / sizeof(escaped[0]); i++)
		if (character >= escaped[i].first && character <= escaped[i].last)
			return true;
	return false;
}

/* Print a character for people.  Returns the bytes it took. */
static unsigned print_one(FILE *out, const unsigned char *at)
{
	uint32_t c = *at;
	unsigned bytes = decode(at, &c);

	if (bytes && !is_escaped(c))
		fwrite(at, 1, bytes, out);
	else
		fprintf(out, c < 0x100 ? "\\x%02x" : "\\u%04x", (unsigned)c);
	return bytes ? bytes : 1;
}

/* Print @text by a function that prints one character, and returns the bytes it took. */
static void print_each(FILE *out, const char *text, unsigned (*print)(FILE *, const unsigned char *))
{
	const unsigned char *at = (const unsigned char *)text;

	while (*at)
		at += print(out, at);
}

void text_print(FILE *out, const char *text)
{
	print_each(out, text, print_one);
}

void text_print_lines(FILE *out, const char *lines)
{
	const unsigned char *at = (const unsigned char *)lines;

	while (*at) {
		if (*at == '\n')
			fputc(*at++, out);
		else
			at += print_one(out, at);
	}
}

/* Print a character of a string of JSON.  Returns the bytes it took. */
static unsigned print_in_string(FILE *out, const unsigned char *at)
{
	uint32_t c;
	unsigned bytes = decode(at, &c);

	if (!bytes)
		fprintf(out, "\\u%04x", REPLACEMENT);
	else if (is_escaped(c))
		fprintf(out, "\\u%04x", (unsigned)c);
	else
		fwrite(at, 1, bytes, out);
	return bytes ? bytes : 1;
}

/* Print a character of text as a string of JSON has it.  Returns the bytes it took. */
static unsigned print_quoted(FILE *out, const unsigned char *at)
{
	if (*at == '"' || *at == '\\')
		fputc('\\', out);
	return print_in_string(out, at);
}

void text_quote(FILE *out, const char *text)
{
	fputc('"', out);
	print_each(out, text, print_quoted);
	fputc('"', out);
}

/* Print a character of XML.  Returns the bytes it took. */
static unsigned print_in_xml(FILE *out, const unsigned char *at)
{
	uint32_t c;
	unsigned bytes = decode(at, &c);

	/* U+FFFE and U+FFFF are no characters of XML. */
	if (!bytes || is_escaped(c) || c == 0xfffe || c == 0xffff)
		fprintf(out, "&#x%x;", REPLACEMENT);
	else if (strchr("&<>\"'", (int)*at) && bytes == 1)
		fprintf(out, "&#%u;", (unsigned)c);
	else
		fwrite(at, 1, bytes, out);
	return bytes ? bytes : 1;
}

void text_print_xml(FILE *out, const char *text)
{
	print_each(out, text, print_in_xml);
}

void text_print_json(FILE *out, const char *json)
{
	const unsigned char *at = (const unsigned char *)json;

	while (*at) {
		if (*at == '\n' || *at == '\t')
			fputc(*at++, out);
		else
			at += print_in_string(out, at);
	}
}
