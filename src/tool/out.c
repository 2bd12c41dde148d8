/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/out.h"
#include "tool/text.h"

#include <inttypes.h>
#include <stdio.h>

static unsigned depth;
static bool comma; /* the innermost object or array has an element already */

static void element(const char *name)
{
	if (comma)
		putchar(',');
	comma = true;
	if (!name)
		return;
	text_quote(stdout, name);
	putchar(':');
}

static void begin(const char *name, char bracket)
{
	element(name);
	putchar(bracket);
	depth++;
	comma = false;
}

static void end(char bracket)
{
	putchar(bracket);
	depth--;
	comma = depth > 0;
	if (depth == 0)
		putchar('\n');
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
	text_quote(stdout, value);
}

void out_count(const char *name, uint64_t value)
{
	element(name);
	printf("%" PRIu64, value);
}

void out_bool(const char *name, bool value)
{
	element(name);
	fputs(value ? "true" : "false", stdout);
}

void out_number(const char *name, double value, int digits)
{
	element(name);
	printf("%.*f", digits, value);
}
