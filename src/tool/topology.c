/* SPDX-License-Identifier: BSD-2-Clause */
#include "tool/topology.h"

#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

#include "tool/out.h"

#define CELL_MIN 8 /* "(NODE)" and two blanks */

static void publisher_json(const struct weft_publisher *p)
{
	out_object(NULL);
	out_text("name", p->name);
	out_text("kind", p->kind);
	out_text("address", p->address);
	out_number("numa_node", p->numa_node, 0);
	out_bool("published", p->published);
	out_text("why_not", p->why_not);
	out_bool("lends", p->lends);
	out_count("bytes", p->bytes);
	out_count("available_bytes", p->available_bytes);
	out_object_end();
}

static void pair_json(const struct weft_publisher *p, const struct weft_pair *pair)
{
	out_object(NULL);
	out_text("name", p->name);
	out_text("path", pair->path);
	out_count("distance", pair->distance);
	out_bool("allowed", pair->allowed);
	out_bool("chosen", pair->chosen);
	out_text("why", pair->why);
	out_object_end();
}

static void client_json(const struct weft_topology *t, size_t client)
{
	struct weft_client c = { .size = sizeof(c) };

	weft_topology_client(t, client, &c);
	out_object(NULL);
	out_text("name", c.name);
	out_text("names", c.names);
	out_text("address", c.address);
	out_text("kind", c.kind);
	out_number("numa_node", c.numa_node, 0);
	out_array("publishers");
	for (size_t i = 0; i < weft_topology_publishers(t); i++) {
		struct weft_publisher p = { .size = sizeof(p) };
		struct weft_pair pair = { .size = sizeof(pair) };

		if (!weft_topology_publisher(t, i, &p) && !weft_topology_pair(t, i, client, &pair))
			pair_json(&p, &pair);
	}
	out_array_end();
	out_object_end();
}

static void show_json(const struct weft_topology *t)
{
	out_object(NULL);
	out_array("publishers");
	for (size_t i = 0; i < weft_topology_publishers(t); i++) {
		struct weft_publisher p = { .size = sizeof(p) };

		if (!weft_topology_publisher(t, i, &p))
			publisher_json(&p);
	}
	out_array_end();
	out_array("clients");
	for (size_t i = 0; i < weft_topology_clients(t); i++)
		client_json(t, i);
	out_array_end();
	out_object_end();
}

static int cell_width(const struct weft_client *c)
{
	int width = (int)strlen(c->name) + 2;

	return width > CELL_MIN ? width : CELL_MIN;
}

/* Write @bytes as "64.0 GiB". */
static void size_text(uint64_t bytes, char text[16])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double value = (double)bytes;
	size_t unit = 0;

	for (; value >= 1024 && unit < 4; unit++)
		value /= 1024;
	snprintf(text, 16, "%.1f %s", value, units[unit]);
}

/* Print a publisher's row: how far it is from each client. */
static void show_publisher(const struct weft_topology *t, size_t publisher, int name_width)
{
	struct weft_publisher p = { .size = sizeof(p) };
	char bytes[16], available[16], cell[16], node[16] = "-";

	weft_topology_publisher(t, publisher, &p);
	printf("%-*s", name_width, p.name);
	for (size_t i = 0; i < weft_topology_clients(t); i++) {
		struct weft_client c = { .size = sizeof(c) };
		struct weft_pair pair = { .size = sizeof(pair) };

		weft_topology_client(t, i, &c);
		weft_topology_pair(t, publisher, i, &pair);
		snprintf(cell, sizeof(cell), pair.allowed ? "%s%s" : "(%s)", pair.path,
			 pair.chosen ? "*" : "");
		printf("%-*s", cell_width(&c), cell);
	}
	size_text(p.bytes, bytes);
	size_text(p.available_bytes, available);
	if (p.numa_node >= 0)
		snprintf(node, sizeof(node), "%d", p.numa_node);
	printf("%-5s %12s %12s%s%s%s\n", node, bytes, available,
	       p.published ? "" : "  not published", *p.why_not ? ": " : "", p.why_not);
}

/* Print what a client gets, and why nothing else. */
static void show_client(const struct weft_topology *t, size_t client)
{
	struct weft_client c = { .size = sizeof(c) };

	weft_topology_client(t, client, &c);
	printf("\n%s: %s %s", c.name, c.kind, c.address);
	if (c.numa_node >= 0)
		printf(", NUMA node %d", c.numa_node);
	if (strcmp(c.names, c.name) && *c.names)
		printf(", also %s", c.names + strlen(c.name) + 1);
	putchar('\n');
	for (size_t i = 0; i < weft_topology_publishers(t); i++) {
		struct weft_publisher p = { .size = sizeof(p) };
		struct weft_pair pair = { .size = sizeof(pair) };

		weft_topology_publisher(t, i, &p);
		weft_topology_pair(t, i, client, &pair);
		if (pair.chosen)
			printf("  from %s: %s\n", p.name, pair.why);
		else if (!pair.allowed)
			printf("  not from %s: %s\n", p.name, pair.why);
	}
}

static void show_text(const struct weft_topology *t)
{
	int name_width = 10;

	for (size_t i = 0; i < weft_topology_publishers(t); i++) {
		struct weft_publisher p = { .size = sizeof(p) };

		weft_topology_publisher(t, i, &p);
		if ((int)strlen(p.name) + 2 > name_width)
			name_width = (int)strlen(p.name) + 2;
	}
	printf("%-*s", name_width, "publisher");
	for (size_t i = 0; i < weft_topology_clients(t); i++) {
		struct weft_client c = { .size = sizeof(c) };

		weft_topology_client(t, i, &c);
		printf("%-*s", cell_width(&c), c.name);
	}
	printf("%-5s %12s %12s\n", "node", "bytes", "available");
	for (size_t i = 0; i < weft_topology_publishers(t); i++)
		show_publisher(t, i, name_width);
	for (size_t i = 0; i < weft_topology_clients(t); i++)
		show_client(t, i);
}

int topology_show(bool json)
{
	struct weft_topology *t;
	int err = weft_topology_open(NULL, &t);

	if (err)
		return err;
	if (json)
		show_json(t);
	else
		show_text(t);
	weft_topology_close(t);
	return 0;
}
