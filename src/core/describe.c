/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/describe.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/op.h"
#include "tensor/key.h"

#define PART_BYTES 500

void wf_describe_add(char text[WF_DESCRIBE_BYTES], const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text + used, WF_DESCRIBE_BYTES - used, format, args);
	va_end(args);
}

/* Append a tensor's step and key to @text.  A key is bytes, and need not be text. */
void wf_describe_channel(uint64_t step, const void *key, size_t key_bytes,
			 char text[WF_DESCRIBE_BYTES])
{
	char shown[WF_KEY_TEXT_BYTES];

	wf_key_text(key, key_bytes, shown);
	wf_describe_add(text, " step %llu key %s", (unsigned long long)step, shown);
}

/* A peer's name may be read by the worker, and under the node's lock by any thread. */
void wf_describe_peer(const struct weft_op *op, char text[WF_DESCRIBE_BYTES])
{
	wf_describe_add(text, "%s", !op->peer	       ? "any peer"
				    : op->peer->name[0] ? op->peer->name
							: op->peer->address);
}

void wf_describe_op(const struct weft_op *op, char text[WF_DESCRIBE_BYTES])
{
	text[0] = '\0';
	op->class->describe(op, text);
}

/* Write what @op waits for, and the state of its link.  Threads: owner. */
void wf_describe_wait(const struct weft_op *op, char text[WF_DESCRIBE_BYTES])
{
	char part[PART_BYTES] = "", state[WF_LINK_STATE_BYTES];
	const struct wf_link *link;

	text[0] = '\0';
	if (!op->started || op->outcome.known) {
		wf_describe_add(text, op->started ? "it has ended, and is about to be told"
				      : "the worker has not begun it yet");
		return;
	}
	op->class->describe_wait(op, part, sizeof(part));
	wf_describe_add(text, "%s", part);
	link = wf_peer_link_known(op->peer, op->worker);
	if (!link)
		return;
	wf_link_describe(link, state);
	wf_describe_add(text, " (link %u to %s: %s)", link->number, wf_link_label(link), state);
}

/* Returns a number that changes when @op makes progress.  Threads: owner. */
uint64_t wf_describe_progress(struct weft_op *op)
{
	return op->class->progress ? op->class->progress(op) : 0;
}

/* Returns how many bytes the peer of @op may be reading now, unreported.  Threads: owner. */
uint64_t wf_describe_offered_bytes(const struct weft_op *op)
{
	return op->class->offered_bytes ? op->class->offered_bytes(op) : 0;
}
