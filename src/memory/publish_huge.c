/* SPDX-License-Identifier: BSD-2-Clause */
/* huge: pages of a NUMA node that its owner has set aside as huge ones. */
#include "memory/publisher.h"

#include <errno.h>
#include <linux/mman.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* Page sizes that some processor has, the smallest first: a piece wastes less of it. */
static const unsigned sizes_kib[] = { 64, 2048, 16384, 32768, 524288, 1048576 };

/* Read a number that the kernel says about pages of @page_kib on @node; 0 where it says none. */
static uint64_t count_of(const struct wf_topology *t, int node, size_t page_kib, const char *what)
{
	char path[WF_SYSFS_PATH_BYTES];
	uint64_t count;

	if (!wf_sysfs_path(path, t->root, "devices/system/node/node%d/hugepages/hugepages-%zukB/%s",
			   node, page_kib, what) ||
	    wf_sysfs_number(path, &count))
		return 0;
	return count;
}

static int find_on(struct wf_publisher_list *list, const struct wf_topology *t, int node,
		   struct wf_error *e)
{
	struct wf_topology_place place = { .node = node };
	char number[16];

	snprintf(number, sizeof(number), "%d", node);
	for (size_t i = 0; i < WF_COUNT(sizes_kib); i++)
		if (count_of(t, node, sizes_kib[i], "nr_hugepages"))
			return wf_publisher_add(list, &wf_publish_huge, number, &place, t,
						sizes_kib[i] * KIB, e);
	return 0;
}

static int find(struct wf_publisher_list *list, const struct wf_topology *t,
		const struct wf_rules *rules, struct wf_error *e)
{
	int err = 0;

	(void)rules;
	for (size_t i = 0; !err && i < t->node_count; i++)
		err = find_on(list, t, t->nodes[i].number, e);
	return err;
}

static void look(struct wf_publisher *p)
{
	size_t page_kib = p->page_bytes / KIB;

	p->bytes = count_of(p->topology, p->place.node, page_kib, "nr_hugepages") * p->page_bytes;
	p->available_bytes = count_of(p->topology, p->place.node, page_kib, "free_hugepages") *
			     p->page_bytes;
	p->published = p->bytes > 0;
}

/* Map huge pages: the kernel sets them aside for us at once, or says that it can't. */
static int take(const struct wf_publisher *p, size_t bytes, struct wf_publisher_piece *piece,
		struct wf_error *e)
{
	struct wf_publisher_piece fresh = { .bytes = bytes, .file.fd = -1 };
	int size = __builtin_ctzll(p->page_bytes) << MAP_HUGE_SHIFT;

	fresh.base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | size, -1, 0);
	if (fresh.base == MAP_FAILED)
		return wf_error_set(e, -errno, "%s: no pages for %zu bytes: %s", p->name, bytes,
				    wf_error_name(-errno));
	return wf_publisher_bind(p, &fresh, piece, e);
}

const struct wf_publisher_ops wf_publish_huge = {
	.kind = "huge",
	.rights = WF_PUBLISHER_CPU,
	.find = find,
	.look = look,
	.take = take,
	.give = wf_publisher_unmap,
	.forked = wf_publisher_unshare,
};
