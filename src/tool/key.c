/* SPDX-License-Identifier: BSD-2-Clause */
/* weft key: make the secret that the nodes of a cluster share. */
#include "tool/tool.h"

#include <getopt.h>
#include <string.h>

static int run(const struct tool_command *self, int argc, char **argv)
{
	static const struct option names[] = { { 0 } };
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":", names, NULL)) != -1)
		return tool_bad_option(self, c, argv);
	if (argc - optind != 2 || strcmp(argv[optind], "new"))
		return tool_misused(self, "expected: new FILE");
	if (weft_key_new(argv[optind + 1]))
		return tool_fail(self, "%s", weft_error());
	return TOOL_OK;
}

const struct tool_command key_command = {
	.name = "key",
	.arguments = "new FILE",
	.does = "make a key file, for nodes that prove themselves by it",
	.options = "  new FILE            32 random bytes, for WEFT_KEY_FILE of every node; copy\n"
		   "                      the file to each host by a way that nobody else reads\n",
	.run = run,
};
