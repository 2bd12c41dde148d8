/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft: the tool.  Its sub-commands are a table; each lives in the file of
 * its name.
 */
#include "tool/tool.h"

#include <stdlib.h>
#include <string.h>

static const struct tool_command *const commands[] = {
	&info_command,
	&ping_command,
	&serve_command,
	&perf_command,
	&services_command,
	&call_command,
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(*commands))

static const struct tool_command *find(const char *name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static void overview(FILE *out)
{
	fprintf(out, "usage: weft COMMAND [ARGUMENTS]\n\n");
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(out, "  %-8s %s\n", commands[i]->name, commands[i]->does);
	fprintf(out, "  %-8s %s\n", "help", "how to use one of them: weft help COMMAND");
}

static int unknown(const char *name)
{
	fprintf(stderr, "weft: there is no command '%s'\n", name);
	overview(stderr);
	return TOOL_USAGE;
}

static int help(int argc, char **argv)
{
	const struct tool_command *command;

	if (argc < 2) {
		overview(stdout);
		return TOOL_OK;
	}
	command = find(argv[1]);
	return command ? tool_help(command) : unknown(argv[1]);
}

int main(int argc, char **argv)
{
	const struct tool_command *command;

	if (argc < 2) {
		overview(stderr);
		return TOOL_USAGE;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("weft %s\n", weft_version());
		return TOOL_OK;
	}
	if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help"))
		return help(argc - 1, argv + 1);

	command = find(argv[1]);
	if (!command)
		return unknown(argv[1]);
	for (int i = 2; i < argc; i++)
		if (!strcmp(argv[i], "--help"))
			return tool_help(command);
	return command->run(command, argc - 1, argv + 1);
}
