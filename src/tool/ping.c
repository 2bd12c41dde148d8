/* SPDX-License-Identifier: BSD-2-Clause */
/* weft ping: does that node answer over the fabric, and how fast? */
#include "tool/text.h"
#include "tool/tool.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>

#define COUNT_DEFAULT 4
#define NS_PER_MS     1000000ull

/* Pause between two pings: long enough for both sides to fall asleep, as they would in use. */
#define GAP_NS (200 * NS_PER_MS)

struct tally {
	uint64_t sent, answered;
	uint64_t least_ns, most_ns, sum_ns;
};

static double us(uint64_t ns)
{
	return (double)ns / 1e3;
}

/*
 * Send a ping and wait for its answer.  Returns TOOL_OK, TOOL_FAILED after saying why, or
 * TOOL_INTERRUPTED.
 */
static int ping(const struct tool_command *self, struct weft_peer *peer, const char *address,
		uint64_t *took_ns, struct weft_path *path)
{
	struct weft_op_options options = { .size = sizeof(options), .timeout_ns = TOOL_ANSWER_NS };
	uint64_t start_ns = tool_now_ns();
	struct weft_op *op;
	int err, status = TOOL_OK;

	if (weft_ping(peer, &options, &op))
		return tool_fail(self, "%s: %s", address, weft_error());
	err = tool_wait(op);
	*took_ns = tool_now_ns() - start_ns;
	if (err == -EINTR)
		status = TOOL_INTERRUPTED;
	else if (err)
		status = tool_fail(self, "%s: %s", address, weft_error());
	else if (weft_op_status(op) != WEFT_OK)
		status = tool_op_failed(self, op, address);
	else
		weft_op_path(op, path);
	weft_op_free(op);
	return status;
}

/* Drive the node between two pings, to answer the peer's own questions. */
static void rest(struct weft_node *node)
{
	uint64_t until_ns = tool_now_ns() + GAP_NS;

	for (uint64_t now_ns; !tool_ending() && (now_ns = tool_now_ns()) < until_ns;)
		if (weft_poll(node, until_ns - now_ns) < 0)
			return;
}

static void count_in(struct tally *t, uint64_t took_ns)
{
	t->answered++;
	t->sum_ns += took_ns;
	if (took_ns < t->least_ns || t->answered == 1)
		t->least_ns = took_ns;
	if (took_ns > t->most_ns)
		t->most_ns = took_ns;
}

static int ping_all(const struct tool_command *self, struct weft_node *node,
		    struct weft_peer *peer, const char *address, uint64_t count)
{
	struct weft_path path = { .size = sizeof(path) };
	struct tally t = { 0 };
	uint64_t took_ns;
	int status;

	/* The first ping finds the peer and makes the link; its time says little of the fabric. */
	status = ping(self, peer, address, &took_ns, &path);
	if (status)
		return status;
	printf("%s is ", address);
	text_print(stdout, weft_peer_name(peer));
	printf(": connected in %.1f ms%s%s\n", (double)took_ns / 1e6,
	       *path.provider ? " over " : "", path.provider);

	while (!count || t.sent < count) {
		if (tool_flush(self))
			return TOOL_FAILED;
		rest(node);
		if (tool_ending())
			break;
		t.sent++;
		status = ping(self, peer, address, &took_ns, &path);
		if (status)
			break;
		count_in(&t, took_ns);
		printf("%" PRIu64 ": %.1f us\n", t.sent, us(took_ns));
	}
	if (t.answered)
		printf("%" PRIu64 " sent, %" PRIu64 " answered: least %.1f us, mean %.1f us, most %.1f us\n",
		       t.sent, t.answered, us(t.least_ns), us(t.sum_ns / t.answered),
		       us(t.most_ns));
	if (tool_flush(self))
		return TOOL_FAILED;
	/* A person ends pings by an interrupt, which is no failure once something answered. */
	return status == TOOL_INTERRUPTED && t.answered ? TOOL_OK : status;
}

static int run(const struct tool_command *self, int argc, char **argv)
{
	static const struct option names[] = {
		{ "count", required_argument, NULL, 'c' },
		{ 0 },
	};
	uint64_t count = COUNT_DEFAULT;
	struct weft_node *node;
	struct weft_peer *peer;
	int c, status;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":c:", names, NULL)) != -1) {
		if (c != 'c')
			return tool_bad_option(self, c, argv);
		if (tool_count(optarg, 0, UINT64_MAX, &count))
			return tool_misused(self, "'%s' is not a count", optarg);
	}
	if (argc - optind != 1)
		return tool_misused(self, "one address is needed, as host:port");

	tool_catch_signals();
	if (tool_node_open(self, NULL, &node))
		return tool_fail(self, "%s", weft_error());
	status = tool_peer_open(self, node, argv[optind], &peer);
	if (!status) {
		status = ping_all(self, node, peer, argv[optind], count);
		weft_peer_close(peer);
	}
	tool_node_close(node);
	return status;
}

const struct tool_command ping_command = {
	.name = "ping",
	.arguments = "[-c COUNT] ADDRESS",
	.does = "does that node answer over the fabric, and how fast?",
	.options = "  ADDRESS          host:port of the node's door\n"
		   "  -c, --count N    how many times; 0: until interrupted; default 4\n",
	.run = run,
};
