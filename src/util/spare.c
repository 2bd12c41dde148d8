/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/spare.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void wf_spare_init(struct wf_spare *s, size_t bytes)
{
	assert(bytes >= sizeof(struct wf_list));
	*s = (struct wf_spare){ .bytes = bytes };
	wf_list_init(&s->list);
}

void wf_spare_fini(struct wf_spare *s)
{
	struct wf_list *piece;

	while ((piece = wf_list_pop(&s->list)))
		free(piece);
	s->count = 0;
}

void *wf_spare_take(struct wf_spare *s)
{
	struct wf_list *piece = wf_list_pop(&s->list);

	if (!piece)
		return calloc(1, s->bytes);
	s->count--;
	return memset(piece, 0, s->bytes);
}

void wf_spare_give(struct wf_spare *s, void *piece)
{
	if (!piece || s->count == WF_SPARE_MAX) {
		free(piece);
		return;
	}
	s->count++;
	/* The last one first: it is still in the cache. */
	wf_list_prepend(&s->list, piece);
}
