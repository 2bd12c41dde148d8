/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DLPack's structs, versions 0 and 1, as its standard has them: layouts that every library of arrays
 * agrees on.  weft's own, since headers of DLPack that systems ship know version 0 alone.
 */
#ifndef WEFT_PYTHON_DLPACK_H
#define WEFT_PYTHON_DLPACK_H

#include <cstdint>
#include <weft/tensor.h>

struct DlManaged { // in a capsule "dltensor"
	weft_tensor tensor;
	void *context;
	void (*deleter)(DlManaged *self);
};

struct DlManagedVersioned { // in a capsule "dltensor_versioned"
	struct {
		uint32_t major, minor;
	} version;
	void *context;
	void (*deleter)(DlManagedVersioned *self);
	uint64_t flags;
	weft_tensor tensor;
};

enum : uint64_t { DL_READONLY = 1 };

#define DL_MAJOR 1
#define DL_MINOR 1

#endif
