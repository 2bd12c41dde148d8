/* SPDX-License-Identifier: BSD-2-Clause */
#include "tensor/part.h"

void wf_parts_init(struct wf_parts *parts, struct wf_uses *uses)
{
	*parts = (struct wf_parts){ .uses = uses };
	wf_freelist_init(&parts->spare, sizeof(struct wf_part), 0, 0);
	wf_map_init(&parts->map);
	wf_list_init(&parts->idle);
}

static void rest(struct wf_part *part)
{
	wf_list_append(&part->parts->idle, &part->idle_node);
	part->parts->idle_count++;
}

static void wake(struct wf_part *part)
{
	if (wf_list_empty(&part->idle_node))
		return;
	wf_list_remove(&part->idle_node);
	part->parts->idle_count--;
}

static void free_unused(struct wf_part *part)
{
	if (part->refs || part->takes || part->heard)
		return;
	wake(part);
	if (part->parts->last == part)
		part->parts->last = NULL;
	wf_map_remove(&part->parts->map, &part->node);
	wf_list_remove(&part->link_node);
	wf_use_leave(&part->use);
	wf_link_put(part->link);
	wf_freelist_give(&part->parts->spare, part);
}

static void give_up(struct wf_part *part)
{
	wake(part);
	part->takes = false;
	free_unused(part);
}

static void drop_heard(struct wf_part *part)
{
	wf_step_free(wf_part_unhear(part));
	free_unused(part);
}

void wf_parts_fini(struct wf_parts *parts)
{
	struct wf_map_node *node;

	while ((node = wf_map_next(&parts->map, NULL))) {
		struct wf_part *part = WF_CONTAINER(node, struct wf_part, node);

		wf_step_free(wf_part_unhear(part));
		part->refs = 0;
		give_up(part);
	}
	wf_map_fini(&parts->map);
	wf_freelist_fini(&parts->spare);
}

static uint64_t hash_of(const struct wf_parts *parts, const struct wf_link *link, uint64_t step)
{
	return wf_map_hash_pair(&parts->map, step, (uintptr_t)link);
}

static struct wf_part *find(const struct wf_parts *parts, const struct wf_link *link,
			    uint64_t step, uint64_t hash, struct wf_map_node *after)
{
	while ((after = wf_map_find(&parts->map, hash, after))) {
		struct wf_part *part = WF_CONTAINER(after, struct wf_part, node);

		if (part->link == link && part->use.use->step == step)
			return part;
	}
	return NULL;
}

struct wf_part *wf_part_find(const struct wf_parts *parts, const struct wf_link *link,
			     uint64_t step, struct wf_part *after)
{
	return find(parts, link, step, hash_of(parts, link, step), after ? &after->node : NULL);
}

static struct wf_part *make(struct wf_parts *parts, struct wf_link *link, uint64_t step,
			    uint64_t hash)
{
	struct wf_part *part = wf_freelist_take(&parts->spare);
	struct wf_use *use = part ? wf_use_get(parts->uses, step) : NULL;

	if (!use) {
		wf_freelist_give(&parts->spare, part);
		return NULL;
	}
	*part = (struct wf_part){ .parts = parts, .link = link };
	wf_link_get(link);
	wf_list_init(&part->idle_node);
	wf_list_init(&part->heard_node);
	wf_list_init(&part->kept);
	wf_use_enter(use, &use->parts, &part->use);
	wf_use_put(use);
	wf_list_append(&link->parts.all, &part->link_node);
	wf_map_add(&parts->map, &part->node, hash);
	return part;
}

struct wf_part *wf_part_get(struct wf_parts *parts, struct wf_link *link, uint64_t step)
{
	struct wf_part *part = parts->last;
	uint64_t hash;

	if (!part || part->link != link || part->use.use->step != step) {
		hash = hash_of(parts, link, step);
		part = find(parts, link, step, hash, NULL);
		if (!part)
			part = make(parts, link, step, hash);
		if (!part)
			return NULL;
		parts->last = part;
	}
	wf_part_hold(part);
	return part;
}

void wf_part_hold(struct wf_part *part)
{
	wake(part);
	part->refs++;
}

void wf_part_put(struct wf_part *part)
{
	struct wf_parts *parts;

	if (!part || --part->refs)
		return;
	parts = part->parts;
	/* A link that is gone brings no record any more, for which its part would be remembered. */
	if (part->takes && part->link->state != WF_LINK_GONE)
		rest(part);
	else
		give_up(part);
	if (parts->idle_count > WF_PARTS_IDLE_MAX)
		give_up(WF_CONTAINER(wf_list_first(&parts->idle), struct wf_part, idle_node));
}

void wf_part_take(struct wf_part *part)
{
	part->takes = true;
}

bool wf_part_takes(const struct wf_parts *parts, struct wf_link *link, uint64_t step)
{
	struct wf_part *part = NULL;

	while ((part = wf_part_find(parts, link, step, part)))
		if (part->takes)
			return true;
	return false;
}

void wf_part_hear(struct wf_part *part, struct wf_step *fresh)
{
	struct wf_link *link = part->link;

	if (part->heard) {
		wf_step_free(fresh);
		return;
	}
	part->heard = fresh;
	wf_list_append(&link->parts.heard, &part->heard_node);
	if (++link->parts.heard_count > WF_PARTS_HEARD_MAX)
		drop_heard(WF_CONTAINER(wf_list_first(&link->parts.heard), struct wf_part,
					heard_node));
}

struct wf_step *wf_part_unhear(struct wf_part *part)
{
	struct wf_step *heard = part->heard;

	if (!heard)
		return NULL;
	wf_list_remove(&part->heard_node);
	part->link->parts.heard_count--;
	part->heard = NULL;
	return heard;
}

void wf_parts_down(struct wf_link *link)
{
	WF_LIST_EACH(node, &link->parts.all) {
		struct wf_part *part = WF_CONTAINER(node, struct wf_part, link_node);

		wf_step_free(wf_part_unhear(part));
		give_up(part);
	}
}

void wf_parts_merge(struct wf_parts *parts, struct wf_link *link, struct wf_link *into)
{
	WF_LIST_EACH(node, &link->parts.all) {
		struct wf_part *part = WF_CONTAINER(node, struct wf_part, link_node);

		/* An abort that the peer has not said over a rail of @into counts as not said. */
		wf_step_free(wf_part_unhear(part));
		wf_map_remove(&parts->map, &part->node);
		wf_map_add(&parts->map, &part->node, hash_of(parts, into, part->use.use->step));
		part->link = into;
		wf_link_get(into);
		wf_link_put(link);
		wf_list_remove(&part->link_node);
		wf_list_append(&into->parts.all, &part->link_node);
		free_unused(part);
	}
}
