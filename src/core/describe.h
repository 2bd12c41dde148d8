/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Describe: operations in words, for the log and the dump.
 */
#ifndef WF_CORE_DESCRIBE_H
#define WF_CORE_DESCRIBE_H

#include <weft/weft.h>
#include "util/base.h"

#define WF_DESCRIBE_BYTES 1000
/* Append to @text; text that does not fit is left out. */
void wf_describe_add(char text[WF_DESCRIBE_BYTES], const char *format, ...) WF_PRINTF(2, 3);
void wf_describe_channel(uint64_t step, const void *key, size_t key_bytes,
			 char text[WF_DESCRIBE_BYTES]);
void wf_describe_peer(const struct weft_op *op, char text[WF_DESCRIBE_BYTES]);
void wf_describe_op(const struct weft_op *op, char text[WF_DESCRIBE_BYTES]);
void wf_describe_wait(const struct weft_op *op, char text[WF_DESCRIBE_BYTES]);
uint64_t wf_describe_progress(struct weft_op *op);
uint64_t wf_describe_offered_bytes(const struct weft_op *op);

#endif
