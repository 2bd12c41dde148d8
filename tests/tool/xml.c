/* SPDX-License-Identifier: BSD-2-Clause */
#include "xml.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define DEPTH_MAX 16

struct name {
	const char *at;
	size_t length;
};

static size_t name_length(const char *at)
{
	size_t length = 0;

	while (isalnum((unsigned char)at[length]) || at[length] == '-' || at[length] == ':')
		length++;
	return length;
}

/* Skip text up to one of @ends.  NULL: a character or a reference is wrong. */
static const char *skip_text(const char *at, const char *ends)
{
	for (; *at && !strchr(ends, *at); at++) {
		size_t digits;

		if ((unsigned char)*at < ' ' && *at != '\n')
			return NULL;
		if (*at == '<' || *at == '>')
			return NULL;
		if (*at != '&')
			continue;
		if (at[1] != '#')
			return NULL;
		at += at[2] == 'x' ? 3 : 2;
		digits = strspn(at, "0123456789abcdef");
		if (!digits || at[digits] != ';')
			return NULL;
		at += digits;
	}
	return at;
}

/* Skip attributes.  NULL: one is wrong. */
static const char *skip_attributes(const char *at)
{
	while (*at == ' ') {
		size_t length = name_length(++at);

		if (!length || strncmp(at + length, "=\"", 2) != 0)
			return NULL;
		at = skip_text(at + length + 2, "\"");
		if (!at || *at != '"')
			return NULL;
		at++;
	}
	return at;
}

/* Skip a tag, and note what it opens or ends.  NULL: the tag is wrong. */
static const char *skip_tag(const char *at, struct name *open, size_t *depth)
{
	bool ends = at[1] == '/';
	const char *name = at + 1 + ends;
	size_t length = name_length(name);

	at = length ? skip_attributes(name + length) : NULL;
	if (!at)
		return NULL;
	if (ends) {
		if (*at != '>' || !*depth || open[*depth - 1].length != length ||
		    strncmp(open[*depth - 1].at, name, length) != 0)
			return NULL;
		--*depth;
		return at + 1;
	}
	if (!strncmp(at, "/>", 2))
		return at + 2;
	if (*at != '>' || *depth == DEPTH_MAX)
		return NULL;
	open[(*depth)++] = (struct name){ name, length };
	return at + 1;
}

const char *xml_wrong(const char *text, const char *root)
{
	static const char head[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
	struct name open[DEPTH_MAX];
	size_t depth = 0;
	const char *at = text, *next;

	if (strncmp(at, head, strlen(head)) != 0)
		return at;
	at += strlen(head);
	if (*at != '<' || name_length(at + 1) != strlen(root) ||
	    strncmp(at + 1, root, strlen(root)) != 0)
		return at;
	do {
		next = *at == '<' ? skip_tag(at, open, &depth) : skip_text(at, "<");
		if (!next)
			return at;
		at = next;
	} while (*at && depth);
	return depth || strcmp(at, "\n") != 0 ? at : NULL;
}
