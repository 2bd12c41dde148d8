/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Device: whether memory that a program calls a GPU's is one's, as CUDA says.
 *
 * weft asks CUDA about the memory of a window only where the process has the driver loaded; without
 * it the memory would be taken for the host's.  So the question is asked here first.
 *
 * Threads: any.
 */
#ifndef WEFT_NIXL_DEVICE_H
#define WEFT_NIXL_DEVICE_H

#include <weft/tensor.h>

#include "nixl.h"

namespace weft_nixl {

/* Find the device of @memory.  What is no GPU's memory is logged, and not supported. */
Status device_of(uintptr_t memory, struct weft_device *device);

}  // namespace weft_nixl

#endif
