/* SPDX-License-Identifier: BSD-2-Clause */
#include "device.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "log.h"

namespace weft_nixl {
namespace {

/* Numbers of CUDA's driver interface, which never change. */
constexpr int kMemoryType = 2;    /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
constexpr int kIsManaged = 8;     /* CU_POINTER_ATTRIBUTE_IS_MANAGED */
constexpr int kDeviceOrdinal = 9; /* CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL */
constexpr unsigned kDeviceMemory = 2; /* CU_MEMORYTYPE_DEVICE */

using Ask = int (*)(void *answer, int question, unsigned long long memory);

/* Returns the driver's function, NULL without a driver in this process. */
Ask driver()
{
	const char *file = getenv("WEFT_CUDA");

	if (file && !strcmp(file, "no"))
		return nullptr;
	if (!file || !*file || !strcmp(file, "yes"))
		file = "libcuda.so.1";

	void *library = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);

	if (!library)
		return nullptr;

	Ask ask = reinterpret_cast<Ask>(dlsym(library, "cuPointerGetAttribute"));

	/* The program that has memory of a device keeps the driver. */
	dlclose(library);
	return ask;
}

}  // namespace

Status device_of(uintptr_t memory, struct weft_device *device)
{
	Ask ask = driver();
	unsigned type = 0, managed = 0;
	int ordinal = 0;

	if (!ask) {
		log_line(LOG_ERROR, "memory of a GPU, and no CUDA in this process");
		return NOT_SUPPORTED;
	}
	if (ask(&type, kMemoryType, memory) || type != kDeviceMemory ||
	    ask(&managed, kIsManaged, memory) || managed || ask(&ordinal, kDeviceOrdinal, memory)) {
		log_line(LOG_ERROR, "memory at %#zx is no GPU's, CUDA says", memory);
		return NOT_SUPPORTED;
	}
	*device = {WEFT_CUDA, ordinal};
	return SUCCESS;
}

}  // namespace weft_nixl
