/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pinned: memory of a NUMA node that CUDA has pinned, so that devices copy it at full speed.
 * Publishers are there only where a rule allows it: pinned memory can't be swapped out, and the
 * driver is loaded.
 */
#include "memory/publisher.h"

#include <string.h>

#include "memory/cuda.h"

static int find(struct wf_publisher_list *list, const struct wf_topology *t,
		const struct wf_rules *rules, struct wf_error *e)
{
	enum wf_cuda_driver_state state;
	size_t first = list->count;
	struct wf_error said;
	int err;

	if (!wf_rules_allow(rules, wf_publish_pinned.kind))
		return 0;
	state = wf_cuda_driver_load(list->cuda, &said);
	err = wf_publisher_add_nodes(list, &wf_publish_pinned, t, e);
	for (size_t i = first; state != WF_CUDA_READY && i < list->count; i++)
		strcpy(list->all[i].why_not, said.text);
	return err;
}

static void look(struct wf_publisher *p)
{
	wf_publish_host.look(p);
	p->published = wf_cuda_driver() != NULL;
}

/* Pin for every device, by way of the first. */
static int take(const struct wf_publisher *p, size_t bytes, struct wf_publisher_piece *piece,
		struct wf_error *e)
{
	int err = wf_publish_host.take(p, bytes, piece, e);

	if (err)
		return err;
	err = wf_cuda_pin(0, piece->base, bytes, e);
	if (err)
		wf_publisher_unmap(piece);
	return err;
}

static void give(struct wf_publisher_piece *piece)
{
	wf_cuda_unpin(0, piece->base);
	wf_publisher_unmap(piece);
}

const struct wf_publisher_ops wf_publish_pinned = {
	.kind = "pinned",
	.rights = WF_PUBLISHER_CPU | WF_PUBLISHER_LENDS,
	.find = find,
	.look = look,
	.take = take,
	.give = give,
	.forked = wf_publisher_unshare,
};
