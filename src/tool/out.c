/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/out.h"
#include "tool/text.h"

#include <inttypes.h>
#include <stdio.h>

static FILE *file; /* NULL: stdout */
static unsigned depth;
static bool comma; /* the innermost object or array has an element already */

static FILE *to(void)
{
	return file ? file : stdout;
}

void out_to(FILE *other)
{
	file = other;
}

static void element(const char *name)
{
	if (comma)
		fputc(',', to());
	comma = true;
	if (!name)
		return;
	text_quote(to(), name);
	fputc(':', to());
}

static void begin(const char *name, char bracket)
{
	element(name);
	fputc(bracket, to());
	depth++;
	comma = false;
}

static void end(char bracket)
{
	fputc(bracket, to());
	depth--;
	comma = depth > 0;
	if (depth == 0)
		fputc('\n', to());
}

void out_object(const char *name)
{
	begin(name, '{');
}

void out_array(const char *name)
{
	begin(name, '[');
}

void out_object_end(void)
{
	end('}');
}

void out_array_end(void)
{
	end(']');
}

void out_text(const char *name, const char *value)
{
	element(name);
	text_quote(to(), value);
}

void out_count(const char *name, uint64_t value)
{
	element(name);
	fprintf(to(), "%" PRIu64, value);
}

void out_bool(const char *name, bool value)
{
	element(name);
	fputs(value ? "true" : "false", to());
}

void out_number(const char *name, double value, int digits)
{
	element(name);
	fprintf(to(), "%.*f", digits, value);
}
