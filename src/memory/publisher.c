/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory/publisher.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

const struct wf_publisher_ops *const wf_publishers[] = {
	&wf_publish_host,
	&wf_publish_huge,
	&wf_publish_pinned,
	&wf_publish_cuda,
	&wf_publish_p2pmem,
	&wf_publish_software,
	NULL,
};

int wf_publisher_add(struct wf_publisher_list *list, const struct wf_publisher_ops *how,
		     const char *at, const struct wf_topology_place *place,
		     const struct wf_topology *t, size_t page_bytes, struct wf_error *e)
{
	struct wf_publisher *more = realloc(list->all, (list->count + 1) * sizeof(*more));
	struct wf_publisher fresh = {
		.how = how, .place = *place, .topology = t, .page_bytes = page_bytes,
	};

	if (!more)
		return wf_error_set(e, -ENOMEM, "no memory for a publisher");
	snprintf(fresh.name, sizeof(fresh.name), "%s:%s", how->kind, at);
	more[list->count++] = fresh;
	list->all = more;
	return 0;
}

int wf_publisher_add_nodes(struct wf_publisher_list *list, const struct wf_publisher_ops *how,
			   const struct wf_topology *t, struct wf_error *e)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	char number[16];
	int err = 0;

	for (size_t i = 0; !err && i < t->node_count; i++) {
		struct wf_topology_place place = { .node = t->nodes[i].number };

		snprintf(number, sizeof(number), "%d", place.node);
		err = wf_publisher_add(list, how, number, &place, t, page_bytes, e);
	}
	return err;
}

void wf_publisher_look(struct wf_publisher *p)
{
	p->bytes = p->available_bytes = 0;
	p->published = false;
	p->how->look(p);
}

int wf_publisher_prefer(void *base, size_t bytes, unsigned node)
{
	unsigned long mask[WF_TOPOLOGY_NODES_MAX / (8 * sizeof(unsigned long)) + 1] = { 0 };

	if (node >= 8 * sizeof(mask))
		return -EINVAL;
	mask[node / (8 * sizeof(*mask))] = 1UL << node % (8 * sizeof(*mask));
	return syscall(SYS_mbind, base, bytes, MPOL_PREFERRED, mask, 8 * sizeof(mask), 0) ? -errno : 0;
}

int wf_publisher_bind(const struct wf_publisher *p, struct wf_publisher_piece *mapped,
		      struct wf_publisher_piece *piece, struct wf_error *e)
{
	int err = 0;

	/* With a single node all memory lies there; and not every system has the call. */
	if (p->topology->node_count > 1)
		err = wf_publisher_prefer(mapped->base, mapped->bytes, (unsigned)p->place.node);
	mapped->anywhere = err == -EPERM || err == -ENOSYS;
	if (err && !mapped->anywhere) {
		wf_publisher_unmap(mapped);
		return wf_error_set(e, err, "%s: memory can't be placed there: %s", p->name,
				    wf_error_name(err));
	}
	*piece = *mapped;
	return 0;
}

void wf_publisher_unmap(struct wf_publisher_piece *piece)
{
	if (piece->file.base)
		wf_sealed_close(&piece->file);
	else if (piece->base)
		(void)munmap(piece->base, piece->bytes);
	*piece = (struct wf_publisher_piece){ 0 };
}

void wf_publisher_unshare(struct wf_publisher_piece *piece)
{
	wf_sealed_forked(&piece->file);
}
