/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Span: bytes of a read that lie together at both ends.
 */
#ifndef WF_SPAN_H
#define WF_SPAN_H

#include "util/base.h"

struct wf_span {
	void *into;
	size_t count;
	uint64_t address; /* place in the memory of the other end */
};

#endif
