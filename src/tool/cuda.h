/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of CUDA devices, as a program that links to no CUDA gets it: by the driver, whose
 * file is loaded with the first device.  It lies in the device's primary context.
 *
 * Threads: owner.
 */
#ifndef TOOL_CUDA_H
#define TOOL_CUDA_H

#include <stddef.h>

#define CUDA_DEVICES_MAX 64 /* more than any host has */

/* Device @ordinal, before all else that is done with it.  NULL, or why not, in one sentence. */
const char *cuda_open(unsigned ordinal);

/* NULL: there is none. */
void *cuda_take(unsigned ordinal, size_t bytes);
void cuda_give(unsigned ordinal, void *memory);

/* The copy is over at return.  -EIO. */
int cuda_put(unsigned ordinal, void *to, const void *from, size_t bytes);
int cuda_get(unsigned ordinal, void *to, const void *from, size_t bytes);

#endif
