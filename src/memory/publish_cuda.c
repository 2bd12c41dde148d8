/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cuda: memory of a CUDA device, which the processor does not reach.  Publishers are there only
 * where a rule allows it, because the driver is loaded.
 */
#include "memory/publisher.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "memory/cuda.h"

/*
 * Add a device by its number, for several may have one address, as parts of a device have.  A
 * device that sysfs does not show is as far from everything as can be.
 */
static int add(struct wf_publisher_list *list, const struct wf_topology *t, int ordinal,
	       const char *why_not, struct wf_error *e)
{
	struct wf_topology_place place = { .node = -1 };
	struct wf_cuda_device device = { .bytes = 0 };
	struct wf_publisher *p;
	struct wf_error said;
	char number[16];
	int err;

	if (!why_not && wf_cuda_device(ordinal, &device, &said))
		why_not = said.text;
	(void)wf_topology_find(t, device.pci, &place);
	snprintf(number, sizeof(number), "%d", ordinal);
	err = wf_publisher_add(list, &wf_publish_cuda, number, &place, t,
			       (size_t)sysconf(_SC_PAGESIZE), e);
	if (err)
		return err;
	p = &list->all[list->count - 1];
	p->device = ordinal;
	p->stated_bytes = device.bytes;
	if (why_not)
		strcpy(p->why_not, why_not);
	return 0;
}

/* Add all devices; without any, a single publisher stands for them, to say why. */
static int find(struct wf_publisher_list *list, const struct wf_topology *t,
		const struct wf_rules *rules, struct wf_error *e)
{
	struct wf_error said;
	int count, err = 0;

	if (!wf_rules_allow(rules, wf_publish_cuda.kind))
		return 0;
	if (wf_cuda_driver_load(list->cuda, &said) != WF_CUDA_READY)
		return add(list, t, 0, said.text, e);
	count = wf_cuda_driver_device_count();
	for (int i = 0; !err && i < count; i++)
		err = add(list, t, i, NULL, e);
	return err;
}

/*
 * Set how much there is; memory that others have shows only on taking, for to ask makes a
 * context, which takes memory, too.
 */
static void look(struct wf_publisher *p)
{
	p->bytes = p->stated_bytes;
	p->available_bytes = p->bytes - WF_MIN(p->bytes, p->used_bytes);
	p->published = !*p->why_not;
}

static int take(const struct wf_publisher *p, size_t bytes, struct wf_publisher_piece *piece,
		struct wf_error *e)
{
	struct wf_publisher_piece fresh = { .bytes = bytes, .file.fd = -1, .device = p->device };
	struct wf_error said;
	int err = wf_cuda_alloc(p->device, bytes, &fresh.base, &said);

	if (err)
		return wf_error_set(e, err, "%s: no memory for %.400s", p->name, said.text);
	*piece = fresh;
	return 0;
}

static void give(struct wf_publisher_piece *piece)
{
	wf_cuda_free(piece->device, piece->base);
	*piece = (struct wf_publisher_piece){ 0 };
}

const struct wf_publisher_ops wf_publish_cuda = {
	.kind = "cuda",
	.rights = 0,
	.find = find,
	.look = look,
	.take = take,
	.give = give,
	.forked = wf_publisher_unshare,
};
