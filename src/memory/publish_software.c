/* SPDX-License-Identifier: BSD-2-Clause */
/* software: the host's memory in place of a device's, as a rule says, to try without the device. */
#include "memory/publisher.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int add(struct wf_publisher_list *list, const struct wf_topology *t,
	       const struct wf_rule *rule, struct wf_error *e)
{
	const char *at = strchr(rule->who.names[0], ':') + 1;
	struct wf_topology_place place;
	int err;

	if (wf_topology_find(t, at, &place) || !place.device)
		return wf_error_set(e, -ENODEV, "rules: '%s': there is no device %s", rule->text, at);
	err = wf_publisher_add(list, &wf_publish_software, place.device->address, &place, t,
			       (size_t)sysconf(_SC_PAGESIZE), e);
	if (!err)
		list->all[list->count - 1].stated_bytes = rule->bytes;
	return err;
}

static int find(struct wf_publisher_list *list, const struct wf_topology *t,
		const struct wf_rules *rules, struct wf_error *e)
{
	int err = 0;

	for (size_t i = 0; !err && i < rules->count; i++)
		if (rules->all[i].verb == WF_RULE_PUBLISH)
			err = add(list, t, &rules->all[i], e);
	return err;
}

static void look(struct wf_publisher *p)
{
	p->bytes = p->stated_bytes;
	p->available_bytes = p->bytes - WF_MIN(p->bytes, p->used_bytes);
	p->published = true;
}

static int take(const struct wf_publisher *p, size_t bytes, struct wf_publisher_piece *piece,
		struct wf_error *e)
{
	struct wf_publisher_piece fresh = { .bytes = bytes, .file.fd = -1 };
	int err = wf_sealed_open(&fresh.file, "weft-software", bytes, WF_SEALED_OWNER);

	if (err)
		return wf_error_set(e, err, "%s: no memory for %zu bytes: %s", p->name, bytes,
				    wf_error_name(err));
	fresh.base = fresh.file.base;
	*piece = fresh;
	return 0;
}

const struct wf_publisher_ops wf_publish_software = {
	.kind = "software",
	.rights = WF_PUBLISHER_CPU | WF_PUBLISHER_LENDS,
	.find = find,
	.look = look,
	.take = take,
	.give = wf_publisher_unmap,
	.forked = wf_publisher_unshare,
};
