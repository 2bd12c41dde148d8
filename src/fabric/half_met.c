/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/half_met.h"

#include <stdlib.h>
#include <string.h>

struct half_met {
	struct wf_list node;
	fi_addr_t entry;
	size_t bytes;
	uint8_t address[];
};

void wf_half_met_keep(struct wf_half_met *h, const uint8_t *address, size_t bytes,
		      fi_addr_t entry)
{
	struct half_met *kept = malloc(sizeof(*kept) + bytes);

	wf_half_met_lose(h);
	if (!kept)
		return;
	kept->entry = entry;
	kept->bytes = bytes;
	memcpy(kept->address, address, bytes);
	wf_list_append(&h->all, &kept->node);
}

void wf_half_met_lose(struct wf_half_met *h)
{
	h->count++;
}

bool wf_half_met_take(struct wf_half_met *h, const uint8_t *address, size_t bytes,
		      fi_addr_t *entry)
{
	WF_LIST_EACH(node, &h->all) {
		struct half_met *kept = WF_CONTAINER(node, struct half_met, node);

		if (kept->bytes != bytes || memcmp(kept->address, address, bytes))
			continue;
		*entry = kept->entry;
		wf_list_remove(&kept->node);
		free(kept);
		h->count--;
		return true;
	}
	return false;
}

void wf_half_met_forget(struct wf_half_met *h)
{
	struct wf_list *node;

	while ((node = wf_list_pop(&h->all)))
		free(WF_CONTAINER(node, struct half_met, node));
	h->count = 0;
}
