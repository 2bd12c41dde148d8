/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/placement.h"

#include <errno.h>
#include <linux/mman.h>
#include <sys/mman.h>

#include "memory/publisher.h"
#include "util/options.h"
#include "util/sysfs.h"

int wf_placement_open(struct wf_placement *p, const char *node, bool huge, const char *sysfs,
		      struct wf_error *e)
{
	char path[WF_SYSFS_PATH_BYTES], text[WF_SYSFS_TEXT_BYTES] = "0"; /* a kernel without NUMA */
	struct wf_placement fresh = { .placed = *node, .huge = huge };
	uint64_t number = 0;

	if (*node && (wf_options_parse("count", node, &number) || number >= WF_TOPOLOGY_NODES_MAX))
		return wf_error_set(e, -EINVAL, "WEFT_POOL_NUMA=%.20s: expected the number of a NUMA "
				    "node, as 0", node);
	if (wf_sysfs_path(path, *sysfs ? sysfs : WF_SYSFS_ROOT, "devices/system/node/has_memory"))
		(void)wf_sysfs_text(path, text, sizeof(text));
	if (!wf_sysfs_lists(text, (unsigned)number) && *node)
		return wf_error_set(e, -EINVAL, "WEFT_POOL_NUMA=%.20s: this machine has memory on NUMA "
				    "node %.100s", node, text);
	fresh.node = (unsigned)number;
	*p = fresh;
	return 0;
}

void wf_placement_apply(struct wf_placement *p, void *base, size_t bytes)
{
	int err = p->placed ? wf_publisher_prefer(base, bytes, p->node) : 0;

	if (err)
		atomic_store(&p->refused, err);
}

void *wf_placement_map(size_t bytes, bool huge)
{
	int flags = huge ? MAP_HUGETLB | MAP_HUGE_2MB : 0;

	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}
