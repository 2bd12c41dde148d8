/* SPDX-License-Identifier: BSD-2-Clause */
/* weft: the tool.  Its sub-commands are a table; each lives in the file of its name. */
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
	&run_command,
	&key_command,
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

/* Look for an option without getopt: --help works beside words that are wrong, too. */
static bool has(int argc, char **argv, const char *word, const char *short_word)
{
	for (int i = 0; i < argc; i++)
		if (!strcmp(argv[i], word) || (short_word && !strcmp(argv[i], short_word)))
			return true;
	return false;
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
	if (command && argc == 2)
		return tool_help(command);
	return unknown(command ? argv[2] : argv[1]);
}

static int version(void)
{
	printf("weft %s\n", weft_version());
	return TOOL_OK;
}

static int run(int argc, char **argv)
{
	const struct tool_command *command;

	if (argc < 2) {
		overview(stderr);
		return TOOL_USAGE;
	}
	if (!strcmp(argv[1], "--version"))
		return version();
	if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return help(argc - 1, argv + 1);

	command = find(argv[1]);
	if (!command)
		return unknown(argv[1]);
	if (command->passes_on)
		return command->run(command, argc - 1, argv + 1);
	if (has(argc - 2, argv + 2, "--help", "-h"))
		return tool_help(command);
	if (has(argc - 2, argv + 2, "--version", NULL))
		return version();
	return command->run(command, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	static const struct tool_command itself = { .name = "" };
	int status = run(argc, argv);

	/* An output that could not be written must not pass for a success. */
	return status == TOOL_OK && tool_flush(&itself) ? TOOL_FAILED : status;
}
