/* SPDX-License-Identifier: BSD-2-Clause */
#include "tensor/use.h"

void wf_uses_init(struct wf_uses *uses)
{
	uses->last = NULL;
	wf_map_init(&uses->map);
	wf_freelist_init(&uses->spare, sizeof(struct wf_use), 0, 0);
}

void wf_uses_fini(struct wf_uses *uses)
{
	wf_map_fini(&uses->map);
	wf_freelist_fini(&uses->spare);
}

static uint64_t hash_of(const struct wf_uses *uses, uint64_t step)
{
	return wf_map_hash_pair(&uses->map, step, 0);
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
	return find(uses, step, hash_of(uses, step));
}

static struct wf_use *make(struct wf_uses *uses, uint64_t step, uint64_t hash)
{
	struct wf_use *use = wf_freelist_take(&uses->spare);

	if (!use)
		return NULL;
	use->uses = uses;
	use->step = step;
	use->holds = 0;
	wf_list_init(&use->sends);
	wf_list_init(&use->receives);
	wf_list_init(&use->parts);
	wf_list_init(&use->any_key);
	wf_list_init(&use->kept);
	wf_map_add(&uses->map, &use->node, hash);
	return use;
}

struct wf_use *wf_use_get(struct wf_uses *uses, uint64_t step)
{
	struct wf_use *use = uses->last;
	uint64_t hash;

	if (!use || use->step != step) {
		hash = hash_of(uses, step);
		use = find(uses, step, hash);
		if (!use)
			use = make(uses, step, hash);
		if (!use)
			return NULL;
		uses->last = use;
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
	if (use->uses->last == use)
		use->uses->last = NULL;
	wf_map_remove(&use->uses->map, &use->node);
	wf_freelist_give(&use->uses->spare, use);
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
