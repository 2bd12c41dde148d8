/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/pack.h"

#include <errno.h>
#include <stdlib.h>

/* Is @part the part that must come next? */
static bool follows(const struct wf_assembly *a, const struct wf_record *part)
{
	bool more = part->flags & WF_RECORD_MORE;
	uint32_t rest = a->open ? a->total - a->count : part->total;

	if (a->open != !!(part->flags & WF_RECORD_CONTINUED))
		return false;
	if (a->open && (part->type != a->type || part->total != a->total))
		return false;
	return more ? part->count && part->count < rest : part->count == rest;
}

int wf_assembly_add(struct wf_assembly *a, const struct wf_record *part, uint32_t total_max,
		    struct wf_record *whole)
{
	uint8_t *bytes;

	if (!follows(a, part))
		return -EBADMSG;
	if (part->total > total_max)
		return -EMSGSIZE;
	if (!a->open) {
		wf_assembly_fini(a); /* frees the record before */
		if (!part->flags) {
			*whole = *part;
			return 1;
		}
		bytes = malloc(part->total);
		if (!bytes)
			return -ENOMEM;
		*a = (struct wf_assembly){
			.bytes = bytes, .total = part->total, .type = part->type, .open = true
		};
	}
	memcpy(a->bytes + a->count, part->bytes, part->count);
	a->count += part->count;
	a->frames++;
	if (a->count < a->total)
		return 0;
	a->open = false;
	*whole = (struct wf_record){
		.type = a->type, .count = a->total, .total = a->total, .bytes = a->bytes
	};
	return 1;
}

void wf_assembly_undo(struct wf_assembly *a, const struct wf_record *part)
{
	if (!part->flags)
		return;
	a->count -= part->count;
	a->frames--;
	a->open = true;
}

void wf_assembly_fini(struct wf_assembly *a)
{
	free(a->bytes);
	*a = (struct wf_assembly){ 0 };
}
