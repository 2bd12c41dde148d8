/* SPDX-License-Identifier: BSD-2-Clause */
/* host: the memory of a NUMA node. */
#include "memory/publisher.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int find(struct wf_publisher_list *list, const struct wf_topology *t,
		const struct wf_rules *rules, struct wf_error *e)
{
	(void)rules;
	return wf_publisher_add_nodes(list, &wf_publish_host, t, e);
}

/* Read a line of a node's meminfo, as "Node 0 MemTotal: 123 kB". */
static uint64_t line_bytes(const char *text, const char *name)
{
	const char *at = strstr(text, name);
	unsigned long long kib;

	return at && sscanf(at + strlen(name), "%llu kB", &kib) == 1 ? kib * KIB : 0;
}

static void look(struct wf_publisher *p)
{
	char path[WF_SYSFS_PATH_BYTES], text[WF_SYSFS_TEXT_BYTES];

	p->published = true;
	if (wf_sysfs_path(path, p->topology->root, "devices/system/node/node%d/meminfo",
			  p->place.node) &&
	    !wf_sysfs_text(path, text, sizeof(text))) {
		p->bytes = line_bytes(text, " MemTotal:");
		/* Count what the kernel gives up easily: files that were read. */
		p->available_bytes = line_bytes(text, " MemFree:") +
				     line_bytes(text, " Active(file):") +
				     line_bytes(text, " Inactive(file):") +
				     line_bytes(text, " SReclaimable:");
		return;
	}
	/* A kernel without NUMA has no such file. */
	p->bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * p->page_bytes;
	p->available_bytes = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * p->page_bytes;
}

/*
 * Take a file of memory, so that other processes of this host can look at it; plain memory if
 * that is not to be had.
 */
static int take(const struct wf_publisher *p, size_t bytes, struct wf_publisher_piece *piece,
		struct wf_error *e)
{
	struct wf_publisher_piece fresh = { .bytes = bytes, .file.fd = -1 };

	if (!wf_sealed_open(&fresh.file, "weft-near", bytes, WF_SEALED_OWNER))
		fresh.base = fresh.file.base;
	else
		fresh.base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fresh.base == MAP_FAILED)
		return wf_error_set(e, -errno, "%s: no memory for %zu bytes: %s", p->name, bytes,
				    wf_error_name(-errno));
	return wf_publisher_bind(p, &fresh, piece, e);
}

const struct wf_publisher_ops wf_publish_host = {
	.kind = "host",
	.rights = WF_PUBLISHER_CPU | WF_PUBLISHER_LENDS,
	.find = find,
	.look = look,
	.take = take,
	.give = wf_publisher_unmap,
	.forked = wf_publisher_unshare,
};
