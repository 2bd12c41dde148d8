/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of CUDA devices, as a program that links to no CUDA gets it: by the driver, whose file is
 * loaded with the first device.  The memory lies in the device's primary context.
 *
 * Threads: owner.
 */
#ifndef TOOL_CUDA_H
#define TOOL_CUDA_H

#include <stddef.h>

#define CUDA_DEVICES_MAX 64 /* more than any host has */

/* Open device @ordinal, before all other use of it.  NULL, or why not, in one sentence. */
const char *cuda_open(unsigned ordinal);

/* Allocate memory of the device; free it with cuda_give().  NULL: there is none. */
void *cuda_take(unsigned ordinal, size_t bytes);

/* Free memory of cuda_take(); accepts NULL. */
void cuda_give(unsigned ordinal, void *memory);

/* Copy @bytes to the device.  The copy is over at return.  -EIO. */
int cuda_put(unsigned ordinal, void *to, const void *from, size_t bytes);

/* Copy @bytes from the device.  The copy is over at return.  -EIO. */
int cuda_get(unsigned ordinal, void *to, const void *from, size_t bytes);

#endif
