/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What libfabric itself could do with memory of a CUDA device: whether it was built
 * for that, and whether the system has the libraries it asks for, by the names it asks
 * for them.
 *
 * libfabric says neither.  FI_HMEM among a provider's capabilities tells nothing of
 * CUDA, and a library that is not found it passes over in silence.  But the names stand
 * in its file, if it was built with CUDA, to be linked or to be loaded.
 *
 * Threads: any.
 */
#ifndef WF_CUDART_H
#define WF_CUDART_H

#include "util/base.h"

#define WF_CUDART_TEXT_BYTES 480

enum wf_cudart_state {
	WF_CUDART_ABSENT,  /* it was built without CUDA */
	WF_CUDART_MISSING, /* a library it asks for is not found */
	WF_CUDART_FOUND,
	WF_CUDART_UNKNOWN, /* its file can't be read */
};

/* Of the libfabric in @file; NULL: the one of this process.  @text gets one sentence. */
enum wf_cudart_state wf_cudart_look(const char *file, char text[WF_CUDART_TEXT_BYTES]);

#endif
