/* SPDX-License-Identifier: BSD-2-Clause */
#include "tensor/use.h"

#include <stdlib.h>

void wf_uses_init(struct wf_uses *uses)
{
	wf_map_init(&uses->map);
}

void wf_uses_fini(struct wf_uses *uses)
{
	wf_map_fini(&uses->map);
}

static struct wf_use *find(const struct wf_uses *uses, uint64_t step, uint64_t hash)
{
	struct wf_map_node *node = NULL;

	while ((node = wf_map_find(&uses->map, hash, node))) {
		struct wf_use *use = WF_CONTAINER(node, struct wf_use, node);

		if (use->step == step)
			return use;
	}
	return NULL;
}

struct wf_use *wf_use_find(const struct wf_uses *uses, uint64_t step)
{
	return find(uses, step, wf_map_hash(&uses->map, step, NULL, 0));
}

struct wf_use *wf_use_get(struct wf_uses *uses, uint64_t step)
{
	uint64_t hash = wf_map_hash(&uses->map, step, NULL, 0);
	struct wf_use *use = find(uses, step, hash);

	if (!use) {
		use = malloc(sizeof(*use));
		if (!use)
			return NULL;
		use->uses = uses;
		use->step = step;
		use->holds = 0;
		wf_list_init(&use->sends);
		wf_list_init(&use->receives);
		wf_list_init(&use->parts);
		wf_map_add(&uses->map, &use->node, hash);
	}
	wf_use_hold(use);
	return use;
}

void wf_use_hold(struct wf_use *use)
{
	use->holds++;
}

static void free_unused(struct wf_use *use)
{
	if (use->holds || !wf_list_empty(&use->sends) || !wf_list_empty(&use->receives) ||
	    !wf_list_empty(&use->parts))
		return;
	wf_map_remove(&use->uses->map, &use->node);
	free(use);
}

void wf_use_put(struct wf_use *use)
{
	use->holds--;
	free_unused(use);
}

void wf_use_enter(struct wf_use *use, struct wf_list *list, struct wf_use_member *m)
{
	m->use = use;
	wf_list_append(list, &m->node);
}

void wf_use_leave(struct wf_use_member *m)
{
	struct wf_use *use = m->use;

	if (!use)
		return;
	wf_list_remove(&m->node);
	m->use = NULL;
	free_unused(use);
}
