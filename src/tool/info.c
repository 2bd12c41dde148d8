/* SPDX-License-Identifier: BSD-2-Clause */
/* weft info: what this host offers, what weft chooses, and why. */
#include "tool/out.h"
#include "tool/tool.h"
#include "tool/topology.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The body that --plan asks about. */
struct question {
	uint64_t bytes;
	enum weft_place source, destination;
};

static int place_of(const char *word, enum weft_place *place)
{
	if (!strcmp(word, "user"))
		*place = WEFT_PLACE_USER;
	else if (!strcmp(word, "pool"))
		*place = WEFT_PLACE_POOL;
	else
		return -1;
	return 0;
}

/* Returns what the environment holds for @o, by either name; NULL: nothing that counts. */
static const char *value_of(const struct weft_option *o)
{
	const char *value = secure_getenv(o->name);

	/* Empty text is none, as weft_options(7) says. */
	if (value && !*value && !strcmp(o->unit, "text"))
		value = NULL;
	return value || !*o->alias ? value : secure_getenv(o->alias);
}

static void option_text(const struct weft_option *o)
{
	const char *value = value_of(o);

	printf("%s", o->name);
	if (*o->alias)
		printf(" (or %s)", o->alias);
	printf("\n\t%s, default %s", o->unit, *o->preset ? o->preset : "none");
	if (*o->least || *o->most)
		printf(", %s to %s", o->least, o->most);
	printf("\n\t%s\n", o->when);
	if (value)
		printf("\tset to '%s'\n", value);
}

static void option_json(const struct weft_option *o)
{
	const char *value = value_of(o);

	out_object(NULL);
	out_text("name", o->name);
	out_text("alias", o->alias);
	out_text("unit", o->unit);
	out_text("default", o->preset);
	out_text("least", o->least);
	out_text("most", o->most);
	out_text("when", o->when);
	if (value)
		out_text("value", value);
	out_object_end();
}

static void show_options(bool json)
{
	struct weft_option option = WEFT_OPTION_INIT;

	if (json) {
		out_object(NULL);
		out_array("options");
	}
	for (size_t i = 0; !weft_option_get(i, &option); i++)
		if (json)
			option_json(&option);
		else
			option_text(&option);
	if (json) {
		out_array_end();
		out_object_end();
	}
}

static void fabric_json(const struct weft_fabric *f)
{
	out_object(NULL);
	out_text("provider", f->provider);
	out_text("domain", f->domain);
	out_text("row", f->row);
	out_text("shape", f->shape);
	out_text("wait", f->wait);
	out_bool("used", f->used);
	out_bool("tested", f->tested);
	out_text("tested_over", f->tested_over);
	out_text("cached", f->cached);
	out_text("reason", f->reason);
	out_count("rank", f->rank);
	out_count("frame_bytes", f->frame_bytes);
	out_count("inject_bytes", f->inject_bytes);
	out_count("eager_bytes", f->eager_bytes);
	out_count("chunk_bytes", f->chunk_bytes);
	out_count("depth", f->depth);
	out_bool("registration_is_cheap", f->registration_is_cheap);
	out_bool("hmem", f->hmem);
	out_object_end();
}

static void fabric_text(const struct weft_fabric *f)
{
	printf("%-4s %4u  %-16s %-12s %-10s %-9s %6zu %7zu %6zu %8zu %5u  %s%s",
	       f->used ? "yes" : "no", f->rank, f->provider, f->domain, f->shape, f->wait,
	       f->frame_bytes, f->inject_bytes, f->eager_bytes, f->chunk_bytes, f->depth,
	       f->reason, f->tested ? "" : " (untested)");
	if (*f->tested_over)
		printf(" (tested over %s alone)", f->tested_over);
	if (f->used && !strncmp(f->cached, "no", 2))
		printf(" (registrations are not kept, %s)", f->cached);
	printf("\n");
}

static void cuda_json(const struct weft_info *info, const struct weft_cuda *c)
{
	out_object("cuda");
	out_text("state", c->state);
	out_text("sentence", c->sentence);
	out_count("version", (uint64_t)c->version);
	out_text("libfabric", c->fabric);
	out_array("devices");
	for (size_t i = 0; i < c->device_count; i++) {
		struct weft_cuda_device d = { .size = sizeof(d) };

		if (weft_info_cuda_device(info, i, &d))
			continue;
		out_object(NULL);
		out_text("name", d.name);
		out_text("pci", d.pci);
		out_count("bytes", d.bytes);
		out_number("numa_node", d.numa_node, 0);
		out_bool("dma_buf", d.dma_buf);
		out_object_end();
	}
	out_array_end();
	out_object_end();
}

static void cuda_text(const struct weft_info *info, const struct weft_cuda *c)
{
	printf("\ncuda         %s\n", c->sentence);
	for (size_t i = 0; i < c->device_count; i++) {
		struct weft_cuda_device d = { .size = sizeof(d) };

		if (weft_info_cuda_device(info, i, &d))
			continue;
		printf("  cuda:%-5zu %s, %s, %" PRIu64 " MiB", i, d.name,
		       *d.pci ? d.pci : "PCI address unknown", d.bytes >> 20);
		if (d.numa_node >= 0)
			printf(", NUMA node %d", d.numa_node);
		printf("%s\n", d.dma_buf ? ", dma-buf" : "");
	}
	printf("  libfabric  %s\n", c->fabric);
}

static void security_json(const struct weft_info_secure *s)
{
	out_object("security");
	out_text("mode", s->mode);
	out_text("identity", s->identity);
	out_text("sentence", s->sentence);
	out_object_end();
}

static void security_text(const struct weft_info_secure *s)
{
	printf("\nsecurity     %s%s%s\n", *s->mode ? s->mode : "no node would open",
	       *s->identity ? ", as " : "", s->identity);
	printf("             %s\n", s->sentence);
}

static void show_fabrics(struct weft_info *info, bool json)
{
	struct weft_info_secure secure = { .size = sizeof(secure) };
	struct weft_cuda cuda = { .size = sizeof(cuda) };
	size_t count = weft_info_count(info);

	if (json) {
		out_object(NULL);
		out_text("weft", weft_version());
		out_text("libfabric", weft_info_libfabric());
		out_array("fabrics");
	} else {
		printf("weft %s, libfabric %s\n\n", weft_version(), weft_info_libfabric());
		printf("%-4s %4s  %-16s %-12s %-10s %-9s %6s %7s %6s %8s %5s  %s\n", "used",
		       "rank", "provider", "domain", "shape", "wait", "frame", "inject",
		       "eager", "chunk", "depth", "reason");
	}
	for (size_t i = 0; i < count; i++) {
		struct weft_fabric f = { .size = sizeof(f) };

		if (weft_info_get(info, i, &f))
			continue;
		if (json)
			fabric_json(&f);
		else
			fabric_text(&f);
	}
	if (json)
		out_array_end();
	if (!weft_info_security(info, &secure)) {
		if (json)
			security_json(&secure);
		else
			security_text(&secure);
	}
	if (!weft_info_cuda(info, &cuda)) {
		if (json)
			cuda_json(info, &cuda);
		else
			cuda_text(info, &cuda);
	}
	if (json)
		out_object_end();
}

static bool is_any_used(const struct weft_info *info)
{
	struct weft_fabric f = { .size = sizeof(f) };

	for (size_t i = 0; i < weft_info_count(info); i++)
		if (!weft_info_get(info, i, &f) && f.used)
			return true;
	return false;
}

/* Print how a body would go by each fabric that a node would open. */
static void show_plans(const struct weft_info *info, const struct question *q, bool json)
{
	size_t count = weft_info_count(info);

	if (json) {
		out_object(NULL);
		out_count("bytes", q->bytes);
		out_array("plans");
	}
	for (size_t i = 0; i < count; i++) {
		struct weft_fabric f = { .size = sizeof(f) };
		char text[256];

		if (weft_info_get(info, i, &f) || !f.used)
			continue;
		if (weft_info_plan(info, i, q->bytes, q->source, q->destination, text,
				   sizeof(text)))
			snprintf(text, sizeof(text), "none: %s", weft_error());
		if (!json) {
			printf("%-16s %-12s %s\n", f.provider, f.domain, text);
			continue;
		}
		out_object(NULL);
		out_text("provider", f.provider);
		out_text("domain", f.domain);
		out_text("plan", text);
		out_object_end();
	}
	if (json) {
		out_array_end();
		out_object_end();
	}
}

static int run(const struct tool_command *self, int argc, char **argv)
{
	static const struct option names[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "options", no_argument, NULL, 'o' },
		{ "plan", required_argument, NULL, 'p' },
		{ "topology", no_argument, NULL, 't' },
		{ 0 },
	};
	bool json = false, options = false, topology = false;
	const char *plan = NULL;
	struct weft_info *info;
	struct question q;
	int c, status;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":", names, NULL)) != -1)
		switch (c) {
		case 'j':
			json = true;
			break;
		case 'o':
			options = true;
			break;
		case 'p':
			plan = optarg;
			break;
		case 't':
			topology = true;
			break;
		default:
			return tool_bad_option(self, c, argv);
		}
	argc -= optind;
	argv += optind;
	if (options + topology + (plan != NULL) > 1)
		return tool_misused(self, "--options, --plan and --topology are different questions");
	if (plan) {
		if (argc != 2 || place_of(argv[0], &q.source) ||
		    place_of(argv[1], &q.destination))
			return tool_misused(self, "--plan needs a size and two of user and pool");
		if (tool_bytes(plan, &q.bytes))
			return tool_misused(self, "'%s' is not a size", plan);
	} else if (argc) {
		return tool_misused(self, "'%s' is one word too many", argv[0]);
	}

	if (options) {
		show_options(json);
		return tool_flush(self) ? TOOL_FAILED : TOOL_OK;
	}
	if (topology) {
		if (topology_show(json))
			return tool_fail(self, "%s", weft_error());
		return tool_flush(self) ? TOOL_FAILED : TOOL_OK;
	}
	if (weft_info_look(NULL, &info))
		return tool_fail(self, "%s", weft_error());
	if (plan)
		show_plans(info, &q, json);
	else
		show_fabrics(info, json);
	status = tool_flush(self) ? TOOL_FAILED : TOOL_OK;
	if (!status && !is_any_used(info))
		status = tool_fail(self, "nothing is left that a node would open: see the reasons");
	weft_info_close(info);
	return status;
}

const struct tool_command info_command = {
	.name = "info",
	.arguments = "[--json] [--options | --plan BYTES SOURCE DESTINATION | --topology]",
	.does = "what this host offers, what weft chooses, and why",
	.options = "  --json     one JSON object\n"
		   "  --options  weft's settings: names, defaults, when to change them\n"
		   "  --plan     how a body of BYTES would go; SOURCE and DESTINATION are\n"
		   "             user or pool: whose memory it lies in\n"
		   "  --topology who publishes memory, and how far it is from whom\n",
	.run = run,
};
