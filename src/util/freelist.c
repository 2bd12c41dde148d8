/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/freelist.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/*
 * Filling of pieces in a build with a sanitizer, to expose code that relies on a zero that it
 * did not ask for.
 */
#define FILLING 0xa5

void wf_freelist_init(struct wf_freelist *s, size_t bytes, size_t zero_from, size_t zero_to)
{
	assert(bytes >= sizeof(struct wf_list) && zero_from <= zero_to && zero_to <= bytes);
	*s = (struct wf_freelist){
		.bytes = bytes, .zero_from = zero_from, .zero_to = zero_to,
		.count_max = WF_FREELIST_BYTES_MAX / bytes,
	};
	wf_list_init(&s->list);
}

void wf_freelist_fini(struct wf_freelist *s)
{
	struct wf_list *piece;

	while ((piece = wf_list_pop(&s->list)))
		free(piece);
	s->count = 0;
}

void *wf_freelist_take(struct wf_freelist *s)
{
	char *piece = (char *)wf_list_pop(&s->list);

	if (piece)
		s->count--;
	else
		piece = malloc(s->bytes);
	if (!piece)
		return NULL;
	if (!WF_FREELIST_BYTES_MAX)
		memset(piece, FILLING, s->bytes);
	memset(piece + s->zero_from, 0, s->zero_to - s->zero_from);
	return piece;
}

void wf_freelist_give(struct wf_freelist *s, void *piece)
{
	if (!piece || s->count == s->count_max) {
		free(piece);
		return;
	}
	s->count++;
	/* Reuse the last piece first: it is still in the cache. */
	wf_list_prepend(&s->list, piece);
}
