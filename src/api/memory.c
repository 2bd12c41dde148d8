/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "core/check.h"
#include "core/memory.h"
#include "core/near.h"
#include "core/node.h"
#include "core/registration.h"

int weft_alloc(struct weft_node *node, size_t bytes, void **memory)
{
	int err = wf_check_node(node);

	if (err || WF_NEED(memory))
		return err ? err : -EINVAL;
	return wf_memory_take(node, &node->workers[0], bytes, memory);
}

int weft_alloc_near(struct weft_node *node, size_t bytes, const struct weft_near_options *options,
		    void **memory)
{
	struct weft_near_options given;
	int err = wf_check_node(node);

	if (!err)
		err = WF_NEED(memory);
	if (!err)
		err = wf_check_options(options, &given, sizeof(given));
	if (err)
		return err;
	if (wf_node_inside(node))
		return wf_last_set(-EDEADLK, "weft_alloc_near inside a callback would wait for itself");
	return wf_near_take(node, bytes, &given, memory);
}

int weft_memory_place(struct weft_node *node, const void *memory, struct weft_placement *placement)
{
	int err = wf_check_node(node);

	if (err || WF_NEED(memory) || WF_NEED_SIZED(placement))
		return err ? err : -EINVAL;
	return wf_near_place(node, memory, placement);
}

int weft_retain(struct weft_node *node, void *memory)
{
	int err = wf_check_node(node);

	if (err || WF_NEED(memory))
		return err ? err : -EINVAL;
	return wf_memory_retain(node, memory);
}

void weft_free(struct weft_node *node, void *memory)
{
	if (memory && !wf_check_node(node))
		wf_memory_free(node, memory);
}

int weft_register(struct weft_node *node, void *memory, size_t bytes, struct weft_region **region)
{
	int err = wf_check_node(node);

	if (err || WF_NEED(memory) || WF_NEED(region))
		return err ? err : -EINVAL;
	if (!bytes || bytes > UINTPTR_MAX - (uintptr_t)memory)
		return wf_last_set(-EINVAL, "a region of %zu bytes", bytes);
	if (wf_node_inside(node))
		return wf_last_set(-EDEADLK, "weft_register inside a callback would wait for itself");
	err = wf_check_host(node, memory, "a region");
	return err ? err : wf_registration_open(node, memory, bytes, region);
}

int weft_unregister(struct weft_region *region)
{
	return region ? wf_registration_close(region) : 0;
}
