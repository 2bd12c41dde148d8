/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/notes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/metadata.h"
#include "core/op.h"

/* Keep each kind of note once: a record may come again. */
int wf_notes_add(struct wf_call *call, enum wf_call_note what, const uint8_t *bytes, uint32_t count)
{
	struct weft_op *op = WF_CONTAINER(call, struct weft_op, call.call);
	struct wf_notes *notes = op->call.notes;

	if (!notes) {
		notes = calloc(1, sizeof(*notes));
		if (!notes)
			return -ENOMEM;
		op->call.notes = notes;
	}
	if (notes->what[what])
		return 0;
	if (what == WF_CALL_DETAILS) {
		notes->what[what] = malloc(count);
		if (notes->what[what])
			memcpy(notes->what[what], bytes, count);
		notes->counts[what] = count;
	} else {
		notes->what[what] = wf_metadata_unpack(bytes, count, &notes->counts[what]);
	}
	return notes->what[what] ? 0 : -ENOMEM;
}

void wf_notes_forget(struct weft_op *op)
{
	struct wf_notes *notes = op->call.notes;

	if (!notes)
		return;
	op->call.notes = NULL;
	for (int what = 0; what <= WF_CALL_DETAILS; what++)
		free(notes->what[what]);
	free(notes);
}
