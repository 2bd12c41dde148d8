/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notes: the metadata and details that the answer of a call has besides its reply.
 *
 * Threads: owner.
 */
#ifndef WF_CORE_NOTES_H
#define WF_CORE_NOTES_H

#include <weft/weft.h>
#include "rpc/call.h"

/* Notes of an answer as users see them: pairs of metadata, or bytes of details. */
struct wf_notes {
	void *what[WF_CALL_DETAILS + 1]; /* NULL: the answer had none */
	size_t counts[WF_CALL_DETAILS + 1];
};

int wf_notes_add(struct wf_call *call, enum wf_call_note what, const uint8_t *bytes, uint32_t count);
void wf_notes_forget(struct weft_op *op);

#endif
