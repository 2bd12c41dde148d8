/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Can libfabric use memory of a CUDA device: was it built with CUDA, and does the system have
 * CUDA's libraries under the names that libfabric asks for?
 *
 * libfabric says neither.  FI_HMEM among a provider's capabilities tells nothing of CUDA, and a
 * missing library is passed over in silence.  But the file of a libfabric that was built with
 * CUDA has the names of these libraries in it, to be linked or to be loaded.
 *
 * Threads: any.
 */
#ifndef WF_CUDART_H
#define WF_CUDART_H

#include "util/base.h"

#define WF_CUDART_TEXT_BYTES 480

enum wf_cudart_state {
	WF_CUDART_ABSENT,  /* libfabric was built without CUDA */
	WF_CUDART_MISSING, /* a library that libfabric asks for is not found */
	WF_CUDART_FOUND,
	WF_CUDART_UNKNOWN, /* the file of libfabric can't be read */
};

/* Look at the libfabric in @file; NULL: this process's.  @text gets one sentence. */
enum wf_cudart_state wf_cudart_look(const char *file, char text[WF_CUDART_TEXT_BYTES]);

#endif
