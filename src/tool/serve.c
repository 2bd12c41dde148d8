/* SPDX-License-Identifier: BSD-2-Clause */
/* weft serve: the other side of `weft ping` and `weft perf`. */
#include "tool/perf_run.h"
#include "tool/perf_server.h"
#include "tool/tool.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>

#define NS_PER_S 1000000000ull

/* Delay, at most, of a signal that comes just before the node sleeps. */
#define SLICE_NS (NS_PER_S / 5)

/* Time after SIGHUP for the library to see the caller go, with --once. */
#define GRACE_NS (2 * NS_PER_S)

/*
 * SIGHUP tells the second process of `weft perf` that the first is dead.  The second goes on for a
 * moment, for weft to notice and to remove what the dead process left.
 */
static bool finished(const struct perf_server *server, bool once, uint64_t *until_ns)
{
	if (tool_ending() || !once)
		return tool_ending();
	if (!perf_server_present(server))
		return tool_orphaned() || perf_server_left(server) || perf_server_lost(server);
	if (tool_orphaned() && !*until_ns)
		*until_ns = tool_now_ns() + GRACE_NS;
	return *until_ns && tool_now_ns() >= *until_ns;
}

static int serve(const struct tool_command *self, struct weft_node *node,
		 const struct perf_server *server, bool once)
{
	uint64_t until_ns = 0;

	printf("%s\n", weft_node_address(node));
	if (tool_flush(self))
		return TOOL_FAILED;
	while (!finished(server, once, &until_ns)) {
		if (weft_poll(node, SLICE_NS) < 0)
			return tool_fail(self, "%s", weft_error());
	}
	if (until_ns && perf_server_present(server))
		return tool_fail(self, "the process that measured has gone");
	return once && perf_server_lost(server) ? TOOL_FAILED : TOOL_OK;
}

static int run(const struct tool_command *self, int argc, char **argv)
{
	static const struct option names[] = {
		{ "listen", required_argument, NULL, 'l' },
		{ "once", no_argument, NULL, 'o' },
		{ "callers", required_argument, NULL, 'c' },
		{ 0 },
	};
	const char *listen = NULL;
	struct perf_server *server = NULL;
	struct weft_node *node;
	uint64_t callers = 1;
	bool once = false;
	int c, err, status;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":", names, NULL)) != -1)
		switch (c) {
		case 'l':
			listen = optarg;
			break;
		case 'o':
			once = true;
			break;
		case 'c':
			if (tool_count(optarg, 1, PERF_CALLERS_MAX, &callers))
				return tool_misused(self, "--callers takes 1 to %u, not '%s'",
						    PERF_CALLERS_MAX, optarg);
			break;
		default:
			return tool_bad_option(self, c, argv);
		}
	if (optind != argc)
		return tool_misused(self, "'%s' is one word too many", argv[optind]);

	tool_catch_signals();
	if (once)
		tool_catch_orphaning();
	/* The server's receives wait for callers for as long as it takes: that is no stall. */
	if (setenv("WEFT_STALL", "0", 0))
		return tool_fail(self, "no memory");
	err = tool_node_open(self, listen, &node);
	if (err == -EINVAL && listen)
		return tool_misused(self, "%s", weft_error());
	if (err)
		return tool_fail(self, "%s", weft_error());
	if (weft_serve_reflection(node) || weft_serve_health(node) ||
	    perf_server_open(self, node, (unsigned)callers, &server))
		status = tool_fail(self, "%s", weft_error());
	else
		status = serve(self, node, server, once);
	tool_node_close(node);
	perf_server_close(server);
	return status;
}

const struct tool_command serve_command = {
	.name = "serve",
	.arguments = "[--listen HOST:PORT] [--once] [--callers N]",
	.does = "answer pings and measurements, until interrupted; prints its address",
	.options = "  --listen HOST:PORT  port 0: any; default as WEFT_LISTEN says, else 127.0.0.1:0\n"
		   "  --once              end when the first that measures has gone, with status 1\n"
		   "                      if it was lost\n"
		   "  --callers N         let measurements begin when so many have come, at once\n",
	.run = run,
};
