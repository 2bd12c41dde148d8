/* SPDX-License-Identifier: BSD-2-Clause */
/* weft perf: how fast do tensors and calls go between two processes? */
#include "tool/all_pairs.h"
#include "tool/arrivals.h"
#include "tool/child.h"
#include "tool/cuda.h"
#include "tool/out.h"
#include "tool/perf_client.h"
#include "tool/perf_run.h"
#include "tool/tool.h"
#include "tool/tune.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NS_PER_S 1000000000ull

#define METADATA_MAX     60000u /* the library's 64 KiB, less what is its own */
#define IDLE_STREAMS_MAX 100000u

#define SIZES_DEFAULT "8,1K,64K,1M,16M"

struct arguments {
	struct perf_plan plan;
	uint64_t sizes[PERF_PARTS_MAX];
	size_t size_count;
	bool together;   /* all sizes are tensors of one body */
	uint64_t window; /* bodies at once; 0: by size */
	const char *provider;
	char *const *addresses; /* addresses of the servers; none: start a server */
	size_t address_count;
	bool json;
	bool checksum;
	const char *security;
};

static const char *test_name(enum perf_test test)
{
	static const char *const names[] = {
		[PERF_TENSOR] = "tensor",
		[PERF_CALL] = "call",
		[PERF_MESSAGE] = "message",
		[PERF_STREAM] = "stream",
		[PERF_ATTACHMENT] = "attachment",
	};

	return names[test];
}

static const char *place_name(const struct perf_place *place)
{
	static char name[16];

	if (!place->cuda)
		return place->pool ? "pool" : "user";
	snprintf(name, sizeof(name), "cuda:%u", place->cuda - 1);
	return name;
}

static uint64_t bytes_of(const struct perf_plan *plan)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < plan->part_count; i++)
		sum += plan->parts[i];
	return sum;
}

static unsigned window_of(const struct arguments *a, uint64_t bytes)
{
	return a->window ? (unsigned)a->window : perf_run_window(bytes);
}

/* Output */

static double us(uint64_t ns)
{
	return (double)ns / 1e3;
}

/* Processor time of one body. */
static double spent_us(uint64_t ns, uint64_t count)
{
	return count ? us(ns) / (double)count : 0;
}

static double per_s(uint64_t count, const struct perf_result *r)
{
	return r->took_ns ? (double)count * 1e9 / (double)r->took_ns : 0;
}

/* Bodies of latency in a second: fewer than were asked for if they had to wait for room. */
static double achieved(const struct perf_result *r)
{
	return r->latency_took_ns ? (double)r->latency.count * 1e9 / (double)r->latency_took_ns
				  : 0;
}

static void print_json(const struct arguments *a, const struct perf_result *r)
{
	const struct histogram *h = &r->latency;
	uint64_t bytes = bytes_of(&a->plan);

	out_object(NULL);
	out_text("test", test_name(a->plan.test));
	out_text("provider", r->path.provider);
	out_text("memory", place_name(&a->plan.place));
	out_count("bytes", bytes);
	out_count("tensors", perf_has_tensors(&a->plan) ? a->plan.part_count : 0);
	out_count("servers", a->address_count ? a->address_count : 1);
	out_count("count", r->count);
	out_number("seconds", (double)r->took_ns / 1e9, 6);
	out_object("latency_us");
	out_number("p50", us(histogram_part_ns(h, 0.5)), 2);
	out_number("p99", us(histogram_part_ns(h, 0.99)), 2);
	out_number("p999", us(histogram_part_ns(h, 0.999)), 2);
	out_number("max", us(h->most_ns), 2);
	out_number("cpu", spent_us(r->latency_spent_ns, h->count), 3);
	out_object_end();
	if (a->plan.rate) {
		out_object("rate");
		out_count("asked", a->plan.rate);
		out_number("achieved", achieved(r), 1);
		out_object_end();
	}
	out_number("bytes_per_s", per_s(r->count * bytes, r), 0);
	out_number("messages_per_s", per_s(r->count, r), 1);
	out_number("cpu_us", spent_us(r->spent_ns, r->count), 3);
	out_bool("validated", r->checked && !r->wrong);
	out_object("path");
	out_text("provider", r->path.provider);
	out_text("way", r->path.way);
	out_count("copies", r->path.copies);
	out_count("registered", r->path.registered);
	out_text("device", r->path.device);
	out_count("chunks", r->path.chunks);
	out_count("retries", r->path.retries);
	out_count("rails", r->path.rails);
	out_text("checksum", r->path.checksum);
	out_text("cipher", r->path.cipher);
	out_object_end();
	out_object_end();
}

static void print_head(const struct arguments *a)
{
	printf("%-7s %-12s %-6s %10s %10s %10s %10s %10s", "test", "provider", "way", "bytes",
	       "p50 us", "p99 us", "p99.9 us", "max us");
	if (a->plan.rate)
		printf(" %12s", "at rate/s");
	printf(" %12s %10s %10s  %s\n", "messages/s", "MB/s", "cpu us", "validated");
}

static const char *verdict(const struct perf_result *r)
{
	if (!r->checked)
		return "not asked";
	return r->wrong ? "NO" : "yes";
}

static void print_text(const struct arguments *a, const struct perf_result *r)
{
	const struct histogram *h = &r->latency;
	uint64_t bytes = bytes_of(&a->plan);

	printf("%-7s %-12s %-6s %10" PRIu64 " %10.1f %10.1f %10.1f %10.1f",
	       test_name(a->plan.test), r->path.provider, r->path.way, bytes,
	       us(histogram_part_ns(h, 0.5)), us(histogram_part_ns(h, 0.99)),
	       us(histogram_part_ns(h, 0.999)), us(h->most_ns));
	if (a->plan.rate)
		printf(" %12.0f", achieved(r));
	printf(" %12.0f %10.1f %10.2f  %s\n", per_s(r->count, r),
	       per_s(r->count * bytes, r) / 1e6, spent_us(r->spent_ns, r->count), verdict(r));
}

/* The work */

/* Measure bodies of @count parts with these sizes. */
static int measure(const struct tool_command *self, struct arguments *a,
		   struct perf_client *client, const uint64_t *parts, size_t count)
{
	static struct perf_result result; /* 58 KiB of histogram: too much for a stack */
	int status;

	a->plan.parts = parts;
	a->plan.part_count = count;
	a->plan.window = window_of(a, bytes_of(&a->plan));
	status = perf_client_measure(client, &a->plan, &result);
	if (status)
		return status;
	if (a->json)
		print_json(a, &result);
	else
		print_text(a, &result);
	if (tool_flush(self))
		return TOOL_FAILED;
	if (result.wrong)
		return tool_fail(self, "%" PRIu64 " bytes arrived otherwise than sent",
				 result.wrong);
	return TOOL_OK;
}

static int measure_all(const struct tool_command *self, struct arguments *a,
		       struct perf_client *client)
{
	int status = TOOL_OK;

	if (!a->json)
		print_head(a);
	if (a->together)
		return measure(self, a, client, a->sizes, a->size_count);
	for (size_t i = 0; i < a->size_count && !status; i++)
		status = measure(self, a, client, &a->sizes[i], 1);
	return status;
}

/* Check that a node would open, before the second process starts: a single process complains. */
static int look(const struct tool_command *self)
{
	struct weft_info *info;

	if (weft_info_open(NULL, &info))
		return tool_fail(self, "%s", weft_error());
	weft_info_close(info);
	return TOOL_OK;
}

static int perf(const struct tool_command *self, struct arguments *a)
{
	struct perf_client *client = NULL;
	struct child child = { 0 };
	char *started[] = { child.address };
	const char *why = perf_run_open(&a->plan.place);
	int status, ended;

	if (why)
		return tool_fail(self, "%s", why);
	status = look(self);
	if (!status && !a->address_count)
		status = child_start(self, &child);
	if (!status && a->address_count)
		status = perf_client_open(self, NULL, a->addresses, a->address_count, &client);
	else if (!status)
		status = perf_client_open(self, child.listen, started, 1, &client);
	if (!status)
		status = measure_all(self, a, client);
	if (!status)
		status = perf_client_leave(client);
	/* The second process is told first, so that it does not report this one as lost. */
	if (status)
		child_ask(&child);
	perf_client_close(client);
	ended = child_end(self, &child);
	return status ? status : ended;
}

/* Arguments */

static int read_sizes(const struct tool_command *self, struct arguments *a, const char *text)
{
	char *words = strdup(text), *rest = words, *word;
	int status = words ? TOOL_OK : tool_fail(self, "no memory");

	a->size_count = 0;
	while (!status && (word = strsep(&rest, ","))) {
		if (a->size_count == PERF_PARTS_MAX)
			status = tool_misused(self, "more than %u sizes", PERF_PARTS_MAX);
		else if (tool_bytes(word, &a->sizes[a->size_count]) ||
			 a->sizes[a->size_count] > PERF_BYTES_MAX)
			status = tool_misused(self, "'%s' is not a size up to 1G", word);
		else
			a->size_count++;
	}
	free(words);
	return status;
}

static int read_test(const struct tool_command *self, struct arguments *a, const char *text)
{
	static const enum perf_test tests[] = { PERF_TENSOR, PERF_CALL, PERF_MESSAGE,
					       PERF_STREAM, PERF_ATTACHMENT };

	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++)
		if (strcmp(text, test_name(tests[i])) == 0) {
			a->plan.test = tests[i];
			return TOOL_OK;
		}
	return tool_misused(self,
			    "--test takes tensor, call, message, stream or attachment, not '%s'",
			    text);
}

static int read_option(const struct tool_command *self, struct arguments *a, int c)
{
	uint64_t device;

	switch (c) {
	case 't':
		return read_test(self, a, optarg);
	case 's':
	case 'S':
		a->together = c == 'S';
		return read_sizes(self, a, optarg);
	case 'p':
		a->provider = optarg;
		return TOOL_OK;
	case 'T':
		if (tool_seconds(optarg, &a->plan.time_ns))
			return tool_misused(self, "'%s' is not a number of seconds", optarg);
		return TOOL_OK;
	case 'n':
		if (tool_count(optarg, 1, 1000000000, &a->plan.count))
			return tool_misused(self, "'%s' is not a count", optarg);
		return TOOL_OK;
	case 'w':
		if (tool_count(optarg, 1, PERF_WINDOW_MAX, &a->window))
			return tool_misused(self, "--window takes 1 to %u, not '%s'",
					    PERF_WINDOW_MAX, optarg);
		return TOOL_OK;
	case 'r':
		if (tool_count(optarg, 1, ARRIVALS_RATE_MAX, &a->plan.rate))
			return tool_misused(self, "--rate takes 1 to %u bodies a second, not '%s'",
					    ARRIVALS_RATE_MAX, optarg);
		return TOOL_OK;
	case 'm':
		if (strcmp(optarg, "user") != 0 && strcmp(optarg, "pool") != 0)
			return tool_misused(self, "--memory takes user or pool, not '%s'", optarg);
		a->plan.place.pool = !strcmp(optarg, "pool");
		return TOOL_OK;
	case 'd':
		if (strncmp(optarg, "cuda:", 5) != 0 ||
		    tool_count(optarg + 5, 0, CUDA_DEVICES_MAX - 1, &device))
			return tool_misused(self, "--device takes cuda:N, not '%s'", optarg);
		a->plan.place.cuda = (uint32_t)device + 1;
		return TOOL_OK;
	case 'c':
		a->checksum = true;
		return TOOL_OK;
	case 'C':
		a->security = optarg;
		return TOOL_OK;
	case 'M':
		if (tool_count(optarg, 1, METADATA_MAX, &a->plan.metadata_bytes))
			return tool_misused(self, "--metadata takes 1 to %u bytes, not '%s'",
					    METADATA_MAX, optarg);
		return TOOL_OK;
	case 'I':
		if (tool_count(optarg, 1, IDLE_STREAMS_MAX, &a->plan.idle_streams))
			return tool_misused(self, "--idle-streams takes 1 to %u, not '%s'",
					    IDLE_STREAMS_MAX, optarg);
		return TOOL_OK;
	case 'j':
		a->json = true;
		return TOOL_OK;
	default: /* 'V' */
		a->plan.check = false;
		return TOOL_OK;
	}
}

static int check_arguments(const struct tool_command *self, const struct arguments *a)
{
	uint64_t sum = 0, most = 0, window;

	for (size_t i = 0; i < a->size_count; i++) {
		sum += a->sizes[i];
		most = a->sizes[i] > most ? a->sizes[i] : most;
	}
	if (a->address_count > PERF_SERVERS_MAX)
		return tool_misused(self, "more than %u servers", PERF_SERVERS_MAX);
	if (a->together && !perf_has_tensors(&a->plan))
		return tool_misused(self, "--tensors are no calls");
	if (a->plan.place.cuda && !perf_has_tensors(&a->plan))
		return tool_misused(self, "--device is for tensors: a %s lies in no device",
				    test_name(a->plan.test));
	if (a->plan.place.cuda && a->plan.place.pool)
		return tool_misused(self, "--memory pool lies in no device");
	if (a->together)
		most = sum;
	window = window_of(a, most);
	if (a->together && window * a->size_count > PERF_OPS_MAX)
		return tool_misused(self, "more than %u tensors at once", PERF_OPS_MAX);
	if (most * window > PERF_MEMORY_MAX)
		return tool_misused(self, "%" PRIu64 " bytes, %" PRIu64 " at once, are more than 2G",
				    most, window);
	return TOOL_OK;
}

static int read_arguments(const struct tool_command *self, struct arguments *a, int argc,
			  char **argv)
{
	static const struct option names[] = {
		{ "test", required_argument, NULL, 't' },
		{ "sizes", required_argument, NULL, 's' },
		{ "tensors", required_argument, NULL, 'S' },
		{ "provider", required_argument, NULL, 'p' },
		{ "time", required_argument, NULL, 'T' },
		{ "count", required_argument, NULL, 'n' },
		{ "window", required_argument, NULL, 'w' },
		{ "rate", required_argument, NULL, 'r' },
		{ "memory", required_argument, NULL, 'm' },
		{ "metadata", required_argument, NULL, 'M' },
		{ "idle-streams", required_argument, NULL, 'I' },
		{ "device", required_argument, NULL, 'd' },
		{ "checksum", no_argument, NULL, 'c' },
		{ "security", required_argument, NULL, 'C' },
		{ "json", no_argument, NULL, 'j' },
		{ "no-validate", no_argument, NULL, 'V' },
		{ 0 },
	};
	int c, status = read_sizes(self, a, SIZES_DEFAULT);

	opterr = 0;
	while (!status && (c = getopt_long(argc, argv, ":", names, NULL)) != -1)
		status = c == ':' || c == '?' ? tool_bad_option(self, c, argv)
					      : read_option(self, a, c);
	if (status)
		return status;
	a->addresses = argv + optind;
	a->address_count = (size_t)(argc - optind);
	return check_arguments(self, a);
}

/* A key for the two processes of one run. */
static char key_folder[] = "/tmp/weft-perf-XXXXXX", key_file[sizeof(key_folder) + 4];

/* Is a key needed that nobody has named? */
static bool wants_key(const struct arguments *a)
{
	return a->security && strcmp(a->security, "open") != 0 && !a->address_count &&
	       !getenv("WEFT_KEY_FILE") && !getenv("WEFT_CERT");
}

static void remove_key(void)
{
	(void)unlink(key_file);
	(void)rmdir(key_folder);
}

static int make_key(const struct tool_command *self)
{
	if (!mkdtemp(key_folder))
		return tool_fail(self, "no folder for a key: %s", strerror(errno));
	(void)snprintf(key_file, sizeof(key_file), "%s/key", key_folder);
	if (!weft_key_new(key_file) && !setenv("WEFT_KEY_FILE", key_file, 1))
		return TOOL_OK;
	remove_key();
	return tool_fail(self, "no key: %s", weft_error());
}

static int run(const struct tool_command *self, int argc, char **argv)
{
	struct arguments a = { .plan = { .time_ns = NS_PER_S, .check = true } };
	int status;

	if (all_pairs_asked(argc, argv))
		return all_pairs_run(self, argc, argv);
	if (tune_asked(argc, argv))
		return tune_run(self, argc, argv);
	status = read_arguments(self, &a, argc, argv);
	if (status)
		return status;
	/* The second process inherits the environment. */
	if (a.provider && setenv("WEFT_PROVIDER", a.provider, 1))
		return tool_fail(self, "no memory");
	/* WEFT_CHECKSUM at one end is enough for both. */
	if (a.checksum && setenv("WEFT_CHECKSUM", "yes", 1))
		return tool_fail(self, "no memory");
	if (a.security && setenv("WEFT_SECURITY", a.security, 1))
		return tool_fail(self, "no memory");
	tool_catch_signals();
	if (!wants_key(&a))
		return perf(self, &a);
	status = make_key(self);
	if (!status)
		status = perf(self, &a);
	remove_key();
	return status;
}

const struct tool_command perf_command = {
	.name = "perf",
	.arguments = "[--test tensor|call|message|stream|attachment]\n"
		     "       [--sizes LIST | --tensors LIST] [--provider NAME] [--time S]\n"
		     "       [--count N] [--window N] [--rate N] [--memory user|pool]\n"
		     "       [--device cuda:N] [--metadata BYTES] [--idle-streams N] [--checksum]\n"
		     "       [--security MODE] [--json] [--no-validate] [ADDRESS...]\n"
		     "       weft perf --all-pairs [--bytes SIZE] [--seconds S] [--provider NAME]\n"
		     "       [--json FILE] [--svg FILE]\n"
		     "       weft perf --tune [--provider NAME] [--time S] [--json]",
	.does = "how fast do tensors and calls go between two processes?",
	.options = "  --test NAME         what is moved: tensor; call; message, which is a\n"
		   "                      tensor that nobody acknowledges; stream, a call with\n"
		   "                      a message for each body; attachment, tensors beside a\n"
		   "                      call; default tensor\n"
		   "  --sizes LIST        as 8,64K,1M; default " SIZES_DEFAULT "\n"
		   "  --tensors LIST      one body is all of these tensors, acknowledged together\n"
		   "  --provider NAME     as WEFT_PROVIDER\n"
		   "  --time S            seconds for each size: half for latency, half for\n"
		   "                      bandwidth; default 1\n"
		   "  --count N           so many bodies in each half, in place of a time\n"
		   "  --window N          bodies on the way at once for bandwidth; default 2 to 16,\n"
		   "                      by size\n"
		   "  --rate N            for latency N bodies begin in a second, however many are\n"
		   "                      on the way, up to the window; each is timed from when it\n"
		   "                      was due\n"
		   "  --memory user|pool  whose memory the bodies lie in; default user\n"
		   "  --device cuda:N     they lie in the memory of that CUDA device, on both sides\n"
		   "  --metadata BYTES    so many go with each call\n"
		   "  --idle-streams N    so many are open besides\n"
		   "  --checksum          as WEFT_CHECKSUM=yes\n"
		   "  --security MODE     as WEFT_SECURITY; without ADDRESS, key or certificate a\n"
		   "                      key is made for the two\n"
		   "  --json              one JSON object per line\n"
		   "  --no-validate       do not compare what arrives first\n"
		   "  ADDRESS             of a `weft serve`; default: start one.  With several\n"
		   "                      each has its bodies on the way, in turn\n"
		   "  --all-pairs         as each process of a job: measure all pairs, and print a\n"
		   "                      matrix in rank 0\n"
		   "  --bytes SIZE        with it: body for bandwidth; default 1M\n"
		   "  --seconds S         with it: time for each ordered pair; default 1\n"
		   "  --json FILE         with it: the matrix as JSON; -: in place of text\n"
		   "  --svg FILE          with it: the matrix as a picture\n"
		   "  --tune              try other frames, eager limits, chunks and depths than the\n"
		   "                      provider's, within --time, default 300; print the better\n",
	.run = run,
};
